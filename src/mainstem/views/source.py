"""The log as subscriptions read it: all topics of one stream or table, records as JSON text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mainstem.definitions.model import Definition, Format, Kind
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.schemas.codec import Codec, NotDecoded
from mainstem.views.batch import record_text
from mainstem.views.events import Places
from mainstem.vocabulary import Offsets, Record

Positions = dict[str, dict[int, int]]
_FETCH = {"fetch.wait.max.ms": 100, "queued.max.messages.kbytes": 4096}
"""A reader of changes must be quick to answer and small."""


class LogReader(Protocol):
    """Reads from given places on. For one thread at a time."""

    def step(self, max_records: int, timeout: float) -> list[Record]:
        """The next records; none when the time is over or only a position has moved."""
        ...

    def positions(self) -> Positions:
        """The next offsets to read."""
        ...

    def add(self, topic: str, offsets: Offsets) -> None:
        """Read this topic, too."""
        ...

    def remove(self, topic: str) -> None:
        """Stop reading a topic."""
        ...

    def close(self) -> None:
        """End."""
        ...


class ObjectLog(Protocol):
    """The log of one stream or table. Every method blocks, and may be called from any thread."""

    @property
    def grows(self) -> bool:
        """True when topics may come and go."""
        ...

    def topics(self) -> list[str]:
        """The topics that there are."""
        ...

    def begins(self, topics: Iterable[str] | None = None) -> Positions:
        """The first offsets of these topics, or of all."""
        ...

    def ends(self) -> Positions:
        """The offsets behind the last committed records."""
        ...

    def deletions_kept(self) -> float | None:
        """For how many seconds at least a deletion can be read; None: as long as all else."""
        ...

    def open(self, places: Places) -> LogReader:
        """A reader from these places on."""
        ...

    def texts(self, records: list[Record]) -> tuple[list[Record], int]:
        """The records with keys and values as JSON, and how many cannot be read.

        Records of another name are neither.
        """
        ...


class KafkaLog:
    """The log of an object in Kafka."""

    def __init__(
        self, connection: Connection, admin: Admin, codec: Codec, definition: Definition
    ) -> None:
        self._connection = connection
        self._admin = admin
        self._codec = codec
        self._definition = definition
        self.grows = definition.pattern is not None

    def topics(self) -> list[str]:
        """See ObjectLog."""
        return self._admin.topics_of(self._definition)

    def begins(self, topics: Iterable[str] | None = None) -> Positions:
        """See ObjectLog."""
        if topics is not None:
            return self._admin.all_begin_offsets(topics)
        return self._there(self._admin.all_begin_offsets(self.topics()))

    def ends(self) -> Positions:
        """See ObjectLog."""
        return self._there(self._admin.all_end_offsets(self.topics()))

    def deletions_kept(self) -> float | None:
        """See ObjectLog."""
        if self._definition.kind is not Kind.TABLE:
            return None
        topic = self._admin.topic(self._definition.topic)
        if topic is None or "compact" not in topic.config.get("cleanup.policy", ""):
            return None
        return int(topic.config.get("delete.retention.ms", "86400000")) / 1000

    def open(self, places: Places) -> LogReader:
        """See ObjectLog."""
        return Reader(self._connection, places, committed=True, tuning=_FETCH)

    def texts(self, records: list[Record]) -> tuple[list[Record], int]:
        """See ObjectLog."""
        definition, codec = self._definition, self._codec
        keys = definition.keys
        if definition.format is Format.JSON and keys is None:
            return records, 0
        made, bad = [], 0
        for record in records:
            try:
                if codec.is_own(definition, record.value):
                    made.append(record_text(record, definition, keys, codec))
            except NotDecoded:
                bad += 1
        return made, bad

    def _there(self, answer: Positions) -> Positions:
        if not answer and not self.grows:
            raise MainstemError("UNKNOWN_TOPIC", topic=self._definition.topic, suggestion="")
        return answer


def reached(place: Places, goal: Places) -> bool:
    """True when a reader at `place` has read all before `goal`."""
    return all(
        place.get(topic, {}).get(partition, -1) >= offset
        for topic, at in goal.items()
        for partition, offset in at.items()
    )


def furthest(place: Places, other: Places) -> Places:
    """In each partition of `place` where the further of the two is."""
    return {
        topic: {p: max(offset, other.get(topic, {}).get(p, 0)) for p, offset in at.items()}
        for topic, at in place.items()
    }


def merged(place: Places, more: Places) -> Places:
    """A place, further on in some partitions."""
    return {**place, **{topic: {**place.get(topic, {}), **at} for topic, at in more.items()}}


def check_hole(log: ObjectLog, before: Places, records: Iterable[Record]) -> None:
    """RESUME_TOKEN_INVALID when the log has dropped records between a place and the next ones.

    Holes are normal (markers of transactions, compaction), so only the log's beginning tells.
    """
    first: dict[tuple[str, int], int] = {}
    for record in records:
        first.setdefault((record.topic, record.partition), record.offset)
    holes = {
        (topic, partition)
        for (topic, partition), offset in first.items()
        if offset > before.get(topic, {}).get(partition, offset)
    }
    if not holes:
        return
    begins = log.begins({topic for topic, _ in holes})
    if any(before[t][p] < begins.get(t, {}).get(p, 0) for t, p in holes):
        raise MainstemError(
            "RESUME_TOKEN_INVALID", problem="the log dropped records before they were sent"
        )
