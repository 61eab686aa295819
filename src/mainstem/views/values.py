"""Values as JSON: PostgreSQL's text form of a value becomes a piece of JSON text, without a detour.

Every query of the front door (pull, look-up, push) loads its values through these loaders, so all
of them write a value the same way: time stamps as ISO-8601 in UTC with `Z`, bytea as base64,
decimals as numbers unless a reader with 64-bit floats would lose digits, then as strings;
NaN and infinities as strings; jsonb as it is.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader

_escape = json.encoder.encode_basestring
_EXACT_DIGITS = 15
"""Decimal digits that every 64-bit float keeps."""


class _Text(Loader):
    def load(self, data: Buffer) -> str:
        return _escape(bytes(data).decode())


class _Verbatim(Loader):
    def load(self, data: Buffer) -> str:
        return bytes(data).decode()


class _Boolean(Loader):
    def load(self, data: Buffer) -> str:
        return "true" if bytes(data) == b"t" else "false"


class _Float(Loader):
    def load(self, data: Buffer) -> str:
        text = bytes(data).decode()
        return f'"{text}"' if text[-1] in "Ny" else text  # NaN, Infinity, -Infinity


class _Decimal(Loader):
    def load(self, data: Buffer) -> str:
        text = bytes(data).decode()
        digits = sum(map(str.isdigit, text.lstrip("-0.")))
        return text if digits <= _EXACT_DIGITS and text[-1] not in "Ny" else f'"{text}"'


class _TimestampWithZone(Loader):
    # the session's zone is UTC, so the text ends in +00
    def load(self, data: Buffer) -> str:
        text = bytes(data).decode()
        if text.endswith("+00"):
            return '"' + text[:-3].replace(" ", "T", 1) + 'Z"'
        return _escape(text)  # infinity, or a year before Christ


class _Timestamp(Loader):
    def load(self, data: Buffer) -> str:
        return '"' + bytes(data).decode().replace(" ", "T", 1) + '"'


class _Bytes(Loader):
    def load(self, data: Buffer) -> str:
        return '"' + base64.b64encode(bytes.fromhex(bytes(data)[2:].decode())).decode() + '"'


_LOADERS: dict[str, type[Loader]] = {
    "bool": _Boolean,
    "bytea": _Bytes,
    "float4": _Float,
    "float8": _Float,
    "int2": _Verbatim,
    "int4": _Verbatim,
    "int8": _Verbatim,
    "json": _Verbatim,
    "jsonb": _Verbatim,
    "numeric": _Decimal,
    "oid": _Verbatim,
    "timestamp": _Timestamp,
    "timestamptz": _TimestampWithZone,
}
_AS_TEXT = ("bpchar", "date", "interval", "name", "text", "time", "timetz", "uuid", "varchar")


def load_as_json(context: AdaptContext) -> None:
    """Make a connection load every value as a piece of JSON text (None stays None)."""
    adapters = context.adapters
    adapters.register_loader(0, _Text)
    for name in _AS_TEXT:
        adapters.register_loader(name, _Text)
    for name, loader in _LOADERS.items():
        adapters.register_loader(name, loader)


def json_value(value: Any) -> str:
    """One loaded value as JSON text; arrays come as lists of pieces, records as tuples."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(json_value, value)) + "]"
    return _escape(str(value))


def json_array(row: Sequence[Any]) -> str:
    """A row as a JSON array."""
    return "[" + ",".join(map(json_value, row)) + "]"


def json_names(names: Sequence[str]) -> tuple[str, ...]:
    """Column names as the beginnings of object members, for `json_object`."""
    return tuple(_escape(name) + ":" for name in names)


def json_object(names: Sequence[str], row: Sequence[Any]) -> str:
    """A row as a JSON object; `names` comes from `json_names`."""
    return "{" + ",".join([n + json_value(v) for n, v in zip(names, row, strict=True)]) + "}"
