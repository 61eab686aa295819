"""Translation of librdkafka's errors, and its log lines."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import KafkaError, KafkaException

from mainstem.log import connection
from mainstem.log.errors import is_fenced, is_transient, translate


@pytest.mark.parametrize(
    ("kafka", "code"),
    [
        (KafkaError._TRANSPORT, "LOG_UNREACHABLE"),
        (KafkaError._ALL_BROKERS_DOWN, "LOG_UNREACHABLE"),
        (KafkaError._MSG_TIMED_OUT, "LOG_UNREACHABLE"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "UNKNOWN_TOPIC"),
        (KafkaError._UNKNOWN_TOPIC, "UNKNOWN_TOPIC"),
        (KafkaError.MSG_SIZE_TOO_LARGE, "RECORD_TOO_LARGE"),
        (KafkaError._FENCED, "WRITER_FENCED"),
        (KafkaError.INVALID_PRODUCER_EPOCH, "WRITER_FENCED"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "LOG_FAILED"),
    ],
)
def test_codes(kafka: int, code: str) -> None:
    for error in (KafkaError(kafka), KafkaException(KafkaError(kafka))):
        assert translate(error, "a test", servers="a:1", topic="t").code == code


def test_kinds() -> None:
    assert is_transient(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    assert not is_transient(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert is_fenced(KafkaException(KafkaError(KafkaError.PRODUCER_FENCED)))
    assert not is_fenced(KafkaError(KafkaError._TRANSPORT))


def test_a_dead_broker_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("mainstem.log.librdkafka")
    filters = [f for f in logger.filters if isinstance(f, connection._OnceInAWhile)]
    assert len(filters) == 1
    for n in range(100):
        logger.error("%s [%s] %s", "TEST-FAIL", "client", f"connection {n} refused")
    logger.error("%s [%s] %s", "TEST-OTHER", "client", "something else")
    assert [record.args[0] for record in caplog.records if record.args] == [  # type: ignore[index]
        "TEST-FAIL",
        "TEST-OTHER",
    ]
