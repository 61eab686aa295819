"""Kafka's errors in our words: the one place that knows what an error code of librdkafka means."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from mainstem.errors import MainstemError

_UNREACHABLE = frozenset(
    (
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._WAIT_COORD,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
    )
)
_UNKNOWN_TOPIC = frozenset(
    (
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    )
)
_TOO_LARGE = frozenset((KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE))
_FENCED = frozenset(
    (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
)


def kafka_error(error: KafkaException | KafkaError) -> KafkaError:
    """The KafkaError inside an exception, or the error itself."""
    if isinstance(error, KafkaError):
        return error
    inner = error.args[0]
    return inner if isinstance(inner, KafkaError) else KafkaError(KafkaError._FAIL, str(inner))


def is_transient(error: KafkaError) -> bool:
    """True for what heals by itself when the broker comes back."""
    return error.code() in _UNREACHABLE or (error.retriable() and not error.fatal())


def is_fenced(error: KafkaException | KafkaError) -> bool:
    """True when a newer producer with the same transactional id has taken over."""
    return kafka_error(error).code() in _FENCED


def is_too_large(error: KafkaException | KafkaError) -> bool:
    """True when a record is over the limit of the client or of the topic."""
    return kafka_error(error).code() in _TOO_LARGE


def translate(
    error: KafkaException | KafkaError,
    act: str,
    *,
    servers: str,
    topic: str | None = None,
    writer: str = "",
    size: int = 0,
    limit: int = 0,
) -> MainstemError:
    """The error of the catalogue that says it; `act` completes "Kafka refused ..."."""
    inner = kafka_error(error)
    code = inner.code()
    if code in _UNREACHABLE:
        return unreachable(servers)
    if code in _UNKNOWN_TOPIC and topic is not None:
        return MainstemError("UNKNOWN_TOPIC", topic=topic, suggestion="")
    if code in _TOO_LARGE and topic is not None:
        return MainstemError("RECORD_TOO_LARGE", size=size, limit=limit, topic=topic)
    if code in _FENCED:
        return MainstemError("WRITER_FENCED", writer=writer)
    return MainstemError("LOG_FAILED", act=act, problem=f"{inner.name()}: {inner.str()}")


def unreachable(servers: str) -> MainstemError:
    """LOG_UNREACHABLE for these servers."""
    return MainstemError("LOG_UNREACHABLE", servers=servers)
