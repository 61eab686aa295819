"""Where the parts of a running stack find one another; handed to each child in its environment."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from mainstem.errors import MainstemError

VARIABLE = "MAINSTEM_ENDPOINTS"


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
