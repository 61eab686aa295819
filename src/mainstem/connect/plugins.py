"""Plugins of Kafka Connect that a project brings: jars in its folder `plugins`, and their classes.

A class is closed to definitions unless it is in one of these jars, or, of a cluster elsewhere, is
named in `mainstem.toml`: whoever may write SQL may not thereby run any class that a worker has.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mainstem.errors import MainstemError, did_you_mean

FOLDER = "plugins"
"""Of a project: a folder for each plugin, or a jar that needs no other."""
OF_PROJECT = "project"
"""Among the plugins that a worker is asked for: all that the project brings."""
_SERVICES = (
    "META-INF/services/org.apache.kafka.connect.source.SourceConnector",
    "META-INF/services/org.apache.kafka.connect.sink.SinkConnector",
)


@dataclass(frozen=True, slots=True)
class AllowedPlugins:
    """Which classes definitions may name."""

    folder: Path | None = None
    """With the jars of the local worker; None: it is a cluster elsewhere."""
    classes: Sequence[str] = ()
    """Those of a cluster elsewhere."""

    def check(self, name: str) -> None:
        """PLUGIN_UNKNOWN for any other class."""
        if self.folder is None:
            if name not in self.classes:
                raise _unknown(name, self.classes, "`classes` of [connect] in mainstem.toml")
            return
        jars = [jar for plugin in plugin_jars(self.folder).values() for jar in plugin]
        if not any(_has(jar, name) for jar in jars):
            known = [found for jar in jars for found in _connectors(jar)]
            raise _unknown(name, known, f"the jars of the folder {FOLDER} of the project")


NONE_ALLOWED = AllowedPlugins()


def plugin_jars(folder: Path) -> Mapping[str, Sequence[Path]]:
    """The jars of each plugin in a folder, by its name; none, when there is no such folder."""
    if not folder.is_dir():
        return {}
    found = {
        place.name: _jars_of(place) if place.is_dir() else [place]
        for place in sorted(folder.iterdir())
        if place.is_dir() or place.suffix == ".jar"
    }
    return {name: jars for name, jars in found.items() if jars}


def _jars_of(place: Path) -> list[Path]:
    """All below a folder; of two with one name the first, for a worker has them side by side."""
    named: dict[str, Path] = {}
    for jar in sorted(place.rglob("*.jar")):
        named.setdefault(jar.name, jar)
    return list(named.values())


def _has(jar: Path, name: str) -> bool:
    return f"{name.replace('.', '/')}.class" in _entries(jar)


def _connectors(jar: Path) -> Iterator[str]:
    """The classes that a jar says are connectors."""
    entries = _entries(jar)
    for service in _SERVICES:
        if service in entries:
            with zipfile.ZipFile(jar) as archive:
                lines = archive.read(service).decode("utf-8", "replace").splitlines()
            yield from filter(None, (line.partition("#")[0].strip() for line in lines))


def _entries(jar: Path) -> frozenset[str]:
    try:
        with zipfile.ZipFile(jar) as archive:
            return frozenset(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return frozenset()


def _unknown(name: str, known: Sequence[str], where: str) -> MainstemError:
    return MainstemError(
        "PLUGIN_UNKNOWN",
        option="class",
        name=name,
        where=where,
        known=", ".join(known) or "none",
        suggestion=did_you_mean(name, known),
    )
