"""The rules of Avro for names, default values and logical types."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from mainstem.schemas.avro_model import (
    PRIMITIVES,
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

_PART = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1

# logical type -> the types that may carry it
_CARRIERS = {
    "date": {"int"},
    "time-millis": {"int"},
    "time-micros": {"long"},
    "timestamp-millis": {"long"},
    "timestamp-micros": {"long"},
    "timestamp-nanos": {"long"},
    "local-timestamp-millis": {"long"},
    "local-timestamp-micros": {"long"},
    "local-timestamp-nanos": {"long"},
}


def is_name(text: object) -> bool:
    """Whether it may name a field, a symbol or a type without a namespace."""
    return isinstance(text, str) and _PART.match(text) is not None


def is_full_name(text: object) -> bool:
    """Whether it may name a type, with a namespace or without."""
    return isinstance(text, str) and all(map(is_name, text.split(".")))


def full_name(name: str, space: str) -> str:
    """A name as seen from inside a namespace."""
    if "." in name or not space or name in PRIMITIVES:
        return name
    return f"{space}.{name}"


def logical_of(carrier: str, size: int, attributes: Mapping[str, Any]) -> Logical | None:
    """The logical type that attributes declare, or None where the declaration is not valid."""
    name = attributes.get("logicalType")
    match name:
        case "decimal" if carrier in {"bytes", "fixed"}:
            precision: Any = attributes.get("precision")
            scale: Any = attributes.get("scale", 0)
            if not _is_int(precision) or not _is_int(scale) or precision < 1:
                return None
            if not 0 <= scale <= precision:
                return None
            if carrier == "fixed" and precision > _digits(size):
                return None
            return Logical("decimal", precision, scale)
        case "uuid" if carrier == "string" or (carrier == "fixed" and size == 16):
            return Logical("uuid")
        case "duration" if carrier == "fixed" and size == 12:
            return Logical("duration")
        case str() if carrier in _CARRIERS.get(name, ()):
            return Logical(name)
        case _:
            return None


def fits_default(
    value: Any, type: AvroType, known: dict[tuple[int, int], bool] | None = None
) -> bool:
    """Whether a JSON value may be the default of a field of this type.

    For a union any branch will do, as version 1.12 of the specification says. Recursion is as
    deep as the value, which the text's depth bounds; `known` keeps what was found, else records
    that contain unions of one another would be tried in every combination.
    """
    known = {} if known is None else known
    key = (id(value), id(type))
    if key not in known:
        known[key] = _fits(value, type, known)
    return known[key]


def _fits(value: Any, type: AvroType, known: dict[tuple[int, int], bool]) -> bool:
    match type:
        case Primitive():
            return _fits_primitive(value, type.kind)
        case Fixed():
            return _is_bytes(value) and len(value) == type.size
        case Enum():
            return value in type.symbols
        case Array():
            return isinstance(value, list) and all(
                fits_default(item, type.items, known) for item in value
            )
        case Map():
            return isinstance(value, dict) and all(
                fits_default(item, type.values, known) for item in value.values()
            )
        case Union():
            return any(fits_default(value, branch, known) for branch in type.branches)
        case Record():
            return isinstance(value, dict) and all(
                fits_default(value[field.name], field.type, known)
                if field.name in value
                else field.has_default
                for field in type.fields
            )


def _fits_primitive(value: Any, kind: str) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int":
            return _is_int(value) and -INT_MAX - 1 <= value <= INT_MAX
        case "long":
            return _is_int(value) and -LONG_MAX - 1 <= value <= LONG_MAX
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "bytes":
            return _is_bytes(value)
        case _:
            return isinstance(value, str)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, str) and all(ord(char) < 256 for char in value)


def _digits(size: int) -> int:
    """How many decimal digits a two's complement number of so many bytes can always hold."""
    # beyond this every precision fits, and the logarithm of 2 ** bits would not
    return 10**9 if size > 4096 else math.floor(math.log10(2) * (8 * size - 1)) if size else 0
