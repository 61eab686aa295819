"""Captured changes as Debezium writes them: every record has its own schema before its payload.

`{"schema":{...},"payload":{...}}`, as Connect's JSON converter makes it. What a value begins with,
up to its payload, is its version: all records of a version begin with the same bytes. So a schema
is read once, and a record of a version that is known is told by its first bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mainstem.definitions.model import Definition
from mainstem.definitions.types import struct_fields, type_parts
from mainstem.errors import MainstemError
from mainstem.schemas.documents import is_documents
from mainstem.vocabulary import HIDDEN_PREFIX

BEGIN = b'{"schema":{'
PAYLOAD = b'},"payload":'
"""Behind the schema. Inside of one, no name of a field can be `payload`, and quotes are escaped."""
NO_NUMBERS = {"NAN": "NaN", "POSITIVE_INFINITY": "Infinity", "NEGATIVE_INFINITY": "-Infinity"}
"""Debezium's words for what is no number, and PostgreSQL's."""
NO_YEAR = 1900
UNAVAILABLE = "unavailable\0" + "c4d0f7e2b98e4a51a6f1d3205b7c9e68"
"""In place of a large value that an update left as it was: PostgreSQL does not send it. No text of
PostgreSQL's has a zero in it; bytes and numbers could be these, but not by chance."""
LEFT_OUT = HIDDEN_PREFIX + "left_out"
"""A column beside those of a stream of changes: the names of the row's columns whose values were
left out so; NULL when there are none."""
OTHER_KEY = HIDDEN_PREFIX + "other_key"
"""And one for a row whose key was changed, which is told as a delete and, right behind it, a new
row: the new key with the delete, the old one with the row. It is in the record's headers."""
KEY_HEADERS = ("__debezium.newkey", "__debezium.oldkey")
SNAPSHOT = HIDDEN_PREFIX + "snapshot"
"""A column beside those of a stream of changes: what Debezium says of the records of a snapshot,
and where in the source's log that began, which tells it from others (`snapshot_text`)."""
SNAPSHOT_PARTS = ("snapshot", "lsn", "file", "pos", "commit_lsn")
CHANGED = "SOURCE_CHANGED"
CHANGED_OPS = ("u", "d")
"""Changes of a row that was there."""
_MOST_KEPT = 1000

_WHOLE = {"int8": 1, "int16": 2, "int32": 4, "int64": 8}
_BYTES = {"smallint": 2, "int": 4, "bigint": 8}
_NAMED = {
    "date": ("int32", "io.debezium.time.Date"),
    "timestamp_ntz": ("int64", "io.debezium.time.MicroTimestamp"),
    "timestamp": ("string", "io.debezium.time.ZonedTimestamp"),
}
_UNNAMED = {"boolean": ("boolean",), "float": ("float",), "double": ("double", "float"),
            "binary": ("bytes",)}  # fmt: skip
_TIME = ("int64", "io.debezium.time.MicroTime")
_YEAR = ("int32", "io.debezium.time.Year")
_BITS = ("bytes", "io.debezium.data.Bits")
_ENUM = ("string", "io.debezium.data.Enum")
_NUMBER = ("bytes", "org.apache.kafka.connect.data.Decimal")
"""Written as a plain number."""
_BINARY_LOG = re.compile(r"io\.debezium\.connector\.(?:mysql|mariadb)\.")
"""What the name of `source` begins with when the source is of these."""
_TEXTS = (
    None,
    "io.debezium.data.Enum",
    "io.debezium.data.EnumSet",
    "io.debezium.data.Json",
    "io.debezium.data.Ltree",
    "io.debezium.data.TsVector",
    "io.debezium.data.Uuid",
    "io.debezium.data.Xml",
    "io.debezium.time.Interval",
    "io.debezium.time.ZonedTime",
)
_MONEY = (19, 2)
_TOLD = "__debezium.source.column."
"""Before what goes along with a schema of what the source itself calls the type."""


