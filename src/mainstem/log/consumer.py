"""Reading from the log: from given positions, over a bounded range, and as member of a group."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from mainstem.log.connection import Connection
from mainstem.log.errors import is_transient, translate, unreachable
from mainstem.vocabulary import Offsets, Record

_NO_GROUP = "mainstem.reader"  # librdkafka wants a name even when nothing is committed
_ALONE_SECONDS = 5.0
"""How long a client may look for a broker before a new one does (confluentinc/librdkafka#5301)."""


class Reader:
    """Reads partitions from given positions, without a group. For one thread at a time.

    A position before the first record that is left goes on at that record. While the broker is
    away, `poll` gives nothing and the reader goes on when it is back.
    """

    def __init__(
        self,
        connection: Connection,
        positions: Mapping[str, Mapping[int, int]],
        committed: bool = True,
        tuning: Mapping[str, Any] | None = None,
    ) -> None:
        self._connection = connection
        self._positions: dict[tuple[str, int], int] = {}
        settings = {
            "group.id": _NO_GROUP,
            "auto.offset.reset": "earliest",
            "error_cb": self._note,
        }
        self._settings = connection.consumer(settings, tuning, committed=committed)
        self._alone_since: float | None = None
        self._consumer = Consumer(self._settings)
        for topic, offsets in positions.items():
            self.add(topic, offsets)

    def poll(self, max_records: int = 10_000, timeout: float = 1.0) -> list[Record]:
        """The next records as soon as there are some; none when nothing comes until `timeout`."""
        deadline = time.monotonic() + timeout
        while True:
            records = self._step(max_records, deadline)
            if records or time.monotonic() >= deadline:
                return records

    def step(self, max_records: int, timeout: float) -> list[Record]:
        """As `poll`, but returns, without records, also when only a position has moved."""
        return self._step(max_records, time.monotonic() + timeout)

    def positions(self) -> dict[str, dict[int, int]]:
        """The next offset to read, by topic and partition.

        Goes past transaction markers and compacted records once the partition's end is reached,
        so a reader that has seen everything stands at the end offset.
        """
        positions: dict[str, dict[int, int]] = {}
        for (topic, partition), offset in self._positions.items():
            positions.setdefault(topic, {})[partition] = offset
        return positions

    def add(self, topic: str, offsets: Offsets) -> None:
        """Read these partitions, too, from these offsets."""
        if not offsets:
            return
        self._positions.update({(topic, p): offset for p, offset in offsets.items()})
        self._consumer.incremental_assign([TopicPartition(topic, p, o) for p, o in offsets.items()])

    def remove(self, topic: str, partitions: Sequence[int] | None = None) -> None:
        """Stop reading the topic, or some partitions of it."""
        gone = [
            (name, partition)
            for name, partition in self._positions
            if name == topic and (partitions is None or partition in partitions)
        ]
        for position in gone:
            del self._positions[position]
        if gone:
            self._consumer.incremental_unassign([TopicPartition(t, p) for t, p in gone])

    def close(self) -> None:
        """End; safe to call twice."""
        self._consumer.close()

    def _step(self, max_records: int, deadline: float) -> list[Record]:
        alone = self._alone_since
        if alone is not None and time.monotonic() - alone > _ALONE_SECONDS:
            self._begin_anew()
        return self._take(_next(self._consumer, max_records, deadline))

    def _note(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._alone_since = self._alone_since or time.monotonic()

    def _begin_anew(self) -> None:
        """Go on with a new client: one that saw no broker for a moment may never find one again."""
        self._consumer.close()
        self._consumer = Consumer(self._settings)
        self._alone_since = None
        self._consumer.assign([TopicPartition(t, p, o) for (t, p), o in self._positions.items()])

    def _take(self, messages: list[Message]) -> list[Record]:
        records = []
        positions = self._positions
        for message in messages:
            place = (message.topic() or "", message.partition() or 0)
            error = message.error()
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                self._alone_since = None
            if error is None:
                if place in positions:  # may be queued from before a `remove`
                    record = to_record(message)
                    positions[place] = record.offset + 1
                    records.append(record)
            elif error.code() == KafkaError._PARTITION_EOF:
                if place in positions:
                    positions[place] = max(positions[place], message.offset() or 0)
            elif not is_transient(error):
                servers = self._connection.servers
                raise translate(error, "to be read", servers=servers, topic=place[0] or None)
        return records


def read_range(
    connection: Connection,
    topic: str,
    start: Offsets,
    end: Offsets,
    committed: bool = True,
    *,
    timeout: float = 30.0,
) -> Iterator[list[Record]]:
    """All records from `start` up to, not including, `end`, in lists; then it ends.

    It ends also when the last offsets of the range are transaction markers or were compacted
    away. With `committed`, an `end` behind an open transaction waits for that transaction.
    LOG_UNREACHABLE when there is no progress for `timeout` seconds.
    """
    left = {p: offset for p, offset in end.items() if offset > start.get(p, 0)}
    if not left:
        return
    # The end of a partition is reported with the fetch after the last record: keep that short.
    reader = Reader(
        connection,
        {topic: {p: start.get(p, 0) for p in left}},
        committed,
        {"fetch.wait.max.ms": 10},
    )
    try:
        deadline = time.monotonic() + timeout
        while left:
            records = reader.step(10_000, min(1.0, timeout))
            positions = reader.positions()[topic]
            inside = [r for r in records if r.partition in left and r.offset < left[r.partition]]
            if inside:
                yield inside
            finished = [p for p, offset in left.items() if positions[p] >= offset]
            for partition in finished:
                del left[partition]
            if finished and left:
                reader.remove(topic, finished)
            if records or finished:
                deadline = time.monotonic() + timeout
            elif time.monotonic() > deadline:
                raise unreachable(connection.servers)
    finally:
        reader.close()


class GroupConsumer:
    """Member of a consumer group. Use it from one thread, and poll at least every five minutes.

    Nothing is committed by itself: `commit` commits what `poll` has handed out, so work that was
    done before a crash but not committed comes again, to this member or another.
    """

    def __init__(
        self,
        connection: Connection,
        group: str,
        topics: Sequence[str],
        start: str = "earliest",
        tuning: Mapping[str, Any] | None = None,
    ) -> None:
        self._connection = connection
        self._positions: dict[tuple[str, int], int] = {}
        self._consumer = Consumer(
            connection.consumer(
                {"group.id": group, "auto.offset.reset": start, "enable.partition.eof": False},
                {
                    "session.timeout.ms": 10_000,
                    "heartbeat.interval.ms": 1_000,
                    # A member that comes or goes does not interrupt what the others keep.
                    "partition.assignment.strategy": "cooperative-sticky",
                    **(tuning or {}),
                },
            )
        )
        if topics:
            self.subscribe(topics)

    def subscribe(self, topics: Sequence[str]) -> None:
        """Read these topics from now on, and no others; none: leave the group."""
        if topics:
            self._consumer.subscribe(list(topics), on_revoke=self._forget, on_lost=self._forget)
        else:
            self._consumer.unsubscribe()
            self._positions.clear()

    def poll(self, max_records: int = 10_000, timeout: float = 1.0) -> list[Record]:
        """The next records as soon as there are some; none when nothing comes until `timeout`."""
        records = []
        for message in _next(self._consumer, max_records, time.monotonic() + timeout):
            error = message.error()
            if error is None:
                record = to_record(message)
                self._positions[record.topic, record.partition] = record.offset + 1
                records.append(record)
            elif not is_transient(error):
                raise translate(
                    error,
                    "to be read",
                    servers=self._connection.servers,
                    topic=message.topic(),
                )
        return records

    def commit(self) -> None:
        """Commit behind all that `poll` has handed out, and wait until that is done.

        LOG_FAILED when the partitions have meanwhile gone to another member: the records that
        were not committed come again there.
        """
        self.commit_at(self._positions)

    def commit_at(self, positions: Mapping[tuple[str, int], int]) -> None:
        """Commit these, by topic and partition: the next offsets to be read after a hand-over."""
        if not positions:
            return
        offsets = [TopicPartition(t, p, o) for (t, p), o in positions.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            raise self._translated(error, "the commit of offsets") from None

    def assignment(self) -> dict[str, list[int]]:
        """The partitions that this member has now, by topic."""
        assigned: dict[str, list[int]] = {}
        for place in self._consumer.assignment():
            assigned.setdefault(place.topic, []).append(place.partition)
        return assigned

    def positions(self) -> dict[tuple[str, int], int]:
        """Behind what `poll` has handed out of the partitions that this member has now."""
        return dict(self._positions)

    def committed(
        self, places: Sequence[tuple[str, int]], timeout: float = 10.0
    ) -> dict[tuple[str, int], int]:
        """What the group has committed of these partitions; others are left out."""
        try:
            found = self._consumer.committed([TopicPartition(t, p) for t, p in places], timeout)
        except KafkaException as error:
            raise self._translated(error, "the committed offsets") from None
        return {
            (place.topic, place.partition): place.offset for place in found if place.offset >= 0
        }

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Go on at `offset` (for a time, see `Admin.offsets_at`) of a partition that it has."""
        try:
            self._consumer.seek(TopicPartition(topic, partition, offset))
        except KafkaException as error:
            raise self._translated(error, f"to seek in {topic}-{partition}") from None
        self._positions[topic, partition] = offset

    def close(self) -> None:
        """Leave the group, without a commit; safe to call twice."""
        self._consumer.close()

    def _forget(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        for place in partitions:
            self._positions.pop((place.topic, place.partition), None)

    def _translated(self, error: KafkaException, act: str) -> Exception:
        return translate(error, act, servers=self._connection.servers)


def to_record(message: Message) -> Record:
    """A message of librdkafka as a record."""
    headers = message.headers()
    return Record(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        message.key(),
        message.value(),
        message.timestamp()[1],
        tuple(headers) if headers else (),  # type: ignore[arg-type]
    )


def _next(consumer: Consumer, max_records: int, deadline: float) -> list[Message]:
    """What is there, at once; else the first thing that comes until the deadline."""
    # consume() alone would wait for max_records or the whole time.
    first = consumer.poll(max(0.0, deadline - time.monotonic()))
    if first is None:
        return []
    if max_records == 1:
        return [first]
    return [first, *consumer.consume(max_records - 1, 0)]
