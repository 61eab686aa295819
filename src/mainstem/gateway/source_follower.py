"""Looks for flows that wait at a change with columns that nobody knows yet, and takes these up.

The source's database is looked into again, as `mainstem apply` does, and what comes of it is
written if columns are added in place and nothing else. Until then the flows wait, and lose nothing;
so it does not matter when this thread looks, whether it dies, or how many gateways have one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from mainstem.catalog.entry import Catalog
from mainstem.catalog.plan import Plan
from mainstem.errors import MainstemError
from mainstem.schemas.changes import CHANGED

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0
_PATIENCE_SECONDS = 2.0
_OVERTAKEN = ("STALE_PLAN", "CONCURRENT_APPLY")
_SERVER_ERROR = 500
_PAUSE_SECONDS = 10.0
"""Between two looks into a source that did not answer, or has nothing new to tell."""

Waiting = tuple[int, str]
"""The catalog's revision, and what is said to have changed."""


class SourceFollower:
    """A thread of the gateway. `grow` plans and applies; it may raise any error of ours."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        statuses: Callable[[], Mapping[str, Mapping[str, Any]]],
        grow: Callable[[str], Plan],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._catalog = catalog
        self._statuses = statuses
        self._grow = grow
        self._clock = clock
        self._not_before: dict[str, float] = {}
        self._settled: dict[str, Waiting] = {}
        self._told: dict[str, str] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sources", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def close(self) -> None:
        """End; safe to call twice, and before `start`. A look that waits for others is left."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE_SECONDS)

    def look(self) -> None:
        """Take up what is new; what was refused stays so until something else is said."""
        try:
            waiting = self._waiting()
        except MainstemError:
            return  # the catalog cannot be read now
        for source, what in waiting.items():
            if self._settled.get(source) == what or self._clock() < self._not_before.get(source, 0):
                continue
            if self._take_up(source):
                self._settled[source] = what
            else:
                self._not_before[source] = self._clock() + _PAUSE_SECONDS

    def _take_up(self, source: str) -> bool:
        """False: it may go better at the next look."""
        try:
            plan = self._grow(source)
        except MainstemError as error:
            if error.code not in _OVERTAKEN and self._told.get(source) != error.message:
                self._told[source] = error.message
                _LOG.warning("new columns of %s wait: %s", source, error.message)
            return error.status < _SERVER_ERROR and error.code not in _OVERTAKEN
        self._told.pop(source, None)
        for step in plan.steps:
            _LOG.info("%s follows its source", step.entry.name)
        return bool(plan.steps)

    def _waiting(self) -> dict[str, Waiting]:
        """Sources, each with what a flow says that waits for a look into it."""
        found: dict[str, Waiting] = {}
        catalog = self._catalog()
        statuses = self._statuses()
        for entry in catalog.flows():
            said = statuses.get(entry.name) or {}
            error = said.get("error") or {}
            if error.get("title") != CHANGED or said.get("generation") != entry.generation:
                continue
            query = entry.definition.query
            for name in query.inputs if query is not None else ():
                read = catalog.get(name)
                if read is not None and read.definition.source is not None:
                    what = str(error.get("detail"))
                    found[read.definition.source] = (catalog.revision, what)
        return found

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - the next look must come
                _LOG.exception("looking for new columns of sources failed; it goes on")
