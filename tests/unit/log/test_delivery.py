"""Who waits for acknowledgements is woken when all are there, or one has failed."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError

from mainstem.log.delivery import Deliveries

PATIENCE = 60.0


class Record(SimpleNamespace):
    def __len__(self) -> int:
        return 10


def record(offset: int) -> Any:
    return Record(topic=lambda: "t", partition=lambda: 0, offset=lambda: offset)


def waiting(deliveries: Deliveries, count: int) -> tuple[threading.Thread, list[bool]]:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(deliveries.wait(count, PATIENCE)))
    thread.start()
    return thread, found


def test_the_last_acknowledgement_ends_the_wait() -> None:
    deliveries = Deliveries()
    thread, found = waiting(deliveries, 3)
    for offset in range(3):
        deliveries.acknowledge(None, record(offset))
    thread.join(PATIENCE)
    assert found == [True]
    assert deliveries.last == {"t": {0: 2}}


def test_a_failure_ends_the_wait() -> None:
    deliveries = Deliveries()
    thread, found = waiting(deliveries, 3)
    deliveries.acknowledge(KafkaError(KafkaError._MSG_TIMED_OUT), record(0))
    thread.join(PATIENCE)
    assert found == [True]
    assert deliveries.failures.cause() is not None


def test_acknowledgements_before_the_wait_count() -> None:
    deliveries = Deliveries()
    deliveries.acknowledge(None, record(0))
    assert deliveries.wait(1, 0.0)
    assert not deliveries.wait(2, 0.0)
