"""Rows -> Protobuf, in the message that `protobuf_columns` makes of the columns.

Values come plain, as `protobuf_read` gives them, with structs by name. The same row always gives
the same bytes: fields stand in the order of their numbers, and maps in that of their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from google.protobuf.message import Message

from mainstem.definitions.types import struct_fields, type_parts
from mainstem.vocabulary import Column

Set = Callable[[Any, Any], None]
"""Puts a value, which is not null, into a message."""
Fill = Callable[[Any, Any], None]
"""Makes a message that is there hold a value."""
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROS_OF_A_DAY = 86_400_000_000


_KEYS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "bigint": int,
    "boolean": lambda key: key if isinstance(key, bool) else {"true": True, "false": False}[key],
}
"""What makes a key of a text, as which JSON has it."""


class NotWritable(ValueError):
    """A row that Protobuf has no words for; the text says where and why."""


def encoder(message: type[Message], columns: Sequence[Column]) -> Callable[[Any], bytes]:
    """What makes the data of a row; NotWritable for a null inside of a list or a map."""
    fill = _row(columns, "")

    def encode(row: Mapping[str, Any]) -> bytes:
        made = message()
        fill(made, row)
        return made.SerializeToString(deterministic=True)

    return encode


def _row(columns: Sequence[Column], path: str) -> Fill:
    parts = [(c.name, _setter(c.name, c.type, f"{path}{c.name}")) for c in columns]

    def fill(message: Any, row: Mapping[str, Any]) -> None:
        for name, put in parts:
            value = row.get(name)
            if value is not None:
                put(message, value)

    return fill


def _setter(name: str, type_: str, path: str) -> Set:
    if type_.startswith("array<"):
        return _list(name, type_[len("array<") : -1], path)
    if type_.startswith("map<"):
        key, value = type_parts(type_[len("map<") : -1])
        return _map(name, key, value, path)
    fill = _filler(type_, path)
    if fill is None:
        return lambda message, value: setattr(message, name, value)

    def put(message: Any, value: Any) -> None:
        inner = getattr(message, name)
        inner.SetInParent()  # there, even if all in it is zero
        fill(inner, value)

    return put


def _list(name: str, type_: str, path: str) -> Set:
    fill = _filler(type_, f"{path}[].")

    def put(message: Any, values: Any) -> None:
        items = getattr(message, name)
        if any(value is None for value in values):
            raise _null(path)
        if fill is None:
            items.extend(values)
        else:
            for value in values:
                fill(items.add(), value)

    return put


def _map(name: str, key_type: str, type_: str, path: str) -> Set:
    fill, make = _filler(type_, f"{path}[]."), _KEYS.get(key_type, str)

    def put(message: Any, pairs: Any) -> None:
        items = getattr(message, name)
        for given, value in dict(pairs).items():
            if value is None:
                raise _null(path)
            try:
                key = make(given)
                if fill is None:
                    items[key] = value
                else:
                    fill(items[key], value)
            except NotWritable:
                raise
            except (KeyError, ValueError):
                message = f"{path}: the key {given!r} is no {key_type.upper()}"
                raise NotWritable(message) from None

    return put


def _filler(type_: str, path: str) -> Fill | None:
    """What fills the message that stands for a type; None where there is no message."""
    if type_ == "timestamp":
        return _in_years(_timestamp, path)
    if type_ == "date":
        return _in_years(_date, path)
    if type_.startswith("decimal("):
        return _decimal
    if type_.startswith("struct<"):
        inside = [Column(name, kind) for name, kind in struct_fields(type_).values()]
        return _row(inside, f"{path.removesuffix('.')}.")
    return None


def _in_years(fill: Fill, path: str) -> Fill:
    """Protobuf's times are in the years 1 to 9999."""

    def bounded(message: Any, value: int) -> None:
        try:
            fill(message, value)
        except (ValueError, OverflowError):
            text = f"{path.rstrip('.')}: Protobuf's times end with the year 9999"
            raise NotWritable(text) from None

    return bounded


def _timestamp(message: Any, micros: int) -> None:
    date.fromordinal(_EPOCH_DAY + micros // _MICROS_OF_A_DAY)
    message.seconds, rest = divmod(micros, 1_000_000)
    message.nanos = rest * 1000


def _date(message: Any, days: int) -> None:
    day = date.fromordinal(_EPOCH_DAY + days)
    message.year, message.month, message.day = day.year, day.month, day.day


def _decimal(message: Any, number: Decimal) -> None:
    message.value = f"{number:f}"


def _null(path: str) -> NotWritable:
    return NotWritable(f"{path}: Protobuf has no null inside of a list or a map")
