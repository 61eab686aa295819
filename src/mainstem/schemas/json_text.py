"""Plain values -> the JSON text that the log has for them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from mainstem.definitions.types import struct_fields, type_parts
from mainstem.vocabulary import Column

Write = Callable[[Any], str]
_LOWER_HEX = re.compile(r"(?<!\\)((?:\\\\)*)\\u00([01][0-9a-f])")
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is added where there is one


def row_text(columns: Sequence[Column]) -> Write:
    """What makes a JSON object of a row's plain values, by name or in the order of the columns.

    It is what Spark writes for the same, but for numbers of floating point.
    """
    parts = [(f"{escape(c.name)}:", _or_null(_writer(c.type))) for c in columns]

    def text(row: Sequence[Any] | Mapping[str, Any]) -> str:
        if isinstance(row, Mapping):
            row = [row.get(column.name) for column in columns]
        pieces = [label + write(value) for (label, write), value in zip(parts, row, strict=True)]
        return "{" + ",".join(pieces) + "}"

    return text


def number_text(number: float) -> str:
    """JSON has no numbers that are none, or without end: they are texts."""
    if number - number != 0:
        return '"NaN"' if number != number else '"Infinity"' if number > 0 else '"-Infinity"'  # noqa: PLR0124
    return repr(number)


def bytes_text(data: bytes) -> str:
    """In base64."""
    return f'"{base64.b64encode(data).decode()}"'


def date_text(days: int) -> str:
    """Of days since 1970."""
    return f'"{(_EPOCH + timedelta(days=days)).date().isoformat()}"'


def moment_text(micros: int, zone: str) -> str:
    """Of microseconds since 1970."""
    moment = _EPOCH + timedelta(microseconds=micros)
    return f'"{moment.isoformat(timespec="microseconds")}{zone}"'


def _or_null(write: Write) -> Write:
    return lambda value: "null" if value is None else write(value)


def _writer(type_: str) -> Write:
    if type_ in _SIMPLE:
        return _SIMPLE[type_]
    if type_.startswith("decimal("):
        return lambda number: f"{number:f}"
    if type_.startswith("array<"):
        item = _or_null(_writer(type_[len("array<") : -1]))
        return lambda values: f"[{','.join(map(item, values))}]"
    if type_.startswith("map<"):
        inside = _or_null(_writer(type_parts(type_[len("map<") : -1])[1]))
        return lambda pairs: (
            "{" + ",".join(f"{escape(_key(k))}:{inside(v)}" for k, v in pairs) + "}"
        )
    return row_text([Column(name, kind) for name, kind in struct_fields(type_).values()])


def escape(text: str) -> str:
    """A text in quotes. Control characters are written as Java does, with large letters."""
    made = json.encoder.encode_basestring(text)
    return _LOWER_HEX.sub(lambda m: f"{m[1]}\\u00{m[2].upper()}", made) if "\\u00" in made else made


def _key(key: Any) -> str:
    return ("true" if key else "false") if isinstance(key, bool) else str(key)


_SIMPLE: dict[str, Write] = {
    "boolean": lambda value: "true" if value else "false",
    "tinyint": str,
    "smallint": str,
    "int": str,
    "bigint": str,
    "float": number_text,
    "double": number_text,
    "string": escape,
    "binary": bytes_text,
    "date": date_text,
    "timestamp": lambda micros: moment_text(micros, "Z"),
    "timestamp_ntz": lambda micros: moment_text(micros, ""),
}
