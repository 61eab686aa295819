"""What became of produced records: acknowledgements, last offsets and the first failure."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.errors import is_too_large, translate

_PURGED = frozenset((KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT))


class Place(NamedTuple):
    """Where a record stands in the log."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Failure:
    """A record that was not written, and why."""

    error: KafkaError
    topic: str
    size: int


class Failures:
    """Why the records of a group were not written. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._first: Failure | None = None
        self._largest: Failure | None = None
        self._too_large: KafkaError | None = None

    def __bool__(self) -> bool:
        """True when a record was not written."""
        return self._first is not None or self._largest is not None

    def add(self, error: KafkaError | None, message: Message) -> None:
        """Delivery callback: notes a failure."""
        if error is None:
            return
        failure = Failure(error, message.topic() or "", len(message))
        if is_too_large(error):
            self._too_large = error
        elif error.code() not in _PURGED:
            self._first = self._first or failure
            return
        if self._largest is None or failure.size > self._largest.size:
            self._largest = failure

    def cause(self, error: KafkaError | None = None) -> Failure | None:
        """The record that made the group, or a commit with `error`, fail.

        One record that is too large fails its whole batch, or stays queued until an abort purges
        it with others: it is the largest of those.
        """
        too_large = error if error is not None and is_too_large(error) else self._too_large
        if self._first is None and too_large is not None and self._largest is not None:
            return replace(self._largest, error=too_large)
        return self._first


class Deliveries:
    """The acknowledgements of one group of records; `acknowledge` is its delivery callback.

    With `placing`, the place of each record is kept, too. librdkafka calls back from whichever
    thread polls, so the counts are guarded by a lock.
    """

    def __init__(self, *, placing: bool = False) -> None:
        self._placing = placing
        self._changed = threading.Condition()
        self._done = 0
        self._awaited = 0
        self.failures = Failures()
        self.last: dict[str, dict[int, int]] = {}
        self.places: list[Place | None] = []
        """In the order of the records; None: not acknowledged."""

    def callback(self) -> Callable[[KafkaError | None, Message], None]:
        """The delivery callback of the next record."""
        if not self._placing:
            return self.acknowledge
        self.places.append(None)
        return partial(self._place, len(self.places) - 1)

    def _place(self, index: int, error: KafkaError | None, message: Message) -> None:
        if error is None:
            place = Place(message.topic() or "", message.partition() or 0, message.offset() or 0)
            self.places[index] = place
        self.acknowledge(error, message)

    def acknowledge(self, error: KafkaError | None, message: Message) -> None:
        """Delivery callback of every record of the group."""
        with self._changed:
            self._done += 1
            if error is None:
                # Acknowledgements of a partition come in the order of its offsets.
                offsets = self.last.setdefault(message.topic() or "", {})
                offsets[message.partition() or 0] = message.offset() or 0
            else:
                self.failures.add(error, message)
            # a thread that is woken for each of a million records takes longer than all the rest
            if error is not None or self._done == self._awaited:
                self._changed.notify_all()

    def wait(self, count: int, timeout: float) -> bool:
        """Wait until `count` records are acknowledged or one has failed; False on time-out.

        For one thread.
        """
        with self._changed:
            self._awaited = count
            return self._changed.wait_for(
                lambda: self._done >= count or self.failures.cause() is not None, timeout
            )


def size_of(key: bytes | None, value: bytes | None) -> int:
    """Bytes of a record without its headers."""
    return len(key or b"") + len(value or b"")


def delivery_error(failure: Failure, connection: Connection, writer: str = "") -> MainstemError:
    """The error of the catalogue for a record that was not written."""
    limit = _limit(connection, failure.topic) if is_too_large(failure.error) else 0
    return translate(
        failure.error,
        "a record",
        servers=connection.servers,
        topic=failure.topic,
        writer=writer,
        size=failure.size,
        limit=limit,
    )


def produce_error(
    error: KafkaException, connection: Connection, topic: str, size: int
) -> MainstemError:
    """The error for a record that librdkafka did not even take."""
    return translate(
        error,
        "a record",
        servers=connection.servers,
        topic=topic,
        size=size,
        limit=connection.max_record_bytes,
    )


def check_size(connection: Connection, topic: str, size: int) -> None:
    """RECORD_TOO_LARGE for a record that no producer of ours would send."""
    if size > connection.max_record_bytes:
        params: dict[str, Any] = {"size": size, "limit": connection.max_record_bytes}
        raise MainstemError("RECORD_TOO_LARGE", topic=topic, **params)


def _limit(connection: Connection, topic: str) -> int:
    admin = Admin(connection)
    try:
        return admin.record_limit(topic) or connection.max_record_bytes
    except MainstemError:
        return connection.max_record_bytes
    finally:
        admin.close()
