"""Avro types as objects: what the rules, the difference and the printed form walk over.

Named types (records, enums, fixed) may contain themselves, so they are compared by identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

PRIMITIVES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)


class _Missing:
    """A field without a default, which is not the same as one whose default is null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


@dataclass(frozen=True)
class Logical:
    """A valid logical type; an invalid one counts as none, as the specification says."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})" if self.name == "decimal" else self.name


@dataclass(eq=False)
class Primitive:
    """One of the eight types without parts."""

    kind: str
    logical: Logical | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Array:
    """Any number of items."""

    items: AvroType
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Map:
    """Values by string."""

    values: AvroType
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Union:
    """One of several types."""

    branches: list[AvroType]

    @property
    def others(self) -> list[AvroType]:
        """Its types but for null."""
        return [branch for branch in self.branches if not is_null(branch)]


@dataclass(eq=False)
class Enum:
    """One of several symbols; the default is what a reader takes for a symbol it does not know."""

    name: str
    aliases: tuple[str, ...]
    symbols: tuple[str, ...]
    default: str | None = None
    doc: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Fixed:
    """A number of bytes."""

    name: str
    aliases: tuple[str, ...]
    size: int
    logical: Logical | None = None
    doc: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Field:
    """One of a record."""

    name: str
    type: AvroType
    default: Any = MISSING
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    order: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_default(self) -> bool:
        """Whether a reader can do without the field in what was written."""
        return self.default is not MISSING


@dataclass(eq=False)
class Record:
    """Named fields; `fields` is filled after the record is known, for it may contain itself."""

    name: str
    aliases: tuple[str, ...]
    fields: list[Field] = field(default_factory=list)
    doc: str | None = None
    error: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict)


Named = Record | Enum | Fixed
AvroType = Primitive | Array | Map | Union | Record | Enum | Fixed


def unqualified(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition(".")[2]


def namespace(name: str) -> str:
    """The part of a full name before the last dot; empty if there is none."""
    return name.rpartition(".")[0]


def kind(type: AvroType) -> str:
    """`int`, `array`, `record` ..."""
    return type.kind if isinstance(type, Primitive) else type.__class__.__name__.lower()


def logical(type: AvroType) -> Logical | None:
    """The logical type, if there is one."""
    return type.logical if isinstance(type, Primitive | Fixed) else None


def is_null(type: AvroType) -> bool:
    """True for the type whose only value is null."""
    return isinstance(type, Primitive) and type.kind == "null"


def describe(type: AvroType) -> str:
    """A type in a few words for a message, such as `array<string>` or `record shop.Order`."""
    match type:
        case Primitive():
            return f"{type.kind} ({type.logical})" if type.logical else type.kind
        case Array():
            return f"array<{describe(type.items)}>"
        case Map():
            return f"map<{describe(type.values)}>"
        case Union():
            more = ", ..." if len(type.branches) > 10 else ""
            return f"[{', '.join(describe(branch) for branch in type.branches[:10])}{more}]"
        case Fixed():
            size = f"fixed {type.name} of {type.size} bytes"
            return f"{size} ({type.logical})" if type.logical else size
        case Enum() | Record():
            return f"{kind(type)} {type.name}"
