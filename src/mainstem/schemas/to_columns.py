"""The columns of a definition that reads records of a schema, and what of them cannot be columns.

Every column may be NULL, so that a schema's "or null" needs no word. A field that no column type
can hold is named with the reason; nothing is guessed.
"""

from __future__ import annotations

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
from mainstem.schemas.column_types import (
    MOST_DIGITS,
    MOST_LEVELS,
    Columns,
    NotMapped,
    Way,
    collected,
    struct,
)
from mainstem.schemas.json_columns import BOUNDS, NOT_FINITE
from mainstem.schemas.json_parse import JsonSchema, Place
from mainstem.schemas.parse import Parsed
from mainstem.schemas.protobuf_fields import message_columns, named_message
from mainstem.schemas.protobuf_parse import ProtobufSchema

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
_FORMATS = {"date": "DATE", "date-time": "TIMESTAMP"}


def to_columns(parsed: Parsed, record: str | None = None) -> Columns:
    """The columns of a record; `record` is a message of a Protobuf file, else it is the first."""
    match parsed:
        case ProtobufSchema():
            return message_columns(named_message(parsed, record))
        case AvroSchema(root=Record() as root):
            return collected((f.name, partial(_avro, f.type, Way())) for f in root.fields)
        case JsonSchema():
            members = _properties(_followed(parsed.root))
            if members is not None:
                return collected((name, partial(_json, p, Way())) for name, p in members.items())
    return Columns((), (("the schema", "it is not a record with fields"),))


# -- Avro


def _avro(type: AvroType, way: Way) -> str:
    known = logical(type)
    if known is not None and (known.name in _LOGICAL or known.name == "decimal"):
        return _logical(known)
    match type:
        case Primitive(kind="null"):
            raise NotMapped("it is always null")
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
            others = type.others
            if not others:
                raise NotMapped("it is always null")
            if len(others) > 1:
                raise NotMapped(f"it is one of several types: {describe(type)}")
            return _avro(others[0], way)
        case Record():
            with way.into(type):
                return struct((field.name, _avro(field.type, way)) for field in type.fields)


def _logical(known: Logical) -> str:
    if known.name != "decimal":
        return _LOGICAL[known.name]
    if known.precision > MOST_DIGITS:
        raise NotMapped(f"{known} has more than {MOST_DIGITS} digits")
    return f"DECIMAL({known.precision}, {known.scale})"


# -- JSON Schema


def _json(place: Place, way: Way) -> str:
    place = _followed(place)
    kinds = _kinds(place)
    if len(kinds) != 1:
        raise NotMapped("it is one of several types" if kinds else "it has no type but null")
    contents = place.contents
    match kinds[0]:
        case "string" if contents.get("contentEncoding") == "base64":
            return "BINARY"
        case "string":
            return _FORMATS.get(str(contents.get("format")), "STRING")
        case "integer":
            bounds = contents.get("minimum"), contents.get("maximum")
            # what a definition of ours has registered says its own type again
            return next((n.upper() for n, known in BOUNDS.items() if known == bounds), "BIGINT")
        case "number":
            return "DOUBLE"
        case "boolean":
            return "BOOLEAN"
        case "array":
            items = contents.get("items")
            if not isinstance(items, dict):
                raise NotMapped("its items are not of one type that is said")
            with way.into(contents):
                return f"ARRAY<{_json(place.part(items), way)}>"
        case _:
            with way.into(contents):
                return _json_object(place, way)


def _json_object(place: Place, way: Way) -> str:
    members = _properties(place)
    if members:
        return struct((name, _json(inner, way)) for name, inner in members.items())
    values = place.contents.get("additionalProperties")
    if isinstance(values, dict) and values:
        return f"MAP<STRING, {_json(place.part(values), way)}>"
    raise NotMapped("an object whose fields are not said")


def _followed(place: Place) -> Place:
    """Where references lead, and the one choice beside null and what is no number."""
    for _ in range(MOST_LEVELS):
        contents = place.contents
        if not isinstance(contents, dict):
            return place
        choices = contents.get("anyOf") or contents.get("oneOf") or []
        others = [one for one in choices if one not in ({"type": "null"}, NOT_FINITE)]
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
