"""The transforms of a source or a sink: what is done to each row, one after the other.

Each says with `shown` how it is written; two that are shown alike do the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from mainstem.vocabulary import SourceLocation


@dataclass(frozen=True, slots=True)
class Named:
    """A column as a transform names it, and where."""

    name: str
    location: SourceLocation
    table: str | None = None
    """What stands before the last dot: in a source, the table of the column."""

    @property
    def shown(self) -> str:
        """As it is written, in small letters: case does not matter."""
        return f"{self.table}.{self.name}".lower() if self.table else self.name.lower()


class Masking(StrEnum):
    """How a value is made unreadable."""

    HASH = "hash"
    """SHA-256 as a text: the same for the same value, so that it can still be joined."""
    REDACT = "redact"
    """Three stars in place of any text; NULL in place of anything else."""
    PARTIAL = "partial"
    """Stars, and the last characters."""


class Unit(StrEnum):
    """What a number counts that is a time: since 1970, in UTC."""

    SECONDS = "seconds"
    MILLIS = "millis"
    MICROS = "micros"


@dataclass(frozen=True, slots=True)
class Drop:
    """The row without some columns."""

    columns: tuple[Named, ...]
    location: SourceLocation
    kind: Literal["drop"] = "drop"

    @property
    def shown(self) -> str:
        """As it is written."""
        return f"drop({', '.join(c.shown for c in self.columns)})"


@dataclass(frozen=True, slots=True)
class Keep:
    """The row with these columns only, in the order that they had."""

    columns: tuple[Named, ...]
    location: SourceLocation
    kind: Literal["keep"] = "keep"

    @property
    def shown(self) -> str:
        """As it is written."""
        return f"keep({', '.join(c.shown for c in self.columns)})"


@dataclass(frozen=True, slots=True)
class Rename:
    """A column under another name."""

    column: Named
    to: Named
    location: SourceLocation
    kind: Literal["rename"] = "rename"

    @property
    def shown(self) -> str:
        """As it is written; how the new name is spelt shows in the target."""
        return f"rename({self.column.shown}, {self.to.name})"


@dataclass(frozen=True, slots=True)
class Cast:
    """A column as another type; a row whose value does not fit goes to the quarantine."""

    column: Named
    type: str
    """Spark's short form."""
    location: SourceLocation
    kind: Literal["cast"] = "cast"

    @property
    def shown(self) -> str:
        """As it is written."""
        return f"cast({self.column.shown}, {self.type.upper()})"


@dataclass(frozen=True, slots=True)
class Mask:
    """A column of which the values cannot be read any more."""

    column: Named
    how: Masking
    location: SourceLocation
    salt: str | None = None
    """Before each value that is hashed; a reference."""
    shows: int = 0
    """How many characters of a text can be seen."""
    kind: Literal["mask"] = "mask"

    @property
    def shown(self) -> str:
        """As it is written."""
        more = f", '{self.salt}'" if self.salt else f", {self.shows}" if self.shows else ""
        return f"mask({self.column.shown}, {self.how}{more})"


@dataclass(frozen=True, slots=True)
class Insert:
    """One more column, behind the others: the same in each row, or where the row comes from."""

    column: Named
    type: str
    """Spark's short form."""
    location: SourceLocation
    value: str | None = None
    """The same in each row."""
    origin: str | None = None
    """One of `ORIGINS`."""
    kind: Literal["insert"] = "insert"

    @property
    def shown(self) -> str:
        """As it is written."""
        value = self.origin or (f"'{self.value}'" if self.type == "string" else self.value)
        return f"insert({self.column.name}, {value})"


ORIGINS = {
    "_object": "string",
    "_topic": "string",
    "_partition": "int",
    "_offset": "bigint",
    "_event_time": "timestamp",
}
"""Where a row comes from: the stream or table, the place of its record, and its time."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Only rows for which the condition is true. Of a table, others are deleted in the target."""

    condition: str
    """As written."""
    canonical: str
    """Without comments and layout."""
    location: SourceLocation
    """Where the condition begins."""
    kind: Literal["filter"] = "filter"

    @property
    def shown(self) -> str:
        """As it is written, on one line."""
        commented = "--" in self.condition or "/*" in self.condition
        return f"filter({' '.join((self.canonical if commented else self.condition).split())})"


@dataclass(frozen=True, slots=True)
class Flatten:
    """A struct as columns of its fields, `struct_field` by name; so are the structs inside it."""

    column: Named
    location: SourceLocation
    kind: Literal["flatten"] = "flatten"

    @property
    def shown(self) -> str:
        """As it is written."""
        return f"flatten({self.column.shown})"


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A time as text or number, or the time that a text or a number means: by the column's type."""

    column: Named
    location: SourceLocation
    pattern: str | None = None
    """How the text is written, such as `yyyy-MM-dd`; times are in UTC."""
    unit: Unit | None = None
    """What the number counts; without a pattern."""
    kind: Literal["timestamp"] = "timestamp"

    @property
    def shown(self) -> str:
        """As it is written."""
        how = self.unit or f"'{self.pattern}'"
        return f"timestamp({self.column.shown}, {how})"


Transform = Drop | Keep | Rename | Cast | Mask | Insert | Filter | Flatten | Timestamp
KINDS = ("drop", "keep", "rename", "cast", "mask", "insert", "filter", "flatten", "timestamp")