def unavailable(type_: str) -> tuple[Any, ...]:
    """What may stand in a payload for a value that was left out; nothing for most types."""
    match type_:
        case "string":
            return UNAVAILABLE, json.dumps({UNAVAILABLE: UNAVAILABLE}, separators=(",", ":"))
        case "binary":
            return (base64.b64encode(UNAVAILABLE.encode()).decode(),)
        case "array<string>":
            digest = hashlib.md5(UNAVAILABLE.encode(), usedforsecurity=False).digest()
            return [UNAVAILABLE], [str(uuid.UUID(bytes=digest, version=3))]
        case "array<binary>":
            return ([*unavailable("binary")],)
        case "array<int>" | "array<bigint>" | "array<date>":
            return ([*UNAVAILABLE.encode()],)
    return ()


class NotAChange(ValueError):
    """A value that is no captured change; the text says why."""


@dataclass(frozen=True, slots=True)
class ChangeReading:
    """How the records of one version are read."""

    beginning: bytes
    """What their values begin with; the payload follows, and then a last brace."""
    times: frozenset[str]
    """Columns that are texts, and come as a time of day in microseconds."""
    numbers: frozenset[str] = frozenset()
    """Columns that are texts, and hold numbers without bounds, or what is none (`NO_NUMBERS`)."""
    bits: frozenset[tuple[str, int]] = frozenset()
    """Columns that are texts of so many binary digits, and come as bytes, the lowest first."""
    enums: frozenset[str] = frozenset()
    """Columns of MySQL's ENUM, whose values come with a backslash before each comma."""
    years: frozenset[str] = frozenset()
    """Columns of MySQL's YEAR, whose zero comes as `NO_YEAR`, before which there are none."""
    moments: frozenset[str] = frozenset()
    """Columns of MySQL's TIMESTAMP, whose zero comes as that of Unix, which they cannot hold."""
    documents: bool = False
    """True: rows are documents (`documents`), whose schema says nothing of what is in them."""


def snapshot_text(source: Mapping[str, Any]) -> str:
    """The same of the `source` of a record that is read without Spark."""
    told = [source.get(name) for name in SNAPSHOT_PARTS]
    if source.get("ord") is not None:  # MongoDB's log has a number within each second
        told += [source["ord"], source.get("ts_us")]
    return " ".join(str(part) for part in told if part is not None)


def beginning(value: bytes) -> bytes:
    """What a value begins with, up to its payload; NotAChange when it has none."""
    end = value.find(PAYLOAD)
    if not value.startswith(BEGIN) or end < 0:
        raise NotAChange("it is not a change as Debezium writes it")
    return value[: end + len(PAYLOAD)]


def change_reading(begins: bytes, definition: Definition) -> ChangeReading:
    """How records that begin so are read as the columns of a stream of changes.

    A column that they do not have is NULL. SOURCE_CHANGED when they have one that the stream does
    not, or one that does not fit: a value would be passed over, or would not mean the same.
    """
    after = definition.column("after")
    assert after is not None
    reading, problems = _read(begins, after.type)
    if problems:
        raise MainstemError(CHANGED, name=definition.name, problem="; ".join(problems))
    return reading


