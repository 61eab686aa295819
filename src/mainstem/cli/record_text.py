"""A record of the log as text: as a JSON envelope, or by a format string such as '%k %v'."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mainstem.cli.output import read_json
from mainstem.errors import MainstemError
from mainstem.vocabulary import Record

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")

_FIELDS: dict[str, Callable[[Record], bytes]] = {
    "t": lambda r: r.topic.encode(),
    "p": lambda r: str(r.partition).encode(),
    "o": lambda r: str(r.offset).encode(),
    "k": lambda r: r.key or b"",
    "v": lambda r: r.value or b"",
    "d": lambda r: iso(r.timestamp).encode(),
    "T": lambda r: str(r.timestamp).encode(),
    "h": lambda r: b",".join(name.encode() + b"=" + (data or b"") for name, data in r.headers),
    "%": lambda r: b"%",
}
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_PIECE = re.compile(r"%(?P<field>.?)|\\x(?P<hex>[0-9a-fA-F]{2})|\\(?P<escape>.?)", re.DOTALL)


def iso(milliseconds: int) -> str:
    """A time stamp of the log as ISO 8601 in UTC."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def envelope(
    record: Record,
    read: Callable[[bytes], str | None] = lambda _: None,
    read_key: Callable[[str, bytes], str | None] = lambda _, __: None,
) -> tuple[Any, ...]:
    """The values of COLUMNS; keys and values as JSON or text, base64 when they are neither.

    `read` gives the JSON of a value that begins with a schema's id, if it can be had; `read_key`
    that of a topic's key.
    """
    shown = None if record.value is None else read(record.value)
    key = None if record.key is None else read_key(record.topic, record.key)
    return (
        record.topic,
        record.partition,
        record.offset,
        iso(record.timestamp),
        _readable(record.key, parse=False) if key is None else key,
        _readable(record.value, parse=True) if shown is None else read_json(shown),
        {name: _readable(data, parse=False) for name, data in record.headers},
    )


def _readable(data: bytes | None, *, parse: bool) -> Any:
    if data is None:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}
    if parse:
        try:
            return read_json(text)
        except (json.JSONDecodeError, RecursionError):
            return text
    return text


def compile_format(text: str) -> Callable[[Record], bytes]:
    """A function that writes records as the format string says."""
    pieces: list[Callable[[Record], bytes]] = []
    last = 0
    for match in _PIECE.finditer(text):
        pieces.append(_constant(text[last : match.start()].encode()))
        last = match.end()
        if match["field"] is not None:
            if match["field"] not in _FIELDS:
                raise MainstemError("BAD_RECORD_FORMAT", piece=match.group())
            pieces.append(_FIELDS[match["field"]])
        elif match["hex"]:
            pieces.append(_constant(bytes.fromhex(match["hex"])))
        elif match["escape"] in _ESCAPES:
            pieces.append(_constant(_ESCAPES[match["escape"]]))
        else:
            raise MainstemError("BAD_RECORD_FORMAT", piece=match.group())
    pieces.append(_constant(text[last:].encode()))
    return lambda record: b"".join(piece(record) for piece in pieces)


def _constant(data: bytes) -> Callable[[Record], bytes]:
    return lambda _: data
