"""The columns of a definition that reads records of a schema, and what of them cannot be columns.

Every column may be NULL, so that a schema's "or null" needs no word. A field that no column type
can hold is named with the reason; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

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
    describe,
    logical,
)
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.json_parse import JsonSchema, Place
from mainstem.schemas.parse import Parsed
from mainstem.schemas.sql_names import sql_name

_PLAIN = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BINARY",
    "string": "STRING",
}
_LOGICAL = {
    "date": "DATE",
    "timestamp-millis": "TIMESTAMP",
    "timestamp-micros": "TIMESTAMP",
    "local-timestamp-millis": "TIMESTAMP_NTZ",
    "local-timestamp-micros": "TIMESTAMP_NTZ",
}
_MOST_DIGITS = 38
_MOST_LEVELS = 32
_MOST_TYPES = 10_000
_FORMATS = {"date": "DATE", "date-time": "TIMESTAMP"}


class _NotMapped(ValueError):
    """No column type holds it; the text says why."""


class _Way:
    """How one field is walked through: never into itself, nor for ever where types are shared."""

    def __init__(self) -> None:
        self._inside: list[Any] = []
        self._left = _MOST_TYPES

    @contextmanager
    def into(self, node: Any) -> Iterator[None]:
        """While the inside of a type is looked at."""
        self._left -= 1
        if any(node is outer for outer in self._inside):
            raise _NotMapped("it contains itself")
        if self._left < 0 or len(self._inside) >= _MOST_LEVELS:
            raise _NotMapped("it is too large")
        self._inside.append(node)
        yield
        self._inside.pop()


@dataclass(frozen=True)
class Columns:
    """Names and types as a definition has them; `left_out` is a path with the reason."""

    columns: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]


def to_columns(parsed: Parsed) -> Columns:
    """The columns of a record."""
    match parsed:
        case AvroSchema(root=Record() as record):
            return _collected((f.name, partial(_avro, f.type, _Way())) for f in record.fields)
        case JsonSchema():
            members = _properties(_followed(parsed.root))
            if members is not None:
                return _collected((name, partial(_json, p, _Way())) for name, p in members.items())
    return Columns((), (("the schema", "it is not a record with fields"),))


def _collected(members: Iterable[tuple[str, Callable[[], str]]]) -> Columns:
    columns: list[tuple[str, str]] = []
    left_out: list[tuple[str, str]] = []
    names: set[str] = set()
    for name, type_of in members:
        try:
            if name.lower() in names:
                raise _NotMapped("another field has the same name but for its case")
            columns.append((name, type_of()))
            names.add(name.lower())
        except _NotMapped as problem:
            left_out.append((name, str(problem)))
    return Columns(tuple(columns), tuple(left_out))


def _struct(members: Iterable[tuple[str, str]]) -> str:
    given = list(members)
    if not given:
        raise _NotMapped("a record without fields")
    if len({name.lower() for name, _ in given}) < len(given):
        raise _NotMapped("two fields have the same name but for its case")
    return f"STRUCT<{', '.join(f'{sql_name(name)}: {type}' for name, type in given)}>"


# -- Avro


def _avro(type: AvroType, way: _Way) -> str:
    known = logical(type)
    if known is not None and (known.name in _LOGICAL or known.name == "decimal"):
        return _logical(known)
    match type:
        case Primitive(kind="null"):
            raise _NotMapped("it is always null")
        case Primitive():
            return _PLAIN[type.kind]
        case Enum():
            return "STRING"
        case Fixed():
            return "BINARY"
        case Array():
            with way.into(type):
                return f"ARRAY<{_avro(type.items, way)}>"
        case Map():
            with way.into(type):
                return f"MAP<STRING, {_avro(type.values, way)}>"
        case Union():
            others = [
                b for b in type.branches if not (isinstance(b, Primitive) and b.kind == "null")
            ]
            if not others:
                raise _NotMapped("it is always null")
            if len(others) > 1:
                raise _NotMapped(f"it is one of several types: {describe(type)}")
            return _avro(others[0], way)
        case Record():
            with way.into(type):
                return _struct((field.name, _avro(field.type, way)) for field in type.fields)


def _logical(known: Logical) -> str:
    if known.name != "decimal":
        return _LOGICAL[known.name]
    if known.precision > _MOST_DIGITS:
        raise _NotMapped(f"{known} has more than {_MOST_DIGITS} digits")
    return f"DECIMAL({known.precision}, {known.scale})"


# -- JSON Schema


def _json(place: Place, way: _Way) -> str:
    place = _followed(place)
    kinds = _kinds(place)
    if len(kinds) != 1:
        raise _NotMapped("it is one of several types" if kinds else "it has no type but null")
    contents = place.contents
    match kinds[0]:
        case "string" if contents.get("contentEncoding") == "base64":
            return "BINARY"
        case "string":
            return _FORMATS.get(str(contents.get("format")), "STRING")
        case "integer":
            return "BIGINT"
        case "number":
            return "DOUBLE"
        case "boolean":
            return "BOOLEAN"
        case "array":
            items = contents.get("items")
            if not isinstance(items, dict):
                raise _NotMapped("its items are not of one type that is said")
            with way.into(contents):
                return f"ARRAY<{_json(place.part(items), way)}>"
        case _:
            with way.into(contents):
                return _json_object(place, way)


def _json_object(place: Place, way: _Way) -> str:
    members = _properties(place)
    if members:
        return _struct((name, _json(inner, way)) for name, inner in members.items())
    values = place.contents.get("additionalProperties")
    if isinstance(values, dict) and values:
        return f"MAP<STRING, {_json(place.part(values), way)}>"
    raise _NotMapped("an object whose fields are not said")


def _followed(place: Place) -> Place:
    """Where references lead, and the one choice beside null."""
    for _ in range(_MOST_LEVELS):
        contents = place.contents
        if not isinstance(contents, dict):
            return place
        choices = contents.get("anyOf") or contents.get("oneOf") or []
        others = [one for one in choices if one != {"type": "null"}]
        if "$ref" in contents:
            place = place.follow(contents["$ref"])
        elif "type" not in contents and len(others) == 1:
            place = place.part(others[0])
        else:
            return place
    return place


def _kinds(place: Place) -> list[str]:
    """The types that a value may have but null."""
    contents: Any = place.contents
    if not isinstance(contents, dict):
        return []
    given = contents.get("type")
    if given is None and all(isinstance(one, str) for one in contents.get("enum", (None,))):
        given = "string"
    if given is None and isinstance(contents.get("const"), str):
        given = "string"
    if given is None and "properties" in contents:
        given = "object"  # many leave the word out
    kinds = [given] if isinstance(given, str) else list(given or ())
    return [kind for kind in kinds if kind != "null"]


def _properties(place: Place) -> dict[str, Place] | None:
    contents = place.contents
    if not isinstance(contents, dict) or not isinstance(contents.get("properties"), dict):
        return None
    return {name: place.part(inner) for name, inner in contents["properties"].items()}
