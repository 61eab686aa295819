"""Whether a JSON value could be written with an Avro schema, and what stands in the way where.

Values are as the edge takes them and `avro_json.natural_writer` makes them: times as ISO-8601 text
or as plain numbers, bytes in base64, decimals as numbers. Numbers with a fraction come as decimals.
"""

from __future__ import annotations

import base64
import binascii
from datetime import date, datetime
from decimal import Decimal, localcontext
from typing import Any

from mainstem.schemas.avro_model import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    Union,
    describe,
    is_null,
)
from mainstem.schemas.json_values import Refusal

_BITS = {"int": 32, "long": 64}
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_LONGEST = 40
MISSING_RULE = "required"
"""The rule that a field without a default stands for; JSON Schema calls it so, too."""

Path = tuple[str | int, ...]


def misfit(value: Any, type_: AvroType, path: Path = ()) -> Refusal | None:
    """The first thing that does not fit; None when all of it does."""
    match type_:
        case Union():
            return _union(value, type_, path)
        case Record():
            return _record(value, type_, path)
        case Array():
            if not isinstance(value, list):
                return _refused(value, type_, path)
            found = (misfit(item, type_.items, (*path, i)) for i, item in enumerate(value))
            return next(filter(None, found), None)
        case Map():
            if not isinstance(value, dict):
                return _refused(value, type_, path)
            found = (misfit(item, type_.values, (*path, key)) for key, item in value.items())
            return next(filter(None, found), None)
        case _:
            return None if _fits(value, type_) else _refused(value, type_, path)


def _union(value: Any, type_: Union, path: Path) -> Refusal | None:
    refusals = [misfit(value, branch, path) for branch in type_.branches]
    if None in refusals:
        return None
    there = [
        refusal
        for branch, refusal in zip(type_.branches, refusals, strict=True)
        if not is_null(branch)
    ]
    # of one type that may be null, what is wrong inside says more
    return there[0] if len(there) == 1 and value is not None else _refused(value, type_, path)


def _record(value: Any, type_: Record, path: Path) -> Refusal | None:
    if not isinstance(value, dict):
        return _refused(value, type_, path)
    for field in type_.fields:
        name = next((name for name in (field.name, *field.aliases) if name in value), None)
        if name is None:
            if not _may_be_absent(field):
                reason = "it is missing, and has no default"
                return Refusal((*path, field.name), reason, MISSING_RULE)
        elif refusal := misfit(value[name], field.type, (*path, name)):
            return refusal
    return None


def _may_be_absent(field: Field) -> bool:
    return field.has_default or misfit(None, field.type) is None


def _fits(value: Any, type_: AvroType) -> bool:
    match type_:
        case Enum():
            return value in type_.symbols
        case Fixed(logical=Logical() as meant) if type(value) in (int, Decimal):
            return _digits(value, meant)
        case Fixed():
            data = _bytes(value)
            return data is not None and len(data) == type_.size
        case Primitive(kind="null"):
            return value is None
        case Primitive(kind="boolean"):
            return isinstance(value, bool)
        case Primitive(kind="string"):
            return isinstance(value, str)
        case Primitive(kind="bytes", logical=Logical() as meant) if type(value) in (int, Decimal):
            return _digits(value, meant)
        case Primitive(kind="bytes"):
            return _bytes(value) is not None
        case Primitive(kind="int" | "long", logical=Logical() as meant) if isinstance(value, str):
            return _is_time(value, meant)
        case Primitive(kind="int" | "long" as kind):
            most = 1 << (_BITS[kind] - 1)
            return type(value) is int and -most <= value < most
        case _:
            return type(value) in (int, Decimal) or value in _NOT_FINITE


def _digits(value: int | Decimal, meant: Logical) -> bool:
    if meant.name != "decimal":
        return False
    with localcontext(prec=1000):
        moved = Decimal(value).scaleb(meant.scale)
        return moved == moved.to_integral_value() and abs(moved) < 10**meant.precision


def _is_time(text: str, meant: Logical) -> bool:
    try:
        if meant.name == "date":
            date.fromisoformat(text)
        elif "timestamp" in meant.name:
            datetime.fromisoformat(text)
        else:
            return False
    except ValueError:
        return False
    return True


def _bytes(value: Any) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except binascii.Error:
        return None


def _refused(value: Any, type_: AvroType, path: Path) -> Refusal:
    expected = describe(type_)
    if isinstance(type_, Enum):
        more = ", ..." if len(type_.symbols) > 10 else ""
        expected = f"one of {', '.join(type_.symbols[:10])}{more}"
    return Refusal(path, f"{expected} was expected, not {_shown(value)}", describe(type_))


def _shown(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return f'"{value}"' if len(value) <= _LONGEST else f'"{value[:_LONGEST]}..."'
        case _:
            return str(value)[:_LONGEST]
