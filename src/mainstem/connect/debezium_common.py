"""What the configurations of all connectors of Debezium have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mainstem.connect.source_transforms import DROP, REDACT
from mainstem.vocabulary import INTERNAL_PREFIX

HISTORY_TOPIC = "schema.history.internal.kafka.topic"
"""In a configuration: where the definitions of tables are kept, if they are."""
_JSON = "org.apache.kafka.connect.json.JsonConverter"


def common_config(options: Mapping[str, Any], tables: Sequence[str]) -> dict[str, str]:
    """Which tables and columns are captured, and how records are written."""
    config = {
        "tasks.max": "1",
        "table.include.list": ",".join(map(re.escape, sorted(tables))),
        "heartbeat.interval.ms": str(options["heartbeat"]),
        "topic.heartbeat.prefix": f"{INTERNAL_PREFIX}heartbeat",
        **_VALUES,
        **_RECORDS,
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


def _expression(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*", ".*")


_VALUES = {
    "skipped.operations": "none",
    "tombstones.on.delete": "false",
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
}
