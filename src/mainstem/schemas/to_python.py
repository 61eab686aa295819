"""Typed Python classes (pydantic) for the records of a schema: one for each record in it."""

from __future__ import annotations

import re
from typing import Any

from mainstem.errors import MainstemError
from mainstem.schemas.avro_model import (
    MISSING,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
    logical,
    unqualified,
)
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.json_parse import JsonSchema, Place
from mainstem.schemas.parse import Parsed
from mainstem.schemas.protobuf_fields import named_message
from mainstem.schemas.protobuf_parse import ProtobufSchema
from mainstem.schemas.protobuf_python import message_class
from mainstem.schemas.python_classes import MODULES, Classes, Member, either, text
from mainstem.schemas.record_names import check_named

_PLAIN = {
    "null": "None",
    "boolean": "bool",
    "int": "int",
    "long": "int",
    "float": "float",
    "double": "float",
    "bytes": "bytes",
    "string": "str",
    "integer": "int",
    "number": "float",
}
_LOGICAL = {
    "date": "datetime.date",
    "timestamp-millis": "datetime.datetime",
    "timestamp-micros": "datetime.datetime",
    "local-timestamp-millis": "datetime.datetime",
    "local-timestamp-micros": "datetime.datetime",
    "time-millis": "datetime.time",
    "time-micros": "datetime.time",
    "decimal": "decimal.Decimal",
    "uuid": "uuid.UUID",
}
_FORMATS = {
    "date": "datetime.date",
    "date-time": "datetime.datetime",
    "time": "datetime.time",
    "uuid": "uuid.UUID",
}
_HEAD = '''\
"""{about}"""

from __future__ import annotations

{imports}from pydantic import BaseModel{more}
'''
_MAX_LEVELS = 64
_MAX_TYPES = 20_000
"""Beyond that, types are `Any`: shared ones could be repeated without end."""


def to_python(parsed: Parsed, about: str, record: str | None = None) -> str:
    """The text of a module; its last class is the record itself.

    `record` is a message of a Protobuf file, else it is the first.
    """
    check_named(parsed, record)
    classes = _Records()
    try:
        match parsed:
            case AvroSchema(root=Record() as root):
                classes.avro(root)
            case ProtobufSchema():
                message_class(named_message(parsed, record), classes)
            case JsonSchema():
                classes.json(parsed.root, str(_keyword(parsed.root, "title") or "Record"))
    except RecursionError:
        raise _not_derived("it is nested too deep") from None
    if not classes.texts:
        raise _not_derived(
            "classes are made of Avro records, JSON objects with properties and messages"
        )
    body = "\n\n\n".join(classes.texts)
    modules = [name for name in MODULES if re.search(rf"\b{name}\.", body)]
    typing = [name for name in ("Any", "Literal") if re.search(rf"\b{name}\b", body)]
    imports = "".join(f"import {name}\n" for name in modules)
    if typing:
        imports += f"from typing import {', '.join(typing)}\n"
    more = "".join(f", {name}" for name in ("ConfigDict", "Field") if f"{name}(" in body)
    about = about if about.isprintable() and not set(about) & {'"', "\\"} else "a schema"
    head = _HEAD.format(
        about=f"Records of {about}.", imports=f"{imports}\n" * bool(imports), more=more
    )
    return f"{head}\n\n{body}\n"


