"""Records into the log for the gateway's clients: one by itself, several all or none."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Sequence

from mainstem.errors import MainstemError
from mainstem.log.connection import Connection
from mainstem.log.delivery import Place
from mainstem.log.producer import Outgoing, Producer, TransactionalProducer

TRANSACTIONAL_ID = "mainstem.gateway.write"
_AT_ONCE = 4
"""So many requests are written at the same time; others wait."""
_TRANSACTION_SECONDS = 10.0
"""What a gateway that died has begun holds readers for no longer."""


class Writer:
    """Writes requests' records. Safe to use from several threads; calls block.

    Each gateway has a `name` of its own, which it keeps when it starts again.
    """

    def __init__(self, connection: Connection, name: str = "") -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._single: Producer | None = None
        own = ".".join(filter(None, (TRANSACTIONAL_ID, name)))
        # the one that was used last comes first: the others are not even made for one client
        self._several: queue.LifoQueue[_Several] = queue.LifoQueue()
        self._made = [_Several(connection, f"{own}-{n}") for n in range(_AT_ONCE)]
        for several in self._made:
            self._several.put(several)

    def write(self, topic: str, records: Sequence[Outgoing]) -> dict[int, int]:
        """Write all records or none, and give the last offset per partition."""
        return last_offsets(self.place(topic, records), topic)

    def place(self, topic: str, records: Sequence[Outgoing]) -> list[Place]:
        """Write all records or none, each to `topic` or its own, and give the place of each."""
        if len(records) == 1:
            return self._producer().place(topic, records)
        several = self._several.get()
        try:
            return several.place(topic, records)
        finally:
            self._several.put(several)

    def send(
        self, topic: str, records: Iterable[Outgoing], timeout: float = 30.0
    ) -> dict[int, int]:
        """Write records one by one, in their order: see `Producer.send`."""
        return self._producer().send(topic, records, timeout)

    def close(self) -> None:
        """Wait for what is on its way and end."""
        for _ in self._made:
            self._several.get().drop()
        for several in self._made:
            self._several.put(several)
        with self._lock:
            if self._single is not None:
                self._single.close()
                self._single = None

    def _producer(self) -> Producer:
        with self._lock:
            if self._single is None:
                self._single = Producer(self._connection)
            return self._single


class _Several:
    """Writes in transactions, one after the other."""

    def __init__(self, connection: Connection, transactional_id: str) -> None:
        self._connection = connection
        self._id = transactional_id
        self._producer: TransactionalProducer | None = None

    def place(self, topic: str, records: Sequence[Outgoing]) -> list[Place]:
        try:
            return self._in_transaction(topic, records)
        except MainstemError as error:
            self.drop()
            if error.code != "WRITER_FENCED":
                raise
        # one that had the name before is over: its last words came after our first ones
        try:
            return self._in_transaction(topic, records)
        except MainstemError:
            self.drop()
            raise

    def drop(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _in_transaction(self, topic: str, records: Sequence[Outgoing]) -> list[Place]:
        if self._producer is None:
            self._producer = TransactionalProducer(self._connection, self._id, _TRANSACTION_SECONDS)
        with self._producer.transaction(placing=True) as transaction:
            transaction.send(topic, records)
        return [place for place in transaction.deliveries.places if place is not None]


def last_offsets(places: Iterable[Place], topic: str) -> dict[int, int]:
    """The last offset per partition of a topic."""
    return {place.partition: place.offset for place in places if place.topic == topic}
