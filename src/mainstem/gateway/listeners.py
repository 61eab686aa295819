"""Sources that run in the gateway itself, kept in step with the catalog: a thread.

What is wanted stands in the catalog, and each look compares it with what runs: so it does not
matter when it looks or where it dies. A source that was changed, paused or dropped is stopped,
which hands over what it has taken in, and started again as it is wanted now.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mainstem.catalog.connectors import of_source
from mainstem.catalog.entry import Catalog
from mainstem.connect.catalogue import spec_of
from mainstem.connect.listening.makers import listens, make_source
from mainstem.connect.listening.running import Log, RunningSource, Task, Told
from mainstem.connect.secrets import Secrets
from mainstem.connect.spec import Role
from mainstem.definitions.model import Connection, Definition, Kind
from mainstem.errors import MainstemError
from mainstem.views.times import iso_utc

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 0.5
_RETRY_SECONDS = 5.0
_PATIENCE_SECONDS = 30.0

Make = Callable[[str, Task, Log], RunningSource]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A source of the catalog."""

    name: str
    flow_id: str
    captures: Connection
    stream: Definition
    paused: bool

    def same_as(self, other: _Wanted) -> bool:
        """True when what runs for one of them serves the other."""
        return self._sign == other._sign

    @property
    def _sign(self) -> tuple[object, ...]:
        stream = self.stream
        return self.flow_id, self.captures, self.paused, stream.topic, stream.columns


@dataclass(slots=True)
class _Kept:
    wanted: _Wanted
    told: Told
    running: RunningSource | None = None
    restarts: int = 0
    retry_at: float | None = None
    """When to try again what could not even be made."""


class Listeners:
    """All of them. `start` and `close` are for one thread, the rest for any."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        log: Log,
        secrets: Secrets,
        make: Make = make_source,
    ) -> None:
        self._catalog = catalog
        self._log = log
        self._secrets = secrets
        self._make = make
        self._kept: dict[str, _Kept] = {}
        """By name in small letters."""
        self._again: set[str] = set()
        self._look = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="listeners", daemon=True)

    # -- life

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def close(self) -> None:
        """Stop all sources; safe to call twice, and before `start`."""
        self._ended = True
        self._look.set()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE_SECONDS)

    def _run(self) -> None:
        while not self._ended:
            try:
                self.look()
            except Exception:  # noqa: BLE001 - the next look must come
                _LOG.exception("looking after sources failed; it goes on")
            self._look.wait(_LOOK_SECONDS)
            self._look.clear()
        for kept in self._kept.values():
            _stop(kept)

    def wake(self) -> None:
        """The catalog has changed."""
        self._look.set()

    # -- one look

    def look(self) -> None:
        """Compare, and do what is missing."""
        try:
            wanted = _wanted(self._catalog())
        except MainstemError:
            return  # the catalog cannot be read now
        again, self._again = self._again, set()
        for name in list(self._kept):
            if name not in wanted:
                _stop(self._kept[name])
                del self._kept[name]
        for name, source in wanted.items():
            self._keep(name, source, restart=name in again)

    def _keep(self, name: str, source: _Wanted, *, restart: bool) -> None:
        kept = self._kept.get(name)
        if kept is None or kept.wanted.flow_id != source.flow_id:
            if kept is not None:
                _stop(kept)
            kept = self._kept[name] = _Kept(source, Told(source.name))
        elif restart or not kept.wanted.same_as(source):
            _stop(kept)
            kept.restarts += restart
            kept.wanted, kept.retry_at = source, None
        if source.paused or kept.running is not None:
            return
        if kept.retry_at is None or time.monotonic() >= kept.retry_at:
            self._begin(kept)

    def _begin(self, kept: _Kept) -> None:
        source = kept.wanted
        try:
            spec = spec_of(Role.SOURCE, source.captures.connector)
            options = spec.resolve(dict(source.captures.options), self._secrets)
            task = Task(source.name, source.flow_id, source.stream, options)
            running = self._make(source.captures.connector, task, self._log)
        except MainstemError as error:
            kept.told.failed(error)
            kept.retry_at = time.monotonic() + _RETRY_SECONDS
            return
        kept.told, kept.running = running.told, running
        running.start()

    # -- what people see and ask

    def all(self) -> list[dict[str, Any]]:
        """Every source that runs in the gateway, by name."""
        return [_shown(kept) for _, kept in sorted(self._kept.items())]

    def one(self, name: str) -> dict[str, Any] | None:
        """One source; None when none of that name runs here."""
        kept = self._kept.get(name.lower())
        return None if kept is None else _shown(kept)

    def restart(self, name: str) -> None:
        """Stop a source and start it again, soon."""
        self._again.add(name.lower())
        self._look.set()

    def running(self, name: str) -> RunningSource | None:
        """What runs for a source of that name; None: nothing does."""
        kept = self._kept.get(name.lower())
        return None if kept is None else kept.running


def _wanted(catalog: Catalog) -> dict[str, _Wanted]:
    found = {}
    for entry in catalog.of_kind(Kind.SOURCE):
        captures = entry.definition.captures
        if captures is None or not listens(captures.connector):
            continue
        [stream] = of_source(catalog, entry.name)
        found[entry.name.lower()] = _Wanted(
            entry.name, entry.flow_id, captures, stream, entry.paused
        )
    return found


def _stop(kept: _Kept) -> None:
    if kept.running is not None:
        kept.running.stop()
        kept.running = None


def _shown(kept: _Kept) -> dict[str, Any]:
    told, wanted = kept.told, kept.wanted
    return {
        "name": wanted.name,
        "connector": wanted.captures.connector,
        "runs_in": "gateway",
        "state": "paused" if wanted.paused else told.state,
        "stream": wanted.stream.name,
        "tables": [],
        "tasks": [],
        "restarts": kept.restarts,
        "position": None,
        "held_bytes": None,
        "records": told.records,
        "quarantined": told.quarantined,
        "lost": told.lost,
        "detail": dict(told.detail),
        "error": told.error.problem() if told.error is not None else None,
        "last_error": told.last_error.problem() if told.last_error is not None else None,
        "last_error_at": iso_utc(told.last_error_at) if told.last_error_at else None,
    }
