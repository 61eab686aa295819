"""The lock of jars: which artifacts the stack needs, with size and SHA-256 of each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

Plugin = Literal[
    "debezium-postgres",
    "debezium-mysql",
    "debezium-mariadb",
    "debezium-mongodb",
    "debezium-sqlserver",
]
"""Groups that Kafka Connect loads as plugins."""
Group = Literal["broker", "spark", "connect"] | Plugin
PLUGINS: tuple[Plugin, ...] = get_args(Plugin)
LOCK_FILE = "jars.lock"


@dataclass(frozen=True, slots=True)
class Jar:
    """One artifact, by its Maven coordinate `group:artifact:version`."""

    coordinate: str
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        """Name of the file, in a repository and in the cache."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"

    @property
    def path(self) -> str:
        """Path below the root of a Maven repository."""
        group, artifact, version = self.coordinate.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.file_name}"


@cache
def locked_jars(group: Group) -> tuple[Jar, ...]:
    """The jars of a group, in the order of the lock."""
    return parse_lock(files("mainstem.local").joinpath(LOCK_FILE).read_text("utf-8"))[group]


def parse_lock(text: str) -> dict[str, tuple[Jar, ...]]:
    """All groups of a lock's text."""
    return {
        group: tuple(
            Jar(coordinate, entry["sha256"], entry["size"]) for coordinate, entry in jars.items()
        )
        for group, jars in tomllib.loads(text).items()
    }
