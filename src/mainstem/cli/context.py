"""What a command knows of its surroundings: options, project, running stack, gateway, log."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mainstem.cli.output import Format, colour_allowed
from mainstem.errors import MainstemError

if TYPE_CHECKING:  # these take long to import, and `--help` needs none of them
    from mainstem.client import Client
    from mainstem.config import Project
    from mainstem.local.run_file import RunInfo
    from mainstem.log.connection import Connection
    from mainstem.schemas.registry_client import RegistryClient


@dataclass(frozen=True, slots=True)
class Options:
    """The options that every command has; None means not given."""

    project: Path | None = None
    url: str | None = None
    timeout: float | None = None
    quiet: bool | None = None
    verbose: bool | None = None
    no_color: bool | None = None
    output: Format | None = None

    def over(self, base: Options) -> Options:
        """These options, and where they say nothing those of `base`."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(base, **{name: value for name, value in given.items() if value is not None})


class Session:
    """One run of a command."""

    def __init__(self, options: Options) -> None:
        self.options = options

    # -- talking to the user

    @property
    def colour(self) -> bool:
        """False when colours are not wanted at all."""
        return not self.options.no_color

    def form(self, default: Format = Format.TABLE) -> Format:
        """The output format that was asked for."""
        return self.options.output or default

    def say(self, message: str) -> None:
        """A message on stderr, unless --quiet."""
        if not self.options.quiet:
            sys.stderr.write(message + "\n")
            sys.stderr.flush()

    def say_more(self, message: str) -> None:
        """A message on stderr, only with --verbose."""
        if self.options.verbose:
            self.say(message)

    def warn(self, message: str) -> None:
        """A message on stderr that even --quiet lets through."""
        if colour_allowed(sys.stderr, wanted=self.colour):
            message = f"\x1b[33m{message}\x1b[0m"
        sys.stderr.write(message + "\n")
        sys.stderr.flush()

    # -- project and running stack

    @cached_property
    def project(self) -> Project:
        """The one of --project or MAINSTEM_PROJECT, else the one that the working folder is in."""
        from mainstem.config import find_project, load_project

        folder = self.options.project or os.environ.get("MAINSTEM_PROJECT")
        return load_project(Path(folder)) if folder else find_project(Path.cwd())

    @cached_property
    def run(self) -> RunInfo:
        """Where the parts of the project's running stack are."""
        from mainstem.local.run_file import running

        info = running(self.project)
        if info is None:
            raise MainstemError("NOT_RUNNING", folder=str(self.project.folder))
        return info

    @cached_property
    def timeout(self) -> float:
        """Longest wait for an answer, in seconds."""
        return self.options.timeout if self.options.timeout is not None else 60.0

    @cached_property
    def url(self) -> str:
        """Where the gateway is: --url, MAINSTEM_URL, the project's settings, the running stack."""
        given = self.options.url or os.environ.get("MAINSTEM_URL")
        if given:
            return given
        return self.project.settings.gateway.url or self.run.gateway_url

    @cached_property
    def client(self) -> Client:
        """A client of the gateway."""
        from mainstem.client import Client

        client = Client(self.url, self.timeout)
        self.say_more(f"gateway: {client.url}")
        return client

    @cached_property
    def registry(self) -> RegistryClient:
        """The schema registry: the gateway's, or the one that the project's settings name.

        A gateway that is given by --url or MAINSTEM_URL goes before the settings of a project.
        """
        from mainstem.schemas.registry_client import RegistryClient

        if not (self.options.url or os.environ.get("MAINSTEM_URL")):
            schemas = self.project.settings.schemas
            if schemas.registry:
                self.say_more(f"registry: {schemas.registry}")
                return RegistryClient.from_settings(schemas, timeout=self.timeout)
        import httpx2

        # the client's own URL has no password in it, so that messages have none
        url, given = f"{self.client.url.rstrip('/')}/registry", httpx2.URL(self.url)
        return RegistryClient(url, given.username, given.password, timeout=self.timeout)

    @cached_property
    def connection(self) -> Connection:
        """How to reach the log itself."""
        from mainstem.log.connection import Connection

        kafka = self.project.settings.kafka
        servers = kafka.bootstrap_servers or self.run.bootstrap_servers
        self.say_more(f"log: {servers}")
        return Connection.from_settings(kafka, servers)


def interactive() -> bool:
    """True when a person sits at both ends, so that questions can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def debugging() -> bool:
    """True when stack traces are wanted (MAINSTEM_DEBUG=1)."""
    return os.environ.get("MAINSTEM_DEBUG", "") not in ("", "0")