@lru_cache(maxsize=_MOST_KEPT)
def _read(begins: bytes, row: str) -> tuple[ChangeReading, tuple[str, ...]]:
    """How records are read, and what does not fit."""
    columns = dict(struct_fields(row).values())
    fields, binary_log = _fields(begins)
    if fields is None:
        return ChangeReading(begins, frozenset(), documents=True), ()
    problems = []
    known: dict[str, Mapping[str, Any]] = {}
    for name, field in fields.items():
        if name not in columns:
            problems.append(f'it has a column "{name}" that is not known yet')
        elif not _fits(field, columns[name]):
            problems.append(f'column "{name}" does not fit {columns[name]} any more')
        else:
            known[name] = field
    texts = {name: field for name, field in known.items() if columns[name] == "string"}
    reading = ChangeReading(
        begins,
        frozenset(name for name, field in texts.items() if _is_a(_TIME, field)),
        frozenset(name for name, field in texts.items() if _told_type(field) == "numeric"),
        frozenset((name, _length(field)) for name, field in texts.items() if _is_a(_BITS, field)),
        frozenset(name for name, field in texts.items() if binary_log and _is_a(_ENUM, field)),
        frozenset(name for name, field in known.items() if _is_a(_YEAR, field)),
        frozenset(name for name in known if binary_log and columns[name] == "timestamp"),
    )
    return reading, tuple(problems)


def _fields(begins: bytes) -> tuple[Mapping[str, Any] | None, bool]:
    """The columns of the row in a schema, by name, or None of documents; and whether it is of a
    binary log of MySQL's.
    """
    try:
        schema = json.loads(begins[len(BEGIN) - 1 : -len(PAYLOAD) + 1])
        parts = {field["field"]: field for field in schema["fields"]}
        if is_documents(parts):
            return None, False
        source = str(parts.get("source", {}).get("name", ""))
        columns = {field["field"]: field for field in parts["after"]["fields"]}
        return columns, _BINARY_LOG.match(source) is not None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NotAChange("its schema is not that of a change") from None


def _fits(field: Mapping[str, Any], type_: str) -> bool:
    kind, name = field["type"], field.get("name")
    if type_.startswith("array<"):
        if kind != "array":
            return False
        # what the source calls the type is told of the whole column
        item = {**field["items"], "parameters": field.get("parameters", {})}
        return (
            not _is_a(_TIME, item)
            and not _is_a(_BITS, item)
            and _fits(item, type_[len("array<") : -1])
        )
    if type_ in _BYTES:
        if kind == "boolean":  # a column of TINYINT(1) that was added with the name BOOLEAN
            return type_ == "smallint" and name is None
        whole = name is None or (_is_a(_YEAR, field) and type_ == "int")
        return whole and _WHOLE.get(kind, 9) <= _BYTES[type_]
    if type_.startswith("decimal("):
        if _is_a(_NUMBER, field):
            return _digits_of_number(field) == type_
        return kind == "string" and name is None and _digits_fit(field, type_)
    if type_ == "string":
        texts = kind == "string" and name in _TEXTS
        return texts or _is_a(_TIME, field) or _is_a(_BITS, field)
    if type_ in _NAMED:
        return (kind, name) == _NAMED[type_]
    return name is None and kind in _UNNAMED.get(type_, ())


def _is_a(kind: tuple[str, str], field: Mapping[str, Any]) -> bool:
    return (field["type"], field.get("name")) == kind


def _length(field: Mapping[str, Any]) -> int:
    return int(field["parameters"]["length"])


def _digits_of_number(field: Mapping[str, Any]) -> str:
    told = field.get("parameters") or {}
    return f"decimal({told.get('connect.decimal.precision')},{told.get('scale')})"


def _digits_fit(field: Mapping[str, Any], type_: str) -> bool:
    """True when the source's own type has no more digits before and behind the point.

    A decimal comes as a text, which tells nothing of them.
    """
    told = field.get("parameters") or {}
    if _told_type(field) == "money":
        digits, scale = _MONEY
    else:
        try:
            digits, scale = int(told[f"{_TOLD}length"]), int(told[f"{_TOLD}scale"])
        except (KeyError, ValueError):
            return False
    most, behind = map(int, type_parts(type_[len("decimal(") : -1]))
    return 0 <= scale <= behind and digits - scale <= most - behind


def _told_type(field: Mapping[str, Any]) -> str:
    """What the source itself calls the type, if that goes along with the schema."""
    return str((field.get("parameters") or {}).get(f"{_TOLD}type", "")).lower()
