"""How records of one Avro schema become the columns of a definition.

A column takes the field of its name, when the field's type can only become wider by it; a column
without a field is NULL, and fields without a column are passed over. The answer is a pair of
schemas for any Avro decoder: the one that the data was written with, whole in itself, and the one
to read it by, which is made of the first, so that times and decimals keep their meaning.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mainstem.definitions.types import struct_fields, type_parts
from mainstem.schemas.avro_columns import optional_field
from mainstem.schemas.avro_model import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Named,
    Primitive,
    Record,
    Union,
    describe,
    is_null,
)
from mainstem.vocabulary import Column

_NUMBERS = {
    "int": ("int", "bigint", "float", "double"),
    "long": ("bigint", "float", "double"),
    "float": ("float", "double"),
    "double": ("double",),
    "boolean": ("boolean",),
    "string": ("string",),
    "bytes": ("binary",),
}
_TIMES = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}
_MOST_DIGITS = 38
_MOST_LEVELS = 192
_MOST_TYPES = 100_000


class NotReadable(ValueError):
    """No record of a schema can become a row; the text says why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Two schemas as JSON text."""

    written: str
    wanted: str


def reading(root: AvroType, columns: Sequence[Column]) -> Reading:
    """How records of a schema become rows of these columns; raises NotReadable."""
    check_bounded(root)
    if not isinstance(root, Record):
        message = f"the schema is of type {describe(root)}, not a record"
        raise NotReadable(message)
    data = _Written()
    document = data.type(root)
    wanted = _Wanted(data.names).record(root, columns, "")
    return Reading(_text(document), _text(wanted))


def bare_key(root: AvroType, columns: Sequence[Column]) -> AvroType:
    """The schema of a key; one that is no record is that of the only column.

    A record of one field is written as the field alone is.
    """
    if isinstance(root, Record) or len(columns) != 1:
        return root
    return Record("key", (), [Field(columns[0].name, root)])


def written(root: AvroType) -> Any:
    """The schema as JSON, with all that it refers to, and nothing that decoding does not need."""
    return _Written().type(root)


def check_bounded(root: AvroType) -> None:
    """Refuse a schema by which a few bytes could keep a decoder busy for ever, or nest too deep."""
    _Bounds().of(root, ())


@dataclass(frozen=True, slots=True)
class _Extent:
    levels: int
    types: int
    """How many there are when each is written out where it stands."""
    empty: bool
    """True when a value may take no bytes at all."""


class _Bounds:
    """Measures types. Records may share others: thirty of them, each with the next one twice, are a
    billion.
    """

    def __init__(self) -> None:
        self._known: dict[int, _Extent] = {}

    def of(self, type_: AvroType, inside: tuple[AvroType, ...]) -> _Extent:
        """The extent of a type; `inside` are those around it."""
        if isinstance(type_, Record) and any(type_ is outer for outer in inside):
            message = f"the record {type_.name} contains itself"
            raise NotReadable(message)
        found = self._known.get(id(type_))
        if found is None and len(inside) < _MOST_LEVELS:
            found = self._known[id(type_)] = self._measured(type_, (*inside, type_))
        if found is None or len(inside) + found.levels > _MOST_LEVELS:
            message = f"it is nested more than {_MOST_LEVELS} levels deep"
            raise NotReadable(message)
        if found.types > _MOST_TYPES:
            message = f"it has more than {_MOST_TYPES} types, with records that are there again"
            raise NotReadable(message)
        return found

    def _measured(self, type_: AvroType, inside: tuple[AvroType, ...]) -> _Extent:
        match type_:
            case Record():
                parts = [self.of(each.type, inside) for each in type_.fields]
                empty = all(part.empty for part in parts)
            case Array(items=item) | Map(values=item):
                parts, empty = [self.of(item, inside)], False
                # the key of a map takes a byte
                if isinstance(type_, Array) and parts[0].empty:
                    message = f"an array of {describe(item)} takes no bytes, however long it is"
                    raise NotReadable(message)
            case Union():
                parts, empty = [self.of(branch, inside) for branch in type_.branches], False
            case Fixed():
                parts, empty = [], type_.size == 0
            case Primitive() | Enum():
                parts, empty = [], is_null(type_)
        levels = max((part.levels for part in parts), default=0)
        return _Extent(levels + 1, 1 + sum(part.types for part in parts), empty)


class _Written:
    """Types as JSON. Names are made up, all without a namespace: those of the data may stand in
    several, and only have to be the same on both sides.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        """By the name in the schema, which stands for one type there."""
        self._told: dict[str, dict[str, Any]] = {}

    def type(self, type_: AvroType) -> Any:
        """The type; one with a name is written out where it stands first."""
        match type_:
            case Primitive():
                return type_.kind
            case Array():
                return {"type": "array", "items": self.type(type_.items)}
            case Map():
                return {"type": "map", "values": self.type(type_.values)}
            case Union():
                return [self.type(branch) for branch in type_.branches]
            case Enum():
                return self.named(type_, {"type": "enum", "symbols": list(type_.symbols)})
            case Fixed():
                return self.named(type_, {"type": "fixed", "size": type_.size})
            case Record():
                told = self.named(type_, {"type": "record"})
                if isinstance(told, str):
                    return told
                fields = [{"name": f.name, "type": self.type(f.type)} for f in type_.fields]
                return {**told, "fields": fields}

    def named(self, type_: Named, told: dict[str, Any]) -> Any:
        """The name of the type, with what there is to tell of it if it stands there first."""
        name = self.names.setdefault(type_.name, f"t{len(self.names)}")
        before = self._told.setdefault(type_.name, told)
        if before is told:
            return {**told, "name": name}
        if before != told:
            message = f"{describe(type_)} is wanted in two forms"
            raise NotReadable(message)
        return name


