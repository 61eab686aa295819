"""Python values of a Spark type as JSON text, as Spark itself would write them, and back.

A worker that makes records needs no Spark for it. The writers are put together once for a type;
they are given values that fit it (`function_values.fitter`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa

from mainstem.schemas.arrow_types import arrow_type

Write = Callable[[Any], str]
Read = Callable[[Any], Any]
_FAST = json.JSONDecoder()
_EXACT = json.JSONDecoder(parse_float=Decimal)


@cache
def writer(spark_type: str) -> Write:
    """What makes the JSON text of a value, or of None."""
    return _or_null(_writer(arrow_type(spark_type)))


@cache
def reader(spark_type: str) -> Callable[[bytes], Any]:
    """What makes the value of such a text: structs as dicts, maps as lists of pairs."""
    read = _or_none(_reader(arrow_type(spark_type)))
    decode = (_EXACT if "decimal" in spark_type else _FAST).decode
    return lambda text: read(decode(text.decode()))


def key_text(writers: Sequence[Write], values: Sequence[Any]) -> bytes:
    """The values of a key as one text."""
    parts = [write(value) for write, value in zip(writers, values, strict=True)]
    return f"[{','.join(parts)}]".encode()


@cache
def key_reader(spark_types: tuple[str, ...]) -> Callable[[bytes], list[Any]]:
    """What makes the values of such a text."""
    readers = [_or_none(_reader(arrow_type(spark_type))) for spark_type in spark_types]

    def load(text: bytes) -> list[Any]:
        plain = _EXACT.decode(text.decode())
        return [read(part) for read, part in zip(readers, plain, strict=True)]

    return load


def _or_none(read: Read) -> Read:
    return lambda plain: None if plain is None else read(plain)


def _or_null(write: Write) -> Write:
    return lambda value: "null" if value is None else write(value)


def _writer(wanted: pa.DataType) -> Write:
    if pa.types.is_string(wanted):
        return encode_basestring
    if pa.types.is_boolean(wanted):
        return lambda value: "true" if value else "false"
    if pa.types.is_integer(wanted):
        return lambda value: str(int(value))
    if pa.types.is_floating(wanted):
        return _float
    if pa.types.is_decimal(wanted):
        return lambda value: f"{value:f}"
    if pa.types.is_date(wanted):
        return lambda value: f'"{value.isoformat()[:10]}"'
    if pa.types.is_timestamp(wanted):
        return _moment if wanted.tz is not None else _local
    if pa.types.is_binary(wanted):
        return _binary
    if pa.types.is_list(wanted):
        return _list(_or_null(_writer(wanted.value_type)))
    if pa.types.is_map(wanted):
        return _map(_writer(wanted.key_type), _or_null(_writer(wanted.item_type)))
    return _struct({field.name: _or_null(_writer(field.type)) for field in wanted})


def _float(value: Any) -> str:
    number = float(value)
    if number - number != 0:  # not a number, or without end: JSON has no such numbers
        return '"NaN"' if number != number else '"Infinity"' if number > 0 else '"-Infinity"'  # noqa: PLR0124
    return repr(number)


def _moment(value: datetime) -> str:
    text = value.astimezone(UTC).isoformat(timespec="microseconds")
    return f'"{text[:-6]}Z"'


def _local(value: datetime) -> str:
    return f'"{value.isoformat(timespec="microseconds")}"'


def _binary(value: Any) -> str:
    data = value.encode() if isinstance(value, str) else value
    return f'"{base64.b64encode(data).decode()}"'


def _list(write: Write) -> Write:
    return lambda values: f"[{','.join(map(write, values))}]"


def _map(key: Write, item: Write) -> Write:
    def text(value: Any) -> str:
        written = key(value)
        return written if written.startswith('"') else f'"{written}"'

    return lambda pairs: "{" + ",".join(f"{text(k)}:{item(v)}" for k, v in pairs) + "}"


def _struct(fields: Mapping[str, Write]) -> Write:
    parts = [(name, f"{encode_basestring(name)}:", write) for name, write in fields.items()]

    def text(value: Mapping[str, Any]) -> str:
        return "{" + ",".join([label + write(value[name]) for name, label, write in parts]) + "}"

    return text


def _reader(wanted: pa.DataType) -> Read:
    if pa.types.is_floating(wanted):
        return float
    if pa.types.is_integer(wanted):
        return int
    if pa.types.is_decimal(wanted):
        return Decimal
    if pa.types.is_date(wanted):
        return date.fromisoformat
    if pa.types.is_timestamp(wanted):
        return datetime.fromisoformat
    if pa.types.is_binary(wanted):
        return base64.b64decode
    if pa.types.is_list(wanted):
        item = _or_none(_reader(wanted.value_type))
        return lambda values: [item(v) for v in values]
    if pa.types.is_map(wanted):
        key, item = _reader(wanted.key_type), _or_none(_reader(wanted.item_type))
        return lambda pairs: [(key(k), item(v)) for k, v in pairs.items()]
    if pa.types.is_struct(wanted):
        fields = [(field.name, _or_none(_reader(field.type))) for field in wanted]
        return lambda value: {name: read(value[name]) for name, read in fields}
    return lambda value: value
