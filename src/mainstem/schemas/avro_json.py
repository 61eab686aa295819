"""Decoded Avro values -> JSON text as the log holds it, without Spark.

A decoder gives plain numbers for times and plain bytes for decimals (`avro_read.written` names no
logical types), so that a value means the same here as where Spark reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from typing import Any

from mainstem.definitions.types import struct_fields, type_parts
from mainstem.schemas.avro_model import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    Union,
)
from mainstem.schemas.json_text import bytes_text, date_text, escape, moment_text, number_text
from mainstem.vocabulary import Column

Write = Callable[[Any], str]
_TO_MICROS = {"millis": 1000, "micros": 1}


def row_writer(root: Record, columns: Sequence[Column]) -> Write:
    """What makes the JSON object of a decoded record: of these columns, those that it has.

    The schema is one that `avro_read.reading` lets through.
    """
    return _record(root, columns)


def natural_writer(root: AvroType) -> Write:
    """What makes JSON of a value with all that it holds."""
    return _natural(root)


def _record(type_: Record, columns: Sequence[Column]) -> Write:
    known = {each.name: each.type for each in type_.fields}
    parts = [
        (escape(c.name) + ":", c.name, _or_null(_typed(known[c.name], c.type)))
        for c in columns
        if c.name in known
    ]
    return lambda value: (
        "{" + ",".join([label + write(value[name]) for label, name, write in parts]) + "}"
    )


def _or_null(write: Write) -> Write:
    return lambda value: "null" if value is None else write(value)


def _typed(type_: AvroType, column: str) -> Write:
    match type_:
        case Union():
            there = type_.others
            return _typed(there[0], column) if there else _nothing
        case Array():
            item = _or_null(_typed(type_.items, column[6:-1]))
            return lambda values: f"[{','.join(map(item, values))}]"
        case Map():
            return _map(_or_null(_typed(type_.values, type_parts(column[4:-1])[1])))
        case Record():
            inside = [Column(name, kind) for name, kind in struct_fields(column).values()]
            return _record(type_, inside)
        case Primitive(kind="null"):
            return _nothing
        case Primitive(logical=Logical() as meant) | Fixed(logical=Logical() as meant):
            if column not in ("int", "bigint", "float", "double", "binary"):
                return _meaning(meant)
        case _:
            pass
    return _plain(type_)


def _natural(type_: AvroType) -> Write:
    match type_:
        case Union():
            there = type_.others
            return _or_null(_natural(there[0])) if len(there) == 1 else _any
        case Array():
            item = _natural(type_.items)
            return lambda values: f"[{','.join(map(item, values))}]"
        case Map():
            return _map(_natural(type_.values))
        case Record():
            parts = [(escape(f.name) + ":", f.name, _natural(f.type)) for f in type_.fields]
            return lambda value: (
                "{" + ",".join([label + write(value[name]) for label, name, write in parts]) + "}"
            )
        case Primitive(logical=Logical() as meant) | Fixed(logical=Logical() as meant):
            return _meaning(meant)
        case _:
            return _plain(type_)


def _map(item: Write) -> Write:
    return lambda pairs: "{" + ",".join(f"{escape(k)}:{item(v)}" for k, v in pairs.items()) + "}"


def _plain(type_: AvroType) -> Write:
    match type_:
        case Primitive(kind="null"):
            return _nothing
        case Primitive(kind="boolean"):
            return lambda value: "true" if value else "false"
        case Primitive(kind="int" | "long"):
            return str
        case Primitive(kind="float" | "double"):
            return number_text
        case Primitive(kind="string") | Enum():
            return escape
        case _:
            return bytes_text


def _meaning(meant: Logical) -> Write:
    """What a logical type says; one of which nothing is known here leaves the value as it is."""
    kind, _, unit = meant.name.rpartition("-")
    if meant.name == "date":
        return date_text
    if kind == "timestamp" and unit in _TO_MICROS:
        return _moment(_TO_MICROS[unit], "Z")
    if kind == "local-timestamp" and unit in _TO_MICROS:
        return _moment(_TO_MICROS[unit], "")
    if meant.name == "decimal":
        return _decimal(meant.scale)
    return _any


def _moment(micros: int, zone: str) -> Write:
    return lambda number: moment_text(number * micros, zone)


def _decimal(scale: int) -> Write:
    def text(data: bytes) -> str:
        with localcontext(prec=1000):
            return f"{Decimal(int.from_bytes(data, 'big', signed=True)).scaleb(-scale):f}"

    return text


def _nothing(_: Any) -> str:
    return "null"


def _any(value: Any) -> str:
    """A value of a type that only the value itself tells."""
    match value:
        case bytes():
            return bytes_text(value)
        case float():
            return number_text(value)
        case dict():
            return "{" + ",".join(f"{escape(k)}:{_any(v)}" for k, v in value.items()) + "}"
        case list():
            return f"[{','.join(map(_any, value))}]"
        case datetime():
            return escape(value.astimezone(UTC).isoformat())
        case _:
            return json.dumps(value, ensure_ascii=False)
