"""What the configurations of all connectors of Debezium have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mainstem.connect.carrier import Around, PutAway
from mainstem.connect.source_transforms import DROP, REDACT
from mainstem.vocabulary import INTERNAL_PREFIX

_HISTORY = "schema.history.internal"
HISTORY_TOPIC = f"{_HISTORY}.kafka.topic"
"""In a configuration: where the definitions of tables are kept, if they are."""
SIGNALS_TOPIC = "signal.kafka.topic"
NOTICES_TOPIC = "notification.sink.topic.name"
"""In a configuration: where the connector is told to take a snapshot, and tells of it."""
TABLES = "table.include.list"
VALIDATION = {"connection.validation.timeout.ms": "20000"}
"""Less than we wait for Kafka Connect, which waits for it."""
_OPEN = ("bootstrap.servers", "security.protocol", "sasl.mechanism")
"""Of the settings of a client of Kafka: those that are no secrets."""
_JSON = "org.apache.kafka.connect.json.JsonConverter"


def common_config(name: str, options: Mapping[str, Any], tables: Sequence[str]) -> dict[str, str]:
    """Which tables and columns are captured, and how records are written."""
    config = {
        TABLES: ",".join(map(re.escape, sorted(tables))),
        **records_config(name, options),
        **_VALUES,
    }
    left_out = [
        *map(_expression, options.get("exclude") or ()),
        *map(re.escape, options.get(DROP, ())),
    ]
    if left_out:
        config["column.exclude.list"] = ",".join(left_out)
    if options.get(REDACT):
        config["column.mask.with.3.chars"] = ",".join(map(re.escape, options[REDACT]))
    return config


def records_config(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """How records are written, whatever they are of."""
    return {
        "tasks.max": "1",
        "topic.prefix": name,
        "heartbeat.interval.ms": str(options["heartbeat"]),
        "topic.heartbeat.prefix": f"{INTERNAL_PREFIX}heartbeat",
        "tombstones.on.delete": "false",
        "skipped.operations": "none",
        **_RECORDS,
    }


def own_topics(config: Mapping[str, str]) -> dict[str, bool]:
    """Topics that a connector writes to beside those of its tables; True: they stay for ever."""
    prefix, name = config.get("topic.heartbeat.prefix"), config.get("topic.prefix")
    found = {f"{prefix}.{name}": False} if prefix and name else {}
    kept = (HISTORY_TOPIC, SIGNALS_TOPIC, NOTICES_TOPIC)
    return found | {config[key]: True for key in kept if key in config}


def snapshot_config(name: str, put_away: PutAway, around: Around) -> dict[str, str]:
    """How it is asked for a snapshot beside the changes, which comes in pieces.

    Each of them gives way to changes that come meanwhile; nothing is written to the source's
    database for it.
    """
    return {
        "read.only": "true",
        "incremental.snapshot.chunk.size": "8192",
        "signal.enabled.channels": "kafka",
        "signal.poll.interval.ms": "1000",
        SIGNALS_TOPIC: f"{INTERNAL_PREFIX}signals.{name}",
        "signal.kafka.bootstrap.servers": around.clients["bootstrap.servers"],
        "signal.kafka.groupId": f"{INTERNAL_PREFIX}signals.{around.connector}",
        **client_config("signal.consumer", put_away, around),
        "notification.enabled.channels": "sink",
        NOTICES_TOPIC: f"{INTERNAL_PREFIX}notices.{name}",
    }


def history_config(name: str, put_away: PutAway, around: Around) -> dict[str, str]:
    """Where the definitions of tables are kept, without which a position means nothing."""
    return {
        _HISTORY: "io.debezium.storage.kafka.history.KafkaSchemaHistory",
        HISTORY_TOPIC: f"{INTERNAL_PREFIX}history.{name}",
        f"{_HISTORY}.kafka.bootstrap.servers": around.clients["bootstrap.servers"],
        **client_config(f"{_HISTORY}.producer", put_away, around),
        **client_config(f"{_HISTORY}.consumer", put_away, around),
    }


def client_config(prefix: str, put_away: PutAway, around: Around) -> dict[str, str]:
    """How a plugin reaches Kafka by a client of its own."""
    return {
        f"{prefix}.{key}": value if key in _OPEN else put_away(f"kafka.{key}", value)
        for key, value in around.clients.items()
    }


def _expression(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*", ".*")


_VALUES = {
    "decimal.handling.mode": "string",
    "time.precision.mode": "microseconds",
    "binary.handling.mode": "bytes",
}
_RECORDS = {
    "exactly.once.support": "required",
    "transaction.boundary": "poll",
    "poll.interval.ms": "100",
    "key.converter": _JSON,
    "key.converter.schemas.enable": "false",
    "value.converter": _JSON,
    "value.converter.schemas.enable": "true",
    "value.converter.replace.null.with.default": "false",
    # of a row whose key was changed, the other key
    "header.converter": _JSON,
    "header.converter.schemas.enable": "false",
    # which connector it was, once more with each record
    "extended.headers.enabled": "false",
}
