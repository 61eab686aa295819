"""The newest records of a topic, as they come, for somebody who looks at them.

A person reads some records a second; a topic may have tens of thousands. So what is behind is not
read: each step begins at most so many records before the end, and says how many it passed over.
The cost of a step does not depend on how fast the topic is.
"""

from __future__ import annotations

from dataclasses import dataclass

from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.vocabulary import Record

_MOST_OF_A_PARTITION = 50
_WAIT_SECONDS = 0.3
_TUNING = {"fetch.wait.max.ms": 100, "queued.min.messages": 1, "queued.max.messages.kbytes": 2048}


@dataclass(frozen=True, slots=True)
class Seen:
    """What one step has found."""

    records: list[Record]
    skipped: int
    """Offsets that were passed over; markers of transactions count, too."""
    offsets: dict[int, int]
    """Where the next step begins."""


class Tail:
    """Reads the end of one topic. For one thread at a time."""

    def __init__(
        self,
        connection: Connection,
        admin: Admin,
        topic: str,
        partition: int | None = None,
        after: dict[int, int] | None = None,
    ) -> None:
        ends = admin.end_offsets(topic)
        chosen = ends if partition is None else {p: o for p, o in ends.items() if p == partition}
        known = after or {}
        start = {p: min(known.get(p, end), end) for p, end in chosen.items()}
        self._admin = admin
        self._topic = topic
        self._reader = Reader(connection, {topic: start}, committed=True, tuning=_TUNING)

    def step(self) -> Seen:
        """The records that came since, the newest of them if they are many."""
        skipped = self._catch_up()
        records = self._reader.poll(_MOST_OF_A_PARTITION * 4, _WAIT_SECONDS)
        return Seen(records, skipped, self._reader.positions().get(self._topic, {}))

    def close(self) -> None:
        """Ends the reading."""
        self._reader.close()

    def _catch_up(self) -> int:
        """Passes over what nobody could read; says how much that is."""
        ends = self._admin.end_offsets(self._topic)
        skipped = 0
        for partition, at in self._reader.positions().get(self._topic, {}).items():
            first = ends.get(partition, at) - _MOST_OF_A_PARTITION
            if at < first:
                self._reader.remove(self._topic, [partition])
                self._reader.add(self._topic, {partition: first})
                skipped += first - at
        return skipped
