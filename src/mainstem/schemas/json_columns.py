"""Columns -> the JSON Schema that a definition's records are written with.

The schema is closed: a record has these columns and no others. So a column more is a compatible
change; in an open one, records that are there already might have such a field of any type.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mainstem.definitions.formats import record_name
from mainstem.definitions.model import Definition
from mainstem.definitions.types import struct_fields, type_parts
from mainstem.schemas.model import Schema, SchemaType
from mainstem.vocabulary import Column

_DRAFT = "http://json-schema.org/draft-07/schema#"
BOUNDS = {
    name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for name, bits in {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}.items()
}
"""The least and the greatest number of each type."""
_TEXTS: dict[str, dict[str, Any]] = {
    "string": {},
    "date": {"format": "date"},
    "timestamp": {"format": "date-time"},
    "timestamp_ntz": {},
    "binary": {"contentEncoding": "base64"},
}
NOT_FINITE = {"enum": ["NaN", "Infinity", "-Infinity"]}
"""What JSON has no numbers for."""


def value_schema(definition: Definition) -> Schema:
    """The schema of a definition's values: every column may be absent or null."""
    title = record_name(definition)
    document = {"$schema": _DRAFT, "title": title, **columns_schema(definition.value_columns)}
    return Schema(SchemaType.JSON, json.dumps(document, separators=(",", ":")))


def closed_to(text: str, columns: Iterable[Column]) -> bool:
    """Whether a schema says that records have fields of certain names only, and lacks a column."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("additionalProperties") is not False:
        return False
    patterns, known = document.get("patternProperties"), document.get("properties") or {}
    return not patterns and any(column.name not in known for column in columns)


def columns_schema(columns: Iterable[Column], *, closed: bool = True) -> dict[str, Any]:
    """An object of these columns; `closed`: and of no others."""
    properties = {c.name: _nullable(_type(c.type, closed)) for c in columns}
    more = {"additionalProperties": False} if closed else {}
    return {"type": "object", "properties": properties, **more}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """A list of types is what validators are fast with; the other keywords are not about null."""
    if "anyOf" in schema:
        return {"anyOf": [_nullable(schema["anyOf"][0]), *schema["anyOf"][1:]]}
    return {**schema, "type": ["null", schema["type"]]} if schema else {}


def _type(type_: str, closed: bool) -> dict[str, Any]:
    if type_ in BOUNDS:
        least, most = BOUNDS[type_]
        return {"type": "integer", "minimum": least, "maximum": most}
    if type_ in _TEXTS:
        return {"type": "string", **_TEXTS[type_]}
    if type_ in ("float", "double"):
        return {"anyOf": [{"type": "number"}, NOT_FINITE]}
    if type_ == "boolean":
        return {"type": "boolean"}
    if type_.startswith("decimal("):
        return {"type": "number"}
    if type_.startswith("array<"):
        return {"type": "array", "items": _nullable(_type(type_[6:-1], closed))}
    if type_.startswith("map<"):
        inside = _nullable(_type(type_parts(type_[4:-1])[1], closed))
        return {"type": "object", "additionalProperties": inside}
    if type_.startswith("struct<"):
        fields = (Column(name, kind) for name, kind in struct_fields(type_).values())
        return columns_schema(fields, closed=closed)
    return {}  # a variant is anything
