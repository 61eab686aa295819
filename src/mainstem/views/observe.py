"""Where the topics of the views begin and end, asked once a second: lag and freshness."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.vocabulary import Offsets

_LOG = logging.getLogger(__name__)
_EVERY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """First offset and committed end of each partition of a topic."""

    begin: dict[int, int]
    end: dict[int, int]


@dataclass(frozen=True, slots=True)
class ViewProgress:
    """How far a view is in its topic."""

    name: str
    topic: str
    offsets: dict[int, int]
    """Next offset to read, per partition."""
    end_offsets: dict[int, int]
    lag_records: int
    quarantined: int
    updated_at: str | None
    """When rows were last written."""


class Observer:
    """Keeps the ends of the watched topics. Safe for use from several threads."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._topics: frozenset[str] = frozenset()
        self._ends: dict[str, dict[int, int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="views-observer", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def watch(self, topics: Iterable[str]) -> None:
        """Watch exactly these topics from now on."""
        self._topics = frozenset(topics)

    def look(self, topic: str) -> TopicEnds:
        """The ends of a topic now; UNKNOWN_TOPIC when it is not there."""
        ends = TopicEnds(self._admin.begin_offsets(topic), self._admin.end_offsets(topic))
        self._ends[topic] = ends.end
        return ends

    def ends_of(self, topic: str) -> dict[int, int] | None:
        """The last known ends of a watched topic."""
        return self._ends.get(topic)

    def progress(
        self,
        name: str,
        topic: str,
        offsets: dict[int, int],
        *,
        quarantined: int,
        updated_at: str | None,
    ) -> ViewProgress:
        """The progress of a view that has read up to `offsets`."""
        ends = self._ends.get(topic, {})
        return ViewProgress(
            name, topic, offsets, dict(ends), lag(offsets, ends), quarantined, updated_at
        )

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_SECONDS):
            for topic in self._topics:
                try:
                    self._ends[topic] = self._admin.end_offsets(topic)
                except MainstemError as error:
                    _LOG.debug("ends of %s: %s", topic, error)


def lag(offsets: Offsets, ends: Offsets) -> int:
    """Offsets between a position and the ends; a partition not begun counts from 0."""
    return sum(max(0, end - offsets.get(partition, 0)) for partition, end in ends.items())
