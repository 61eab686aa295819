"""A schema out of sample records: what their values are, joined, in a schema of any type.

The samples fit the schema; more than they show it does not promise. A field that some of them lack,
or where it is null, may be absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mainstem.definitions.formats import plain_name
from mainstem.errors import MainstemError
from mainstem.schemas.model import Schema, SchemaType
from mainstem.schemas.protobuf_columns import message_schema
from mainstem.schemas.text import dump
from mainstem.vocabulary import Column

MAX_LEVELS = 32
MAX_FIELDS = 1_000
"""More names than that in one object are keys of a map, not fields."""
_LONG = 2**63
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


@dataclass
class Shape:
    """What the values at one place of the samples were."""

    nulls: bool = False
    booleans: bool = False
    integers: bool = False
    large: bool = False
    """An integer beyond 64 bits."""
    numbers: bool = False
    formats: set[str] = field(default_factory=set)
    """Of texts: `date`, `date-time`, or nothing."""
    items: Shape | None = None
    objects: int = 0
    fields: dict[str, Shape] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    """In how many of the objects a field was."""

    def add(self, value: Any, path: tuple[str, ...] = ()) -> None:
        """Take a value of a sample into account."""
        if len(path) > MAX_LEVELS:
            raise _not_derived(path, f"it is nested in more than {MAX_LEVELS} levels")
        match value:
            case None:
                self.nulls = True
            case bool():
                self.booleans = True
            case int():
                self.integers = True
                self.large |= not -_LONG <= value < _LONG
            case str():
                self.formats.add(_format(value))
            case list():
                self.items = self.items or Shape()
                for item in value:
                    self.items.add(item, (*path, "[]"))
            case dict():
                self.objects += 1
                for name, member in value.items():
                    self.fields.setdefault(name, Shape()).add(member, (*path, name))
                    self.seen[name] = self.seen.get(name, 0) + 1
                if len(self.fields) > MAX_FIELDS:
                    problem = f"it has more than {MAX_FIELDS} different fields, like a map"
                    raise _not_derived(path, problem)
            case _:
                self.numbers = True

    def always(self, name: str) -> bool:
        """Whether a field was in every sample, and not null."""
        return self.seen[name] == self.objects and not self.fields[name].nulls


def infer(samples: Iterable[Any], type: SchemaType, name: str) -> Schema:
    """A schema that all samples fit; SCHEMA_NOT_DERIVED where there can be none."""
    shape = Shape()
    for sample in samples:
        shape.add(sample)
    if not shape.objects or shape.nulls or len(_kinds(shape)) > 1:
        raise MainstemError(
            "SCHEMA_NOT_DERIVED", where="the samples", problem="they are not JSON objects"
        )
    match type:
        case SchemaType.AVRO:
            return Schema(type, dump(_Avro().record(shape, plain_name(name), ())))
        case SchemaType.JSON:
            draft = "http://json-schema.org/draft-07/schema#"
            return Schema(type, dump({"$schema": draft, "title": name, **_json_object(shape)}))
        case SchemaType.PROTOBUF:
            return message_schema(plain_name(name), _columns(shape, ()), None)


def _kinds(shape: Shape) -> list[str]:
    """The kinds of values other than null."""
    found = {
        "boolean": shape.booleans,
        "number": shape.integers or shape.numbers,
        "string": bool(shape.formats),
        "array": shape.items is not None,
        "object": shape.objects > 0,
    }
    return [kind for kind, there in found.items() if there]


# -- Avro


class _Avro:
    """Records are named after their places; no two have one name."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def record(self, shape: Shape, name: str, path: tuple[str, ...]) -> dict[str, Any]:
        while name in self._names:
            name += "_"
        self._names.add(name)
        members: list[dict[str, Any]] = []
        for member, inner in shape.fields.items():
            place = (*path, member)
            if not _NAME.fullmatch(member):
                raise _not_derived(place, "Avro has no such names of fields; JSON Schema has")
            branches = self._branches(inner, f"{name}_{member}", place)
            if shape.always(member):
                members.append({"name": member, "type": _joined(branches)})
            else:
                others = [one for one in branches if one != "null"]
                members.append({"name": member, "type": ["null", *others], "default": None})
        return {"type": "record", "name": name, "fields": members}

    def _branches(self, shape: Shape, name: str, path: tuple[str, ...]) -> list[Any]:
        branches: list[Any] = ["null"] if shape.nulls else []
        for kind in _kinds(shape):
            match kind:
                case "number" if shape.numbers:
                    branches.append("double")
                case "number":
                    if shape.large:
                        raise _not_derived(path, "Avro has no integers of more than 64 bits")
                    branches.append("long")
                case "array":
                    assert shape.items is not None
                    items = self._branches(shape.items, name, (*path, "[]"))
                    branches.append({"type": "array", "items": _joined(items)})
                case "object":
                    branches.append(self.record(shape, name, path))
                case _:
                    branches.append(kind)
        return branches


