"""The topics of one case: made, read to their end, deleted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mainstem.definitions.model import Definition, Kind
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import Record

LONGEST_WAIT_SECONDS = 120
_KEPT = {"retention.ms": "-1"}
"""Records of a case may have any time, and stay however old that is."""


@dataclass
class CaseTopics:
    """Those of a case have a prefix of its own."""

    connection: Connection
    admin: Admin
    prefix: str
    _made: set[str] = field(default_factory=set)
    _read: dict[str, tuple[dict[int, int], dict[int, int], list[Record]]] = field(
        default_factory=dict
    )
    """What was read of a topic between two positions: it is asked for again and again."""

    def ensure(self, definitions: Iterable[Definition], partitions: int) -> None:
        """Makes the topics of definitions, where they are missing."""
        self.admin.ensure_topics(_topic_of(definition, partitions) for definition in definitions)

    def make(self, name: str, partitions: int) -> str:
        """Makes a topic that no definition asked for; gives its whole name."""
        topic = self.prefix + name
        self.admin.ensure_topic(TopicSpec(topic, partitions, 1, _KEPT))
        self._made.add(topic)
        return topic

    def delete(self, topic: str) -> None:
        """Deletes a topic; one of its name begins from nothing."""
        self.admin.delete_topic(topic)
        self._read.pop(topic, None)

    def close(self, others: set[str]) -> None:
        """Deletes what was made, and others."""
        self.admin.delete_topics(others | self._made)

    def settle(self, topic: str) -> None:
        """Waits until all that was committed can be read: the broker marks it a moment later."""
        eventually(
            lambda: self.admin.end_offsets(topic) == self.admin.end_offsets(topic, committed=False),
            LONGEST_WAIT_SECONDS,
            what=f"all transactions of {topic} have ended",
        )

    def records(self, topic: str) -> list[Record]:
        """All committed records of a topic, partition by partition."""
        self.settle(topic)
        begin, end = self.admin.begin_offsets(topic), self.admin.end_offsets(topic)
        known = self._read.get(topic)
        if known is None or known[:2] != (begin, end):
            batches = read_range(self.connection, topic, begin, end)
            records = sorted((r for b in batches for r in b), key=lambda r: (r.partition, r.offset))
            self._read[topic] = known = (begin, end, records)
        return [*known[2]]


def _topic_of(definition: Definition, partitions: int) -> TopicSpec:
    policy = "compact,delete" if definition.kind is Kind.TABLE else "delete"
    config = {"cleanup.policy": policy, **_KEPT}
    return TopicSpec(definition.topic, definition.partitions or partitions, 1, config)
