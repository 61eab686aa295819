"""Captured changes -> JSON text of their columns, for all who do not read with Spark."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from mainstem.definitions.model import Definition
from mainstem.definitions.types import struct_fields
from mainstem.schemas.changes import (
    CHANGED_OPS,
    NO_NUMBERS,
    NO_YEAR,
    ChangeReading,
    NotAChange,
    beginning,
    change_reading,
    unavailable,
)
from mainstem.schemas.documents import document_row, key_row
from mainstem.schemas.json_text import row_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TRANSACTIONS = {"file": "gtid", "commit_lsn": "commit_lsn"}
"""What a source has in its words, and what tells its transactions."""


def change_text(definition: Definition, value: bytes, key: bytes | None = None) -> str:
    """A JSON object of the columns of a stream of changes; raises NotAChange.

    Of a document that is gone or was another only its record's key tells which it was.
    """
    begins = beginning(value)
    reading = change_reading(begins, definition)
    try:
        payload = json.loads(value[len(begins) : -1], parse_float=Decimal)
        row = _row(payload, definition, reading, key)
        return row_text(definition.columns)(row)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError, InvalidOperation):
        raise NotAChange("a value in it is not what its schema says, or out of bounds") from None


def _row(
    payload: Mapping[str, Any], definition: Definition, reading: ChangeReading, key: bytes | None
) -> dict[str, Any]:
    source = payload["source"]
    found = {
        "op": payload["op"],
        "position": _position(source),
        "transaction": _transaction(source),
        "at": source["ts_us"],
    }
    for side in ("before", "after"):
        column = definition.column(side)
        assert column is not None
        if not reading.documents:
            found[side] = _side(payload.get(side), column.type, reading)
        elif side == "after":
            found[side] = document_row(payload.get(side), column.type)
        else:
            found[side] = key_row(key, column.type) if payload["op"] in CHANGED_OPS else None
    return found


def _position(source: Mapping[str, Any]) -> str | None:
    if "file" in source:  # a binary log of MySQL's
        return f"{source['file']}:{source['pos']}:{source['row']}"
    if "commit_lsn" in source:  # SQL Server
        parts = (source[name] for name in ("commit_lsn", "change_lsn", "event_serial_no"))
        return ":".join(str(part) for part in parts if part is not None)
    if "ord" in source:  # MongoDB
        return f"{source['ts_us'] // 1_000_000}:{source['ord']}"
    return position_text(source.get("lsn"))


def _transaction(source: Mapping[str, Any]) -> str | None:
    if "ord" in source:
        told = [source.get(name) for name in ("lsid", "txnNumber")]
        return None if told[1] is None else f"{told[0]}:{told[1]}"
    name = next((of for sign, of in _TRANSACTIONS.items() if sign in source), "txId")
    return None if source[name] is None else str(source[name])


def position_text(lsn: int | None) -> str | None:
    """A position in PostgreSQL's log, as PostgreSQL writes it."""
    return None if lsn is None else f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def _side(
    row: Mapping[str, Any] | None, type_: str, reading: ChangeReading
) -> dict[str, Any] | None:
    if row is None:
        return None
    fields = struct_fields(type_).values()
    found = {name: _plain(row.get(name), kind) for name, kind in fields}
    for name in reading.times & found.keys():
        found[name] = None if found[name] is None else time_text(found[name])
    for name in reading.numbers & found.keys():
        found[name] = NO_NUMBERS.get(found[name], found[name])
    for name, size in reading.bits:
        if found.get(name) is not None:
            found[name] = f"{int.from_bytes(_bytes(found[name]), 'little'):0{size}b}"
    for name in reading.enums & found.keys():
        found[name] = None if found[name] is None else found[name].replace("\\,", ",")
    for name in reading.years & found.keys():
        found[name] = 0 if found[name] == NO_YEAR else found[name]
    for name in reading.moments & found.keys():
        found[name] = found[name] or None
    return found


def _plain(value: Any, type_: str) -> Any:
    """The value as `json_text` takes it."""
    if value is None or value in unavailable(type_):
        return None
    if type_.startswith("array<"):
        return [_plain(item, type_[len("array<") : -1]) for item in value]
    if type_.startswith("decimal("):
        return _number(value)
    read = _READ.get(type_)
    return value if read is None else read(value)


def time_text(micros: int) -> str:
    """A time of day, or MySQL's longer ones and those below zero, as the source writes it."""
    seconds, fraction = divmod(abs(micros), 1_000_000)
    minutes, hours = seconds // 60 % 60, seconds // 3600
    text = f"{'-' if micros < 0 else ''}{hours:02}:{minutes:02}:{seconds % 60:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


def _number(value: str | int) -> Decimal:
    number = Decimal(value)
    if not number.is_finite():
        raise ValueError("it is not a number")
    return number


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _micros(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND


_READ: dict[str, Callable[[Any], Any]] = {
    "binary": _bytes,
    "smallint": int,  # it may come as a boolean
    "float": float,
    "double": float,
    "timestamp": _micros,
}
