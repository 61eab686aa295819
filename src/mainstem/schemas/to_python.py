"""Typed Python classes (pydantic) for the records of a schema: one for each record in it."""

from __future__ import annotations

import json
import keyword
import re
from typing import Any

from pydantic import BaseModel

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
_MODULES = ("datetime", "decimal", "uuid")
_TAKEN = frozenset((*_MODULES, *_PLAIN.values(), "list", "dict"))
"""What annotations mention: a field of that name would hide it."""
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9]+")
_NOT_IN_A_FIELD = re.compile(r"\W", re.ASCII)
_MAX_LEVELS = 64
_MAX_TYPES = 20_000
"""Beyond that, types are `Any`: shared ones could be repeated without end."""


def to_python(parsed: Parsed, about: str) -> str:
    """The text of a module; its last class is the record itself."""
    classes = _Classes()
    try:
        match parsed:
            case AvroSchema(root=Record() as record):
                classes.avro(record)
            case JsonSchema():
                classes.json(parsed.root, str(_keyword(parsed.root, "title") or "Record"))
    except RecursionError:
        raise _not_derived("it is nested too deep") from None
    if not classes.texts:
        raise _not_derived("classes are made of Avro records and of JSON objects with properties")
    body = "\n\n\n".join(classes.texts)
    modules = [name for name in _MODULES if re.search(rf"\b{name}\.", body)]
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


class _Classes:
    """The classes that were needed so far; a record that contains itself is named, not repeated."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []
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
                return f"Literal[{', '.join(map(_text, type.symbols))}]"
            case Fixed():
                return "bytes"
            case Array():
                return f"list[{self.avro(type.items)}]"
            case Map():
                return f"dict[str, {self.avro(type.values)}]"
            case Union():
                return _either([self.avro(branch) for branch in type.branches])
            case Record():
                name, new = self._named(type, unqualified(type.name))
                if new:
                    members = [self._avro_member(field) for field in type.fields]
                    self._write(name, members, type.doc)
                return name

    def _avro_member(self, field: Field) -> tuple[str, str, str | None]:
        default = None
        if field.default is not MISSING:
            plain = field.default is None or isinstance(field.default, bool | int | float | str)
            type = field.type.branches[0] if isinstance(field.type, Union) else field.type
            # bytes, times and decimals have defaults in another form than their values
            if plain and isinstance(type, Primitive | Enum) and _as_it_is(type):
                plain_text = isinstance(field.default, str)
                default = _text(field.default) if plain_text else repr(field.default)
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
                return _either([self.json(place.part(one), wanted) for one in choices])
            given = contents.get("type", "object" if "properties" in contents else None)
            kinds = given if isinstance(given, list) else [given]
            return _either([self._json_kind(place, kind, wanted) for kind in kinds])
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
        name, new = self._named(place.contents, wanted)
        if new:
            required = place.contents.get("required", [])
            members: list[tuple[str, str, str | None]] = []
            for member, inner in place.contents["properties"].items():
                type = self.json(place.part(inner), f"{name} {member}")
                if member in required:
                    members.append((member, type, None))
                else:
                    members.append((member, _either([type, "None"]), "None"))
            closed = place.contents.get("additionalProperties") is False
            about = place.contents.get("description")
            self._write(name, members, about if isinstance(about, str) else None, closed=closed)
        return name

    # -- text

    def _named(self, node: Any, wanted: str) -> tuple[str, bool]:
        """The name of a record's class, and whether it is still to be written."""
        if id(node) in self._names:
            return self._names[id(node)], False
        words = [word for word in _NOT_IN_A_NAME.split(wanted) if word]
        plain = "".join(word[0].upper() + word[1:] for word in words) or "Record"
        plain = plain if plain[0].isalpha() else f"Record{plain}"
        taken = {
            *self._names.values(),
            "Any",
            "Literal",
            "Field",
            "BaseModel",
            "ConfigDict",
            "None",
        }
        name, number = plain, 2
        while name in taken:
            name, number = f"{plain}{number}", number + 1
        self._names[id(node)] = name
        self._kept.append(node)  # an id is of use as long as its object is there
        return name, True

    def _write(
        self,
        name: str,
        members: list[tuple[str, str, str | None]],
        about: str | None,
        *,
        closed: bool = False,
    ) -> None:
        lines = [f"class {name}(BaseModel):"]
        if about:
            lines.append(f"    {_text(about)}")
        names = _field_names([member for member, _, _ in members])
        options = ['extra="forbid"'] if closed else []
        if any(names[member] != member for member, _, _ in members):
            options += ["populate_by_name=True", "serialize_by_alias=True"]
        if options:
            lines.append(f"    model_config = ConfigDict({', '.join(options)})")
        # a field without a default may stand behind one with: they are given by name
        for member, type, default in members:
            value = f" = {default}" if default is not None else ""
            if names[member] != member:
                first = f"{default}, " if default is not None else ""
                value = f" = Field({first}alias={_text(member)})"
            lines.append(f"    {names[member]}: {type}{value}")
        if len(lines) == 1:
            lines.append("    pass")
        self.texts.append("\n".join(lines))


def _field_names(members: list[str]) -> dict[str, str]:
    """Names that Python, pydantic and the annotations leave free."""
    found: dict[str, str] = {}
    used = set(members)
    for member in members:
        name = _NOT_IN_A_FIELD.sub("_", member).lstrip("_") or "field"
        name = f"field_{name}" if name[0].isdigit() else name
        # a name with a capital may be that of a class
        if (
            keyword.iskeyword(name)
            or name in _TAKEN
            or name[0].isupper()
            or hasattr(BaseModel, name)
        ):
            name += "_"
        while name != member and (name in used or name in found.values()):
            name += "_"
        found[member] = name
    return found


def _either(types: list[str]) -> str:
    """A union, null last."""
    plain = list(dict.fromkeys(types))
    if "Any" in plain:
        return "Any"
    return " | ".join(sorted(plain, key=lambda type: type == "None"))


def _literal(values: Any) -> str:
    if isinstance(values, list) and all(isinstance(v, str | int | None) for v in values) and values:
        texts = (_text(v) if isinstance(v, str) else repr(v) for v in values)
        return f"Literal[{', '.join(texts)}]"
    return "Any"


def _as_it_is(type: Primitive | Enum) -> bool:
    return isinstance(type, Enum) or (type.logical is None and type.kind != "bytes")


def _text(value: str) -> str:
    """A literal, which JSON's texts are, too."""
    return json.dumps(value, ensure_ascii=False)


def _not_derived(problem: str) -> MainstemError:
    return MainstemError("SCHEMA_NOT_DERIVED", where="the schema", problem=problem)


def _keyword(place: Place, name: str) -> Any:
    return place.contents.get(name) if isinstance(place.contents, dict) else None
