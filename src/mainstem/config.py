"""Settings of a project: `mainstem.toml`, closed and typed; an unknown key names its neighbour.

`${env:NAME}` in any text value stands for an environment variable. Sections are frozen models;
their field descriptions are the reference documentation (docs/settings.md is generated from them).
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from mainstem.errors import MainstemError, did_you_mean

PROJECT_FILE = "mainstem.toml"
STATE_FOLDER = ".mainstem"
_ENVIRONMENT = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


class Section(BaseModel):
    """A part of the settings: frozen, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class KafkaSettings(Section):
    """The log."""

    bootstrap_servers: str = Field(
        "",
        description="Brokers as host:port, comma separated. Empty: the local stack's own broker.",
    )
    port: int = Field(
        0, ge=0, le=65535, description="Port of the local broker; 0 takes a free one."
    )
    partitions: int = Field(4, ge=1, le=1000, description="Partitions of a new topic.")
    replication_factor: int = Field(1, ge=1, le=10, description="Replicas of a new topic.")
    max_record_bytes: int = Field(
        1_048_576, ge=1024, description="Largest record that a topic of the local broker takes."
    )
    options: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="Client settings by their librdkafka names, such as security.protocol.",
    )


class PostgresSettings(Section):
    """The store of the served views."""

    url: SecretStr = Field(
        SecretStr(""),
        description="Connection URL of the owner role. Empty: the local stack's own server.",
    )
    port: int = Field(
        0, ge=0, le=65535, description="Port of the local server; 0 takes a free one."
    )


class SparkSettings(Section):
    """The engine."""

    master: str = Field(
        "local[16]",
        description="Spark master. Real-time flows hold one slot per input and state partition.",
    )
    memory: str = Field("1g", pattern=r"^\d+[mg]$", description="Heap of the driver.")
    checkpoints: str = Field(
        "", description="Folder or URL for checkpoints. Empty: inside .mainstem of the project."
    )
    shuffle_partitions: int = Field(
        2, ge=1, le=1000, description="State partitions of a new flow; fixed once it runs."
    )
    trigger: str = Field(
        "200 milliseconds", description="Least time between two micro-batches of a flow."
    )
    max_records_per_batch: int = Field(
        500_000, ge=1, description="Most records that one micro-batch takes in."
    )
    options: dict[str, str] = Field(
        default_factory=dict, description="More Spark settings, by their own names."
    )
    source_folders: tuple[str, ...] = Field(
        ("data",),
        description="Folders that sources of the connector `files` may read, with all in them;"
        " relative to the project.",
    )
    source_formats: tuple[str, ...] = Field(
        ("rate", "rate-micro-batch"),
        description="Formats of Spark that sources of the connector `spark` may name.",
    )
    jdbc_drivers: tuple[str, ...] = Field(
        (),
        description="Jar files with JDBC drivers for the connector `jdbc-poll`; those for"
        " PostgreSQL and MariaDB are there.",
    )


