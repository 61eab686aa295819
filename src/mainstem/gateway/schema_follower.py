"""Looks for new versions of the schemas that streams take their columns from, and takes them up.

The catalog gets the columns as it gets everything else: by a plan, written in one transaction that
fails when somebody else has written meanwhile; then the next look plans anew. Until it is written,
flows that take all columns wait at the first record of the new version (`engine.formats`), so it
does not matter when this thread looks, whether it dies in between, or how many gateways have one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from mainstem.catalog.entry import Catalog
from mainstem.catalog.plan import Plan
from mainstem.errors import MainstemError
from mainstem.gateway.follower import Follower, may_pass, overtaken
from mainstem.schemas.known import subject_of
from mainstem.schemas.source import SchemaSource

_LOG = logging.getLogger(__name__)

Seen = tuple[int, tuple[tuple[str, int], ...]]
"""The catalog's revision, and each subject with its newest version."""


class SchemaFollower(Follower):
    """A thread of the gateway. `follow` plans and applies; it may raise any error of ours."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        registry: SchemaSource,
        follow: Callable[[], Plan],
    ) -> None:
        super().__init__("schemas")
        self._catalog = catalog
        self._registry = registry
        self._follow = follow
        self._settled: Seen | None = None
        self._told: str | None = None

    def look(self) -> None:
        """Take up what is new; what went wrong is told once, and tried again if it may pass."""
        seen: Seen | None = None
        try:
            seen = self._seen()
            if seen is None or seen == self._settled:
                return
            plan = self._follow()
        except MainstemError as error:
            self._tell(error)
            if may_pass(error):
                return
        else:
            self._told = None
            for step in plan.steps:
                _LOG.info("%s follows its schema", step.entry.name)
        # what was refused stays refused until the catalog or a subject is another
        self._settled = seen

    def _seen(self) -> Seen | None:
        """What there is to follow; None: nothing."""
        catalog = self._catalog()
        streams = [e.definition for e in catalog.entries.values() if not e.definition.derived]
        subjects = sorted(subject_of(d) for d in streams if d.follows)
        if not subjects:
            return None
        return catalog.revision, tuple((s, self._newest(s)) for s in subjects)

    def _newest(self, subject: str) -> int:
        """The newest version of a subject; 0 when there is none any more."""
        try:
            return self._registry.versions(subject)[-1]
        except MainstemError as error:
            if error.code != "SUBJECT_UNKNOWN":
                raise
            return 0

    def _tell(self, error: MainstemError) -> None:
        if error.message != self._told and not overtaken(error):
            self._told = error.message
            _LOG.warning("new columns wait: %s", error)
