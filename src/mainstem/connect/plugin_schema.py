"""The schemas of Kafka Connect for rows: what stands before each of them, for plugins that want it.

`{"schema": {...}, "payload": {...}}`, as Connect's JSON converter reads it. Times and dates stay
texts, as our JSON has them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mainstem.definitions.types import struct_fields, type_parts
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

_PLAIN = {
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "binary": "bytes",
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def before_rows(columns: Sequence[Column]) -> bytes:
    """What a record begins with; the row and a brace follow."""
    fields = [{"field": column.name, **_schema(column.type)} for column in columns]
    return _beginning({"type": "struct", "optional": False, "fields": fields})


def before_texts() -> bytes:
    """The same for a text."""
    return _beginning({"type": "string", "optional": False})


def _beginning(schema: dict[str, Any]) -> bytes:
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f'{{"schema":{text},"payload":'.encode()


def _schema(type_: str) -> dict[str, Any]:
    made: dict[str, Any]
    if type_.startswith("struct<"):
        fields = struct_fields(type_).values()
        made = {"type": "struct", "fields": [{"field": n, **_schema(t)} for n, t in fields]}
    elif type_.startswith("array<"):
        made = {"type": "array", "items": _schema(type_[len("array<") : -1])}
    elif type_.startswith("map<"):
        values = type_parts(type_[len("map<") : -1])[1]
        keys = {"type": "string", "optional": False}
        made = {"type": "map", "keys": keys, "values": _schema(values)}
    elif type_.startswith("decimal("):
        digits, scale = type_parts(type_[len("decimal(") : -1])
        told = {"scale": scale.strip(), "connect.decimal.precision": digits.strip()}
        made = {"type": "bytes", "name": _DECIMAL, "version": 1, "parameters": told}
    elif type_ == "variant":
        raise MainstemError(
            "INVALID_OPTION",
            option="schemas",
            value="true",
            problem="a VARIANT has no schema",
            advice="Cast it to a STRING before.",
        )
    else:
        made = {"type": _PLAIN.get(type_, "string")}
    return {**made, "optional": True}
