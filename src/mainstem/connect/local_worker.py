"""What the gateway and the stack tell each other of the local worker, in a private folder.

wanted.json   written by the gateway: which plugins its connectors need; none: no worker
worker.json   written by the stack: what has become of that

Both are only derived from what stands in the log, and are written whole or not at all. A gateway
that dies leaves the last word, with which the next stack begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Protocol

from mainstem.local.private_files import write_private

_WANTED = "wanted.json"
_WORKER = "worker.json"

WorkerState = Literal["off", "fetching", "starting", "ready", "failed", "elsewhere"]


@dataclass(frozen=True, slots=True)
class WorkerWord:
    """What the stack says of its worker."""

    state: WorkerState = "off"
    problem: str | None = None
    """Why it could not be started, until it could."""


class Worker(Protocol):
    """Who runs Kafka Connect: the stack, which is asked for it, or somebody elsewhere."""

    def wanted(self) -> frozenset[str]:
        """The plugins that it was asked for last."""

    def want(self, plugins: Iterable[str]) -> None:
        """Ask for a worker with these plugins; with none, for no worker."""

    def word(self) -> WorkerWord:
        """What has become of it."""


class LocalWorker:
    """The stack's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def wanted(self) -> frozenset[str]:
        """What stands in the file, which an earlier gateway may have written."""
        return wanted_plugins(self._folder)

    def want(self, plugins: Iterable[str]) -> None:
        """Writes it there."""
        want_plugins(self._folder, plugins)

    def word(self) -> WorkerWord:
        """What the stack has written."""
        return worker_word(self._folder)


class WorkerElsewhere:
    """A cluster by address: it has what plugins it has, and runs in any case."""

    def __init__(self) -> None:
        # an earlier gateway may have left connectors there: it has to be looked
        self._wanted = frozenset(("any",))

    def wanted(self) -> frozenset[str]:
        """What was asked for, of nobody."""
        return self._wanted

    def want(self, plugins: Iterable[str]) -> None:
        """Notes it."""
        self._wanted = frozenset(plugins)

    def word(self) -> WorkerWord:
        """Always the same."""
        return WorkerWord("elsewhere")


def wanted_plugins(folder: Path) -> frozenset[str]:
    """The plugins that the gateway asked for last."""
    found = _read(folder / _WANTED)
    return frozenset(map(str, found)) if isinstance(found, list) else frozenset()


def want_plugins(folder: Path, plugins: Iterable[str]) -> None:
    """Ask for a worker with these plugins; with none, for no worker."""
    asked = sorted(set(plugins))
    if frozenset(asked) != wanted_plugins(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(folder / _WANTED, json.dumps(asked))


def worker_word(folder: Path) -> WorkerWord:
    """What the stack said last; that there is none, if it said nothing."""
    found = _read(folder / _WORKER)
    if not isinstance(found, dict) or "state" not in found:
        return WorkerWord()
    return WorkerWord(found["state"], found.get("problem"))


def say_worker(folder: Path, word: WorkerWord) -> None:
    """Say what has become of the worker."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(folder / _WORKER, json.dumps(asdict(word)))


def _read(file: Path) -> object:
    try:
        return json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
