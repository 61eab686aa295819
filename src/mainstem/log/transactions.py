"""Kafka transactions, step by step: open a producer, commit, abort, and say what went wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from mainstem.errors import MainstemError
from mainstem.log.connection import Connection
from mainstem.log.delivery import Failures, delivery_error
from mainstem.log.errors import is_fenced, is_transient, kafka_error, translate, unreachable

DeliveryCallback = Callable[[KafkaError | None, Message], None]

OPEN_SECONDS = 30.0
"""Longest wait for a broker when a transactional producer is opened."""
_QUICK_TRIES = (0.1, 0.2)
_ABORT_SECONDS = 10.0
_LOOK_SECONDS = 0.1
# A fatal error of the client, such as being fenced, is raised by whatever runs callbacks, and by
# confluent_kafka as a SystemError when a delivery report comes at the same time. The next real
# call raises it again, properly.
_FATAL_IN_CALLBACKS = (KafkaException, SystemError)


def open_producer(
    connection: Connection,
    transactional_id: str,
    *,
    transaction_seconds: float,
    tuning: Mapping[str, Any],
    on_delivery: DeliveryCallback | None = None,
) -> Producer:
    """A producer that has taken over `transactional_id`.

    When it is there, an older producer of that id is fenced, and what that one left is finished:
    a transaction whose commit had begun is committed, any other is aborted. The broker aborts
    a transaction that is open for longer than `transaction_seconds`. `on_delivery` is called for
    records that failed, from `poll` and `flush`.
    """
    settings: dict[str, Any] = {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": int(transaction_seconds * 1000),
    }
    if on_delivery is not None:
        settings |= {"on_delivery": on_delivery, "delivery.report.only.error": True}
    config = connection.producer(settings, tuning)
    deadline = time.monotonic() + OPEN_SECONDS
    # While the previous transaction is being finished, the broker says "concurrent transactions"
    # and librdkafka asks again only after a fixed 500 ms. A new producer asks at once.
    for seconds in _QUICK_TRIES:
        producer = Producer(config)
        try:
            producer.init_transactions(seconds)
            return producer
        except KafkaException as error:
            if not is_transient(kafka_error(error)):
                raise translated(error, connection, transactional_id) from None
    producer = Producer(config)
    while True:
        try:
            producer.init_transactions(max(0.1, deadline - time.monotonic()))
            return producer
        except KafkaException as error:
            if not is_transient(kafka_error(error)):
                raise translated(error, connection, transactional_id) from None
            if time.monotonic() > deadline:
                raise unreachable(connection.servers) from None


def commit(
    producer: Producer,
    connection: Connection,
    transactional_id: str,
    failures: Failures,
    timeout: float,
) -> None:
    """Send what is queued and commit.

    An error after which nothing of the transaction is visible aborts it first; `failures`, which
    has the delivery reports, says which record was the cause. LOG_UNREACHABLE leaves the outcome
    open: the next producer of this id finishes the transaction one way or the other.
    """
    deadline = time.monotonic() + timeout
    flush(producer, failures, timeout)
    while True:
        try:
            producer.commit_transaction(max(0.1, deadline - time.monotonic()))
            return
        except KafkaException as error:
            inner = kafka_error(error)
            if inner.txn_requires_abort():
                abort(producer)
            elif inner.retriable() and time.monotonic() < deadline:
                continue
            elif inner.retriable():
                raise unreachable(connection.servers) from None
            raise _failed(producer, inner, connection, transactional_id, failures) from None


def flush(producer: Producer, failures: Failures, timeout: float) -> None:
    """Wait until the broker has answered for all that is queued, or has refused a record.

    The commit tells of errors. Behind a refusal librdkafka sends nothing more of the transaction:
    what is still queued would be waited for until its time is up.
    """
    deadline = time.monotonic() + timeout
    with suppress(*_FATAL_IN_CALLBACKS):
        while producer.flush(_LOOK_SECONDS) and not failures and time.monotonic() < deadline:
            pass


def serve_reports(producer: Producer, timeout: float = 0.0) -> None:
    """Run the delivery callbacks that wait to be run."""
    with suppress(*_FATAL_IN_CALLBACKS):
        producer.poll(timeout)


def abort(producer: Producer) -> KafkaError | None:
    """Abort the open transaction; the error when that was not possible.

    Such an error is no danger: the next producer of the id, or the broker after the
    transaction's time-out, aborts it.
    """
    deadline = time.monotonic() + _ABORT_SECONDS
    while True:
        try:
            producer.abort_transaction(max(0.1, deadline - time.monotonic()))
            return None
        except KafkaException as error:
            inner = kafka_error(error)
            if not inner.retriable() or time.monotonic() > deadline:
                return inner


def abort_because(
    producer: Producer,
    error: KafkaException,
    connection: Connection,
    transactional_id: str,
    failures: Failures,
) -> MainstemError:
    """Abort after `error` and give the error to raise, which names the real cause.

    Once a transaction has failed, every call says only that: a commit, which cannot succeed any
    more, says why. After a fatal error the abort says it.
    """
    inner = kafka_error(error)
    if inner.code() == KafkaError._STATE:
        try:
            producer.commit_transaction(_ABORT_SECONDS)
        except KafkaException as why:
            inner = kafka_error(why)
    from_abort = abort(producer)
    if from_abort is not None and is_fenced(from_abort):
        inner = from_abort
    return _failed(producer, inner, connection, transactional_id, failures)


def _failed(
    producer: Producer,
    error: KafkaError,
    connection: Connection,
    transactional_id: str,
    failures: Failures,
) -> MainstemError:
    """The error for a transaction that is over: that of the record which was the cause, if any."""
    serve_reports(producer)
    cause = failures.cause(error)
    if cause is not None and not is_fenced(error):
        return delivery_error(cause, connection, transactional_id)
    return translated(error, connection, transactional_id)


def translated(
    error: KafkaException | KafkaError, connection: Connection, transactional_id: str
) -> MainstemError:
    """The error of the catalogue for a failed transaction."""
    return translate(error, "a transaction", servers=connection.servers, writer=transactional_id)
