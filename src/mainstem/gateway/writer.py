"""Records into the log for the gateway's clients: one by itself, several all or none."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from mainstem.errors import MainstemError
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer, TransactionalProducer

TRANSACTIONAL_ID = "mainstem.gateway.write"


class Writer:
    """Writes requests' records. Safe to use from several threads; calls block."""

    def __init__(self, connection: Connection, transactional_id: str = TRANSACTIONAL_ID) -> None:
        self._connection = connection
        self._id = transactional_id
        self._lock = threading.Lock()
        self._single: Producer | None = None
        self._several: TransactionalProducer | None = None

    def write(self, topic: str, records: Sequence[Outgoing]) -> dict[int, int]:
        """Write all records or none, and give the last offset per partition."""
        if len(records) == 1:
            return self._producer().send(topic, records)
        with self._lock:
            try:
                return self._in_transaction(topic, records)
            except MainstemError as error:
                self._drop_transactional()
                if error.code != "WRITER_FENCED":
                    raise
            # another gateway of the cluster wrote in between: its turn is over, ours begins again
            try:
                return self._in_transaction(topic, records)
            except MainstemError:
                self._drop_transactional()
                raise

    def send(
        self, topic: str, records: Iterable[Outgoing], timeout: float = 30.0
    ) -> dict[int, int]:
        """Write records one by one, in their order: see `Producer.send`."""
        return self._producer().send(topic, records, timeout)

    def close(self) -> None:
        """Wait for what is on its way and end."""
        with self._lock:
            self._drop_transactional()
            if self._single is not None:
                self._single.close()
                self._single = None

    def _producer(self) -> Producer:
        with self._lock:
            if self._single is None:
                self._single = Producer(self._connection)
            return self._single

    def _in_transaction(self, topic: str, records: Sequence[Outgoing]) -> dict[int, int]:
        if self._several is None:
            self._several = TransactionalProducer(self._connection, self._id)
        with self._several.transaction() as transaction:
            transaction.send(topic, records)
        return dict(transaction.deliveries.last.get(topic, {}))

    def _drop_transactional(self) -> None:
        if self._several is not None:
            self._several.close()
            self._several = None