def _joined(branches: list[Any]) -> Any:
    """Arrays that were all empty say nothing about their items."""
    return branches[0] if len(branches) == 1 else branches or "null"


# -- JSON Schema


def _json_object(shape: Shape) -> dict[str, Any]:
    """Closed, so that a field more is a compatible change later."""
    required = [name for name in shape.fields if shape.seen[name] == shape.objects]
    return {
        "type": "object",
        "properties": {name: _json(inner) for name, inner in shape.fields.items()},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _json(shape: Shape) -> Any:
    branches: list[dict[str, Any]] = [{"type": "null"}] if shape.nulls else []
    for kind in _kinds(shape):
        match kind:
            case "number":
                branches.append({"type": "number" if shape.numbers else "integer"})
            case "string":
                known = next(iter(shape.formats)) if len(shape.formats) == 1 else ""
                branches.append({"type": "string", **({"format": known} if known else {})})
            case "array":
                assert shape.items is not None
                items = _json(shape.items)
                branches.append({"type": "array", **({"items": items} if items else {})})
            case "object":
                branches.append(_json_object(shape))
            case _:
                branches.append({"type": kind})
    if not branches:
        return {}
    if len(branches) == 2 and shape.nulls:
        return {**branches[1], "type": ["null", branches[1]["type"]]}
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


# -- Protobuf, by way of the columns that a definition would have


def _columns(shape: Shape, path: tuple[str, ...]) -> list[Column]:
    alike: dict[str, str] = {}
    for name in shape.fields:
        if not _NAME.fullmatch(name):
            raise _not_derived((*path, name), "Protobuf has no such names of fields")
        same = alike.setdefault(name.replace("_", "").lower(), name)
        if same != name:
            raise _not_derived((*path, name), f"Protobuf takes it for the same name as {same}")
    return [Column(name, _column(inner, (*path, name))) for name, inner in shape.fields.items()]


def _column(shape: Shape, path: tuple[str, ...]) -> str:
    kinds = _kinds(shape)
    if len(kinds) != 1:
        problem = "one of several types" if kinds else "always null, or in empty lists only"
        raise _not_derived(path, f"it is {problem}, which no field of Protobuf is")
    match kinds[0]:
        case "number" if shape.numbers:
            return "double"
        case "number":
            if shape.large:
                raise _not_derived(path, "Protobuf has no integers of more than 64 bits")
            return "bigint"
        case "array":
            assert shape.items is not None
            inner = _column(shape.items, (*path, "[]"))
            if shape.items.nulls or inner.startswith("array<"):
                problem = "null" if shape.items.nulls else "list"
                raise _not_derived(path, f"Protobuf has no {problem} inside of a list")
            return f"array<{inner}>"
        case "object":
            if not shape.fields:
                raise _not_derived(path, "it never has a field")
            return f"struct<{','.join(f'{c.name}:{c.type}' for c in _columns(shape, path))}>"
        case kind:
            return kind


def _format(text: str) -> str:
    if _DATE.fullmatch(text):
        return "date"
    return "date-time" if _TIME.fullmatch(text) else ""


def _not_derived(path: tuple[str, ...], problem: str) -> MainstemError:
    where = ".".join(path).replace(".[]", "[]") or "a sample"
    return MainstemError("SCHEMA_NOT_DERIVED", where=where, problem=problem)