class _Records(Classes):
    """The classes of Avro records and JSON objects."""

    def __init__(self) -> None:
        super().__init__()
        self._level = 0
        self._left = _MAX_TYPES

    # -- Avro

    def avro(self, type: AvroType) -> str:
        """The annotation for a type."""
        known = logical(type)
        if known is not None and known.name in _LOGICAL:
            return _LOGICAL[known.name]
        match type:
            case Primitive():
                return _PLAIN[type.kind]
            case Enum():
                return f"Literal[{', '.join(map(text, type.symbols))}]"
            case Fixed():
                return "bytes"
            case Array():
                return f"list[{self.avro(type.items)}]"
            case Map():
                return f"dict[str, {self.avro(type.values)}]"
            case Union():
                return either([self.avro(branch) for branch in type.branches])
            case Record():
                name, new = self.named(type, unqualified(type.name))
                if new:
                    members = [self._avro_member(field) for field in type.fields]
                    self.write(name, members, type.doc)
                return name

    def _avro_member(self, field: Field) -> Member:
        default = None
        if field.default is not MISSING:
            plain = field.default is None or isinstance(field.default, bool | int | float | str)
            type = field.type.branches[0] if isinstance(field.type, Union) else field.type
            # bytes, times and decimals have defaults in another form than their values
            if plain and isinstance(type, Primitive | Enum) and _as_it_is(type):
                plain_text = isinstance(field.default, str)
                default = text(field.default) if plain_text else repr(field.default)
        return field.name, self.avro(field.type), default

    # -- JSON Schema

    def json(self, place: Place, wanted: str) -> str:
        """The annotation for a schema; `wanted` is the name of the class, if it needs one."""
        contents = place.contents
        self._level += 1
        self._left -= 1
        try:
            if not isinstance(contents, dict) or self._level > _MAX_LEVELS or self._left < 0:
                return "Any"
            if "$ref" in contents:
                target = place.follow(contents["$ref"])
                name = contents["$ref"].rstrip("/").rpartition("/")[2]
                return self.json(target, wanted if name in ("", "#") else name)
            if "enum" in contents or "const" in contents:
                return _literal(contents.get("enum", [contents.get("const")]))
            choices = contents.get("anyOf") or contents.get("oneOf")
            if choices and "type" not in contents:
                return either([self.json(place.part(one), wanted) for one in choices])
            given = contents.get("type", "object" if "properties" in contents else None)
            kinds = given if isinstance(given, list) else [given]
            return either([self._json_kind(place, kind, wanted) for kind in kinds])
        finally:
            self._level -= 1

    def _json_kind(self, place: Place, kind: Any, wanted: str) -> str:
        contents = place.contents
        match kind:
            case "string":
                return _FORMATS.get(str(contents.get("format")), "str")
            case "array":
                items = contents.get("items")
                inner = self.json(place.part(items), wanted) if isinstance(items, dict) else "Any"
                return f"list[{inner}]"
            case "object" if isinstance(contents.get("properties"), dict):
                return self._json_object(place, wanted)
            case "object":
                values = contents.get("additionalProperties", True)
                return f"dict[str, {self.json(place.part(values), wanted)}]"
        return _PLAIN.get(str(kind), "Any")

    def _json_object(self, place: Place, wanted: str) -> str:
        name, new = self.named(place.contents, wanted)
        if new:
            required = place.contents.get("required", [])
            members: list[Member] = []
            for member, inner in place.contents["properties"].items():
                type = self.json(place.part(inner), f"{name} {member}")
                if member in required:
                    members.append((member, type, None))
                else:
                    members.append((member, either([type, "None"]), "None"))
            closed = place.contents.get("additionalProperties") is False
            about = place.contents.get("description")
            self.write(name, members, about if isinstance(about, str) else None, closed=closed)
        return name


def _literal(values: Any) -> str:
    if isinstance(values, list) and all(isinstance(v, str | int | None) for v in values) and values:
        texts = (text(v) if isinstance(v, str) else repr(v) for v in values)
        return f"Literal[{', '.join(texts)}]"
    return "Any"


def _as_it_is(type: Primitive | Enum) -> bool:
    return isinstance(type, Enum) or (type.logical is None and type.kind != "bytes")


def _not_derived(problem: str) -> MainstemError:
    return MainstemError("SCHEMA_NOT_DERIVED", where="the schema", problem=problem)


def _keyword(place: Place, name: str) -> Any:
    return place.contents.get(name) if isinstance(place.contents, dict) else None