class GatewaySettings(Section):
    """REST, server-sent events and the page."""

    host: str = Field("127.0.0.1", description="Address to listen on; loopback by default.")
    port: int = Field(0, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    url: str = Field(
        "", description="Where clients find the gateway. Empty: the local stack's own."
    )


class SchemasSettings(Section):
    """The schema registry."""

    registry: str = Field(
        "",
        pattern=r"^(https?://[^\s@]+)?$",
        description="URL of a registry to be used in place of our own, which is at the gateway"
        " below /registry.",
    )
    user: str = Field("", description="User of that registry, if it asks for one.")
    password: SecretStr = Field(SecretStr(""), description="Password of that user.")
    topic: str = Field(
        "_schemas",
        pattern=r"^[A-Za-z0-9._-]{1,249}$",
        description="Topic that our own registry keeps schemas in; that of another registry is"
        " taken over as it is.",
    )


class ConnectSettings(Section):
    """Kafka Connect, which carries sources such as postgres-cdc."""

    url: str = Field(
        "",
        pattern=r"^(https?://[^\s@]+)?$",
        description="URL of an existing Connect cluster. Empty: the local stack's own worker, which"
        " runs only while a source needs it.",
    )
    user: str = Field("", description="User of that cluster, if it asks for one.")
    password: SecretStr = Field(SecretStr(""), description="Password of that user.")
    secrets: str = Field(
        "",
        description="Folder in which that cluster's workers find passwords, by the config provider"
        " `file`; it must have the same path here and there. Empty: inside .mainstem of the"
        " project.",
    )
    port: int = Field(
        0, ge=0, le=65535, description="Port of the local worker; 0 takes a free one."
    )
    memory: str = Field("256m", pattern=r"^\d+[mg]$", description="Heap of the local worker.")
    classes: tuple[str, ...] = Field(
        (),
        description="Classes that definitions with the connector `connect` may name in that"
        " cluster. The local worker has those of the jars in the folder `plugins` of the project.",
    )


class QuerySettings(Section):
    """Limits of pull and history queries."""

    timeout_seconds: float = Field(30.0, gt=0, le=3600, description="Longest run of a query.")
    max_rows: int = Field(10_000, ge=1, le=1_000_000, description="Most rows in one answer.")


class Settings(Section):
    """All of `mainstem.toml`."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_-]{0,62}$",
        description="Name of the project: small letters, digits, _ and -.",
    )
    profile: Literal["local", "cluster"] = Field(
        "local", description="local: Mainstem runs the servers. cluster: they are given by address."
    )
    kafka: KafkaSettings = KafkaSettings()
    postgres: PostgresSettings = PostgresSettings()
    spark: SparkSettings = SparkSettings()
    gateway: GatewaySettings = GatewaySettings()
    schemas: SchemasSettings = SchemasSettings()
    connect: ConnectSettings = ConnectSettings()
    query: QuerySettings = QuerySettings()


class Project(Section):
    """A project folder and its settings."""

    folder: Path
    settings: Settings

    @property
    def state_folder(self) -> Path:
        """Where the local stack keeps data, logs and its run file."""
        return self.folder / STATE_FOLDER

    @property
    def pipeline_folder(self) -> Path:
        """Where the definitions are."""
        return self.folder / "pipeline"


def find_project(start: Path) -> Project:
    """The project that `start` is in: the nearest folder upwards with a `mainstem.toml`."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / PROJECT_FILE).is_file():
            return load_project(folder)
    raise MainstemError("NOT_A_PROJECT", folder=str(start))


def load_project(folder: Path) -> Project:
    """The project in exactly this folder."""
    file = folder / PROJECT_FILE
    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise MainstemError("NOT_A_PROJECT", folder=str(folder)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MainstemError("CONFIG_INVALID", file=PROJECT_FILE, problem=str(error)) from None
    document = _expand(document)
    try:
        settings = Settings.model_validate(document)
    except ValidationError as error:
        raise _translate(error) from None
    if settings.profile == "cluster":
        for section, key, value in (
            ("kafka", "bootstrap_servers", settings.kafka.bootstrap_servers),
            ("postgres", "url", settings.postgres.url.get_secret_value()),
        ):
            if not value:
                problem = f'profile "cluster" needs [{section}] {key}'
                raise MainstemError("CONFIG_INVALID", file=PROJECT_FILE, problem=problem)
    return Project(folder=folder.resolve(), settings=settings)


def _expand(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _expand(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item) for item in value]
    if isinstance(value, str):
        return _ENVIRONMENT.sub(_from_environment, value)
    return value


def _from_environment(match: re.Match[str]) -> str:
    name = match.group(1)
    try:
        return os.environ[name]
    except KeyError:
        raise MainstemError("CONFIG_MISSING_ENVIRONMENT", name=name, file=PROJECT_FILE) from None


def _translate(error: ValidationError) -> MainstemError:
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    key = ".".join(path)
    if first["type"] == "extra_forbidden":
        known = _fields_at(path[:-1])
        return MainstemError(
            "CONFIG_UNKNOWN_KEY",
            key=key,
            file=PROJECT_FILE,
            suggestion=did_you_mean(path[-1], known),
        )
    # pydantic's own text would repeat the value, which may be a secret
    return MainstemError("CONFIG_INVALID", file=PROJECT_FILE, problem=f"{key}: {first['msg']}")


def _fields_at(path: list[str]) -> list[str]:
    model: type[BaseModel] = Settings
    for part in path:
        inner = model.model_fields[part].annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return list(model.model_fields)
