"""Columns -> the JSON Schema that a definition's records are written with.

The schema is closed: a record has these columns and no others. So a column more is a compatible
change; in an open one, records that are there already might have such a field of any type.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mainstem.definitions.model import Definition
from mainstem.definitions.types import struct_fields, type_parts
from mainstem.schemas.model import Schema, SchemaType
from mainstem.vocabulary import Column

_DRAFT = "http://json-schema.org/draft-07/schema#"
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_TEXTS: dict[str, dict[str, Any]] = {
    "string": {},
    "date": {"format": "date"},
    "timestamp": {"format": "date-time"},
    "timestamp_ntz": {},
    "binary": {"contentEncoding": "base64"},
}
_NOT_FINITE = {"enum": ["NaN", "Infinity", "-Infinity"]}


def value_schema(definition: Definition) -> Schema:
    """The schema of a definition's values: every column may be absent or null."""
    document = {"$schema": _DRAFT, "title": definition.name, **_object(definition.value_columns)}
    return Schema(SchemaType.JSON, json.dumps(document, separators=(",", ":")))


def closed_to(text: str, columns: Iterable[Column]) -> bool:
    """Whether a schema says that records have fields of certain names only, and lacks a column."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("additionalProperties") is not False:
        return False
    patterns, known = document.get("patternProperties"), document.get("properties") or {}
    return not patterns and any(column.name not in known for column in columns)


def _object(columns: Iterable[Column]) -> dict[str, Any]:
    properties = {column.name: _nullable(_type(column.type)) for column in columns}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """A list of types is what validators are fast with; the other keywords are not about null."""
    if "anyOf" in schema:
        return {"anyOf": [_nullable(schema["anyOf"][0]), *schema["anyOf"][1:]]}
    return {**schema, "type": ["null", schema["type"]]} if schema else {}


def _type(type_: str) -> dict[str, Any]:
    if type_ in _BITS:
        most = 2 ** (_BITS[type_] - 1)
        return {"type": "integer", "minimum": -most, "maximum": most - 1}
    if type_ in _TEXTS:
        return {"type": "string", **_TEXTS[type_]}
    if type_ in ("float", "double"):
        return {"anyOf": [{"type": "number"}, _NOT_FINITE]}
    if type_ == "boolean":
        return {"type": "boolean"}
    if type_.startswith("decimal("):
        return {"type": "number"}
    if type_.startswith("array<"):
        return {"type": "array", "items": _nullable(_type(type_[6:-1]))}
    if type_.startswith("map<"):
        inside = _nullable(_type(type_parts(type_[4:-1])[1]))
        return {"type": "object", "additionalProperties": inside}
    if type_.startswith("struct<"):
        return _object(Column(name, kind) for name, kind in struct_fields(type_).values())
    return {}  # a variant is anything
