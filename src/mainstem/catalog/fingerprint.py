"""When is an object the same? A hash of what matters, blind to layout, comments and keyword case.

A fingerprint has two parts, `core.options`: a changed core needs the flow to change, changed
options (retention, comment, trigger, partitions) are taken over while it runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from mainstem.definitions.model import Definition


def fingerprint(definition: Definition, inputs: Sequence[Definition]) -> str:
    """The fingerprint of a definition as written; the `inputs` that it reads are resolved."""
    query = definition.query
    core = {
        "own": own_parts(definition),
        "columns": None if query else _columns(definition),
        "inputs": sorted(decoding(source) for source in inputs),
    }
    options = {
        "retention": definition.retention,
        "comment": definition.comment,
        "trigger": definition.trigger,
        "partitions": definition.partitions,
    }
    return f"{_hash(core)}.{_hash(options)}"


def core_of(print_: str) -> str:
    """The part of a fingerprint that a flow depends on."""
    return print_.partition(".")[0]


def own_parts(definition: Definition) -> dict[str, Any]:
    """What an object is by its own text, apart from its columns and options."""
    return {
        "kind": definition.kind,
        "topic": definition.topic,
        "key": [name.lower() for name in definition.key],
        "event time": definition.event_time.lower() if definition.event_time else None,
        "watermark": definition.watermark,
        "latency": definition.lane,
        "query": definition.query.canonical if definition.query else None,
    }


def decoding(definition: Definition) -> str:
    """A hash of all that a reader of the object depends on."""
    return _hash(
        {
            "name": definition.name.lower(),
            "kind": definition.kind,
            "topic": definition.topic,
            "columns": _columns(definition),
            "key": definition.key,
            "event_time": definition.event_time,
            "watermark": definition.watermark,
        }
    )


def _columns(definition: Definition) -> list[list[str]]:
    return [[column.name, column.type] for column in definition.columns]


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