class _Wanted(_Written):
    """The types to read by: what is wanted, in the order in which it is."""

    def __init__(self, names: dict[str, str]) -> None:
        super().__init__()
        self.names = names
        self._records = 0

    def record(self, type_: Record, columns: Sequence[Column], path: str) -> dict[str, Any]:
        """A name of its own for each place: the record may be wanted in another form elsewhere."""
        self._records += 1
        name = f"r{self._records}"
        known = {each.name: each for each in type_.fields}
        fields: list[dict[str, Any]] = []
        for column in columns:
            found = known.get(column.name)
            if found is None or is_null(found.type):
                fields.append(optional_field(column, name))
            else:
                inner = f"{path}.{column.name}" if path else column.name
                wanted = self.wanted(found.type, column.type, inner)
                fields.append({"name": column.name, "type": wanted})
        return {"type": "record", "name": name, "fields": fields}

    def wanted(self, type_: AvroType, column: str, path: str) -> Any:
        """The type as which a column takes it; never one that could lose something."""
        match type_:
            case Union():
                there = type_.others
                if len(there) == 1:
                    inner = self.wanted(there[0], column, path)
                    return ["null", inner] if len(type_.branches) > 1 else inner
            case Array() if column.startswith("array<"):
                items = self.wanted(type_.items, column[6:-1], f"{path}[]")
                return {"type": "array", "items": items}
            case Map() if column.startswith("map<string,"):
                values = self.wanted(type_.values, type_parts(column[4:-1])[1], f"{path}[]")
                return {"type": "map", "values": values}
            case Record() if column.startswith("struct<"):
                inside = [Column(each, kind) for each, kind in struct_fields(column).values()]
                return self.record(type_, inside, path)
            case Enum() if column == "string":
                return self.type(type_)
            case Fixed() if column == "binary":
                return self.type(type_)
            case Fixed(logical=Logical() as digits) if _holds(column, digits):
                return self.named(type_, {"type": "fixed", "size": type_.size, **_as(digits)})
            case Primitive(logical=Logical() as digits) if _holds(column, digits):
                return {"type": type_.kind, **_as(digits)}
            case Primitive(logical=Logical() as time) if _TIMES.get(time.name) == column:
                return {"type": type_.kind, "logicalType": time.name}
            case Primitive() if column in _NUMBERS.get(type_.kind, ()):
                return type_.kind
            case _:
                pass
        message = f'field "{path}" is of type {describe(type_)}, which is no {column}'
        raise NotReadable(message)


def _as(decimal: Logical) -> dict[str, Any]:
    return {"logicalType": "decimal", "precision": decimal.precision, "scale": decimal.scale}


def _holds(column: str, decimal: Logical) -> bool:
    """True when a column of that type keeps all digits of such decimals."""
    if decimal.name != "decimal" or not column.startswith("decimal("):
        return False
    precision, scale = map(int, column[len("decimal(") : -1].split(","))
    whole = decimal.precision - decimal.scale
    enough = decimal.scale <= scale and whole <= precision - scale
    return enough and decimal.precision <= _MOST_DIGITS


def _text(schema: Any) -> str:
    return json.dumps(schema, separators=(",", ":"))
