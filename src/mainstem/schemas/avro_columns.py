"""Columns -> the Avro schema that a definition's records are written with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mainstem.definitions.formats import record_name
from mainstem.definitions.model import Definition
from mainstem.definitions.types import struct_fields, type_parts
from mainstem.schemas.model import Schema, SchemaType
from mainstem.vocabulary import Column

_SIMPLE: dict[str, Any] = {
    "boolean": "boolean",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}


def value_schema(definition: Definition) -> Schema:
    """The schema of a definition's values: every column may be absent."""
    record = record_schema(definition.value_columns, record_name(definition))
    return Schema(SchemaType.AVRO, json.dumps(record, separators=(",", ":")))


def record_schema(columns: Sequence[Column], name: str) -> dict[str, Any]:
    """A record of these columns; records inside are named after their place."""
    return {"type": "record", "name": name, "fields": [optional_field(c, name) for c in columns]}


def optional_field(column: Column, record: str) -> dict[str, Any]:
    """A field of that record which may be absent."""
    type_ = ["null", avro_type(column.type, f"{record}.{column.name}")]
    return {"name": column.name, "type": type_, "default": None}


def avro_type(type_: str, name: str) -> Any:
    """The Avro type for a column type in Spark's short form."""
    if type_ in _SIMPLE:
        return _SIMPLE[type_]
    if type_.startswith("decimal("):
        precision, scale = map(int, type_[len("decimal(") : -1].split(","))
        logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
        return {"type": "bytes", **logical}
    if type_.startswith("array<"):
        return {"type": "array", "items": ["null", avro_type(type_[6:-1], name)]}
    if type_.startswith("map<"):
        _, value = type_parts(type_[4:-1])
        return {"type": "map", "values": ["null", avro_type(value, name)]}
    if type_.startswith("struct<"):
        inside = [Column(field, kind) for field, kind in struct_fields(type_).values()]
        return record_schema(inside, name)
    message = f"{type_} has no place in Avro"  # `definitions.formats` refuses it
    raise ValueError(message)
