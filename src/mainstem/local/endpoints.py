"""Where the parts of a running stack find one another; handed to each child in its environment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from mainstem.errors import MainstemError

VARIABLE = "MAINSTEM_ENDPOINTS"


class ConnectAddress(BaseModel):
    """Where Kafka Connect is, whether it runs at this moment or not."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    user: str
    password: SecretStr
    secrets: Path
    """Folder in which its workers find the passwords of connectors."""
    local: Path | None = None
    """Folder of the stack's own worker, by which it is asked for; None: a cluster elsewhere."""

    @property
    def port(self) -> int:
        """Port of the stack's own worker."""
        return urlsplit(self.url).port or 0


class Endpoints(BaseModel):
    """Addresses and artifacts of one stack.

    They travel in an environment variable, because a command line, which would show the
    passwords, can be read by every user of the machine.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bootstrap_servers: str
    postgres_url: SecretStr
    """URL of the owner role: it creates and fills the served tables."""
    postgres_reader_url: SecretStr
    """URL of the role that can only read."""
    gateway_host: str
    gateway_port: int
    state_folder: Path
    spark_jars: tuple[Path, ...] = ()
    """Jars for `spark.jars`."""
    bare_fs_jar: Path | None = None
    """Jar of the file system without forked `chmod`s, for `spark.driver.extraClassPath`."""
    java_home: Path | None = None
    class_archive: Path | None = None
    """Where Spark's classes are kept, once that has been made."""
    connect: ConnectAddress | None = None
    """None: there is no Kafka Connect, and no source can use it."""

    @property
    def gateway_url(self) -> str:
        """The gateway as a client on this machine reaches it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(  # noqa: S104 - compared, not bound
            self.gateway_host, self.gateway_host
        )
        return f"http://{host}:{self.gateway_port}"

    def environment(self) -> dict[str, str]:
        """The variable that carries these endpoints to a child."""
        plain = self.model_dump(mode="json")
        plain["postgres_url"] = self.postgres_url.get_secret_value()
        plain["postgres_reader_url"] = self.postgres_reader_url.get_secret_value()
        if self.connect is not None:
            plain["connect"]["password"] = self.connect.password.get_secret_value()
        return {VARIABLE: json.dumps(plain)}

    @classmethod
    def from_environment(cls) -> Endpoints:
        """The endpoints that the stack handed to this process."""
        text = os.environ.get(VARIABLE)
        if not text:
            raise MainstemError(
                "CONFIG_MISSING_ENVIRONMENT", name=VARIABLE, file="a process of the stack"
            )
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            # the whole text would repeat the passwords
            fields = ", ".join(".".join(map(str, item["loc"])) for item in error.errors())
            raise MainstemError(
                "CONFIG_INVALID", file=VARIABLE, problem=f"wrong or missing: {fields}"
            ) from None
