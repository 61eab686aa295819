"""Writing to the log: idempotent, and in transactions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Producer as KafkaProducer

from mainstem.log import transactions
from mainstem.log.connection import Connection
from mainstem.log.delivery import (
    Deliveries,
    Place,
    check_size,
    delivery_error,
    produce_error,
    size_of,
)
from mainstem.log.errors import is_too_large, unreachable
from mainstem.vocabulary import Offsets

_NO_TOPIC = (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)
_LOOK_SECONDS = 0.05
_ANY_PARTITION = -1
_NOW = 0
_TUNING = {
    "linger.ms": 2,
    "message.timeout.ms": 30_000,
    "queue.buffering.max.kbytes": 131_072,
}


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to be written. Without a partition, the key (or chance) chooses one."""

    key: bytes | None
    value: bytes | None
    topic: str | None = None
    """None: the topic that `send` names."""
    partition: int | None = None
    timestamp: int | None = None
    """Milliseconds since the epoch; None: now."""
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Producer:
    """Idempotent producer: a retry inside never makes a duplicate, and order per key is kept.

    Safe to use from several threads; each `send` waits for its own records only. Records of one
    `send` keep their order within a partition.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._broken = False
        self._alone = False
        self._producer = self._open()
        self._mending = threading.Lock()
        self._stop = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="mainstem-producer", daemon=True)
        self._poller.start()

    def send(
        self, topic: str, records: Iterable[Outgoing], timeout: float = 30.0
    ) -> dict[int, int]:
        """Write the records, wait for all acknowledgements, give the last offset per partition.

        A record that is too large is refused before any is sent. The first other failure is
        raised; records before it may have been written. After LOG_UNREACHABLE the outcome is
        not known: the records may still be written within half a minute. Offsets are those of
        `topic`; records with a topic of their own are not in the answer.
        """
        return self._send(topic, list(records), Deliveries(), timeout).last.get(topic, {})

    def place(self, topic: str, records: Iterable[Outgoing], timeout: float = 30.0) -> list[Place]:
        """The same, and give the place of each record."""
        done = self._send(topic, list(records), Deliveries(placing=True), timeout)
        return [place for place in done.places if place is not None]

    def _send(
        self, topic: str, batch: list[Outgoing], deliveries: Deliveries, timeout: float
    ) -> Deliveries:
        if self._stop.is_set():
            raise RuntimeError("the producer is closed")
        for record in batch:
            check_size(self._connection, record.topic or topic, _size(record))
        deadline = time.monotonic() + timeout
        self._mend()
        for record in batch:
            self._produce(record.topic or topic, record, deliveries, deadline)
        if not deliveries.wait(len(batch), max(0.0, deadline - time.monotonic())):
            self._alone = True
            raise unreachable(self._connection.servers)
        failure = deliveries.failures.cause()
        if failure is not None:
            if is_too_large(failure.error):  # it fails its neighbours, too, and they may come first
                largest = max(_size(r) for r in batch if (r.topic or topic) == failure.topic)
                failure = replace(failure, size=largest)
            raise delivery_error(failure, self._connection)
        return deliveries

    def close(self) -> None:
        """Wait for records on their way and end; safe to call twice."""
        self._producer.flush(10)
        self._stop.set()
        self._poller.join(5)

    def _open(self) -> KafkaProducer:
        return KafkaProducer(self._connection.producer({"error_cb": self._note}, _TUNING))

    def _note(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._alone = True

    def _mend(self) -> None:
        """Replace a client that does not recover by itself.

        That is one with a fatal error, and one that has lost all brokers, as soon as nothing waits
        in it: when it saw none for a moment, it may never find one again
        (confluentinc/librdkafka#5301).
        """
        with self._mending:
            if self._broken or (self._alone and not len(self._producer)):
                self._broken = self._alone = False
                self._producer = self._open()

    def _is_there(self, topic: str, deadline: float) -> bool:
        """Asks anew: of a topic that was deleted and made again, the client knows the end only."""
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(_LOOK_SECONDS)
        try:
            found = self._producer.list_topics(topic, timeout=left).topics.get(topic)
        except KafkaException:
            return False
        return found is not None and found.error is None

    def _produce(
        self, topic: str, record: Outgoing, deliveries: Deliveries, deadline: float
    ) -> None:
        while True:
            try:
                _produce(self._producer, topic, record, deliveries)
                return
            except BufferError:  # the queue is full: the poller makes room
                if time.monotonic() > deadline:
                    raise unreachable(self._connection.servers) from None
                time.sleep(0.005)
            except KafkaException as error:
                if error.args[0].code() in _NO_TOPIC and self._is_there(topic, deadline):
                    continue
                size = _size(record)
                raise produce_error(error, self._connection, topic, size) from None

    def _poll(self) -> None:
        while not self._stop.is_set():
            try:
                self._producer.poll(0.2)
            except (KafkaException, SystemError):  # only an error that is fatal for the client
                self._broken = True


class TransactionalProducer:
    """Producer of one transactional id. Making one fences every older one of that id.

    For one thread at a time. When a block raises an error of its own, the next transaction may
    begin; when the commit fails (WRITER_FENCED, RECORD_TOO_LARGE, ...), make a new producer, unless
    this one was fenced: then a newer one is at work.
    """

    def __init__(
        self, connection: Connection, transactional_id: str, transaction_seconds: float = 60.0
    ) -> None:
        self._connection = connection
        self._id = transactional_id
        self._timeout = transaction_seconds
        self._producer = transactions.open_producer(
            connection,
            transactional_id,
            transaction_seconds=transaction_seconds,
            tuning={"linger.ms": 2},
        )

    @contextmanager
    def transaction(self, *, placing: bool = False) -> Iterator[Transaction]:
        """A transaction: committed at the end of the block, aborted when the block raises.

        With `placing`, it knows where its records stand.
        """
        transaction = Transaction(self._producer, self._connection, placing=placing)
        failures = transaction.deliveries.failures
        try:
            self._producer.begin_transaction()
            yield transaction
        except KafkaException as error:
            raise transactions.abort_because(
                self._producer, error, self._connection, self._id, failures
            ) from None
        except BaseException:
            transactions.abort(self._producer)
            raise
        transactions.commit(self._producer, self._connection, self._id, failures, self._timeout)
        transactions.serve_reports(self._producer)

    def close(self) -> None:
        """End the client and its threads; safe to call twice, no other call may follow."""
        self.__dict__.pop("_producer", None)  # librdkafka closes a client when it is freed


class Transaction:
    """An open transaction; `TransactionalProducer.transaction` makes it."""

    def __init__(
        self, producer: KafkaProducer, connection: Connection, *, placing: bool = False
    ) -> None:
        self._producer = producer
        self._connection = connection
        self.deliveries = Deliveries(placing=placing)

    def send(self, topic: str, records: Iterable[Outgoing]) -> None:
        """Queue records; they become visible, all or none, when the transaction is committed."""
        for record in records:
            target = record.topic or topic
            check_size(self._connection, target, _size(record))
            while True:
                try:
                    _produce(self._producer, target, record, self.deliveries)
                    break
                except BufferError:
                    transactions.serve_reports(self._producer, 0.05)

    def flush(self, timeout: float = 30.0) -> None:
        """Wait until the broker has all that was sent; whether it took it, the commit tells."""
        transactions.flush(self._producer, self.deliveries.failures, timeout)

    def placed(self, timeout: float = 30.0) -> list[Place]:
        """Wait until the broker has all that was sent, and give the place of each record.

        Only when the transaction is `placing`. Raises what the broker says against a record.
        """
        self.flush(timeout)
        failure = self.deliveries.failures.cause()
        if failure is not None:
            raise delivery_error(failure, self._connection)
        places = [place for place in self.deliveries.places if place is not None]
        if len(places) < len(self.deliveries.places):
            raise unreachable(self._connection.servers)
        return places

    def offsets(self, group: str, offsets: Mapping[str, Offsets]) -> None:
        """Commit input offsets of a group in the same transaction."""
        positions = [
            TopicPartition(topic, partition, offset)
            for topic, by_partition in offsets.items()
            for partition, offset in by_partition.items()
        ]
        consumer = Consumer(self._connection.consumer({"group.id": group}))
        try:
            self._producer.send_offsets_to_transaction(
                positions, consumer.consumer_group_metadata(), 30
            )
        finally:
            consumer.close()


def _size(record: Outgoing) -> int:
    return size_of(record.key, record.value)


def _produce(producer: KafkaProducer, topic: str, record: Outgoing, deliveries: Deliveries) -> None:
    producer.produce(
        topic,
        record.value,
        record.key,
        _ANY_PARTITION if record.partition is None else record.partition,
        on_delivery=deliveries.callback(),
        timestamp=_NOW if record.timestamp is None else record.timestamp,
        headers=list(record.headers) or None,
    )
