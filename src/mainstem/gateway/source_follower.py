"""Looks for flows that wait at a change with columns that nobody knows yet, and takes these up.

The source's database is looked into again, as `mainstem apply` does, and what comes of it is
written if columns are added in place and nothing else. Until then the flows wait, and lose nothing;
so it does not matter when this thread looks, whether it dies, or how many gateways have one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from mainstem.catalog.entry import Catalog
from mainstem.catalog.plan import Plan
from mainstem.errors import MainstemError
from mainstem.gateway.follower import Follower, may_pass, overtaken
from mainstem.schemas.changes import CHANGED

_LOG = logging.getLogger(__name__)
_PAUSE_SECONDS = 10.0
"""Between two looks into a source that did not answer, or has nothing new to tell."""

Waiting = tuple[int, str]
"""The catalog's revision, and what is said to have changed."""


class SourceFollower(Follower):
    """A thread of the gateway. `grow` plans and applies; it may raise any error of ours."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        statuses: Callable[[], Mapping[str, Mapping[str, Any]]],
        grow: Callable[[str], Plan],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("columns of sources")
        self._catalog = catalog
        self._statuses = statuses
        self._grow = grow
        self._clock = clock
        self._not_before: dict[str, float] = {}
        self._settled: dict[str, Waiting] = {}
        self._told: dict[str, str] = {}

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
            if not overtaken(error) and self._told.get(source) != error.message:
                self._told[source] = error.message
                _LOG.warning("new columns of %s wait: %s", source, error.message)
            return not may_pass(error)
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
