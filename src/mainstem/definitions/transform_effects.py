"""What transforms make of the columns of rows: names and types, and whether they can be done.

Types are Spark's short forms. The engine does to values what is said here of columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mainstem.definitions.names import MAX_COLUMN
from mainstem.definitions.transforms import (
    Cast,
    Drop,
    Filter,
    Flatten,
    Insert,
    Keep,
    Mask,
    Masking,
    Named,
    Rename,
    Timestamp,
    Transform,
)
from mainstem.definitions.types import struct_fields
from mainstem.errors import MainstemError, did_you_mean
from mainstem.vocabulary import Column, SourceLocation

TIMES = ("timestamp", "timestamp_ntz", "date")
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_WHOLE, "float", "double", "decimal")
_CASTS = {
    "string": (*_NUMBERS, *TIMES, "boolean", "binary", "string"),
    "boolean": (*_NUMBERS, "string", "boolean"),
    "binary": ("string", "binary"),
    "date": ("timestamp", "timestamp_ntz", "string", "date"),
    "timestamp": (*TIMES, "string"),
    "timestamp_ntz": (*TIMES, "string"),
    **dict.fromkeys(_NUMBERS, (*_NUMBERS, "string", "boolean")),
}
"""Which types a value can become. A time as a number says in which unit: `timestamp`."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What is known of rows: their columns, and those that tell a row from others."""

    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    def column(self, named: Named) -> Column:
        """The column of that name; case does not matter."""
        if named.table is not None:
            raise _invalid(
                named.location,
                f'"{named.shown}" is no column',
                f"A transform takes whole columns: flatten({named.table}) makes columns of a "
                "struct's fields.",
            )
        for column in self.columns:
            if column.name.lower() == named.name.lower():
                return column
        known = [column.name for column in self.columns]
        raise MainstemError(
            "UNKNOWN_COLUMN",
            location=named.location,
            column=named.name,
            known=", ".join(known),
            suggestion=did_you_mean(named.name, known),
        )


def after_all(rows: Rows, transforms: Iterable[Transform]) -> Rows:
    """The rows behind the last of the transforms."""
    for transform in transforms:
        rows = after(rows, transform)
    return rows


def after(rows: Rows, transform: Transform) -> Rows:
    """The rows behind a transform; raises what speaks against it, at its place."""
    match transform:
        case Drop(columns):
            gone = [_free(rows, named, transform).name for named in columns]
            left = tuple(c for c in rows.columns if c.name not in gone)
            if not left:
                raise _invalid(
                    transform.location, "no column would be left", "Keep at least one of them."
                )
            return replace(rows, columns=left)
        case Keep(columns):
            kept = {rows.column(named).name for named in columns}
            for name in rows.key:
                if name not in kept:
                    raise _of_key(transform, name, transform.location)
            return replace(rows, columns=tuple(c for c in rows.columns if c.name in kept))
        case Rename(column, to):
            found = rows.column(column)
            renamed = _exchanged(rows, found, [Column(to.name, found.type)], to.location)
            key = tuple(to.name if name == found.name else name for name in rows.key)
            return Rows(renamed, key)
        case Cast(column, type_):
            found = _free(rows, column, transform)
            _check_cast(found, type_, transform)
            return _typed(rows, found, type_)
        case Mask(column, how):
            return _masked(rows, column, how, transform)
        case Insert(column, type_):
            added = Column(column.name, type_)
            _check_new(rows.columns, [added], column.location)
            return replace(rows, columns=(*rows.columns, added))
        case Filter():
            return rows
        case Flatten(column):
            found = _free(rows, column, transform)
            fields = [Column("_".join(path), kind) for path, kind in fields_of(found)]
            if not fields:
                raise _invalid(
                    transform.location,
                    f"{found.name} is a {base(found.type).upper()}",
                    "Only a STRUCT has fields that can be columns.",
                )
            return replace(rows, columns=_exchanged(rows, found, fields, transform.location))
        case Timestamp(column):
            found = _free(rows, column, transform)
            return _typed(rows, found, _time_type(found, transform))


def base(type_: str) -> str:
    """A type without what stands in its brackets."""
    return type_.partition("(")[0].partition("<")[0]


def fields_of(column: Column) -> list[tuple[tuple[str, ...], str]]:
    """The values in a struct, however deep: the names on the way there, and the type."""
    found: list[tuple[tuple[str, ...], str]] = []
    for name, type_ in struct_fields(column.type).values():
        inside = fields_of(Column(name, type_))
        for path, kind in inside or [((name,), type_)]:
            found.append(((column.name, *path), kind))
    return found


def _masked(rows: Rows, named: Named, how: Masking, transform: Transform) -> Rows:
    # a hash tells two keys apart, as the keys themselves do
    found = rows.column(named) if how is Masking.HASH else _free(rows, named, transform)
    if how is Masking.REDACT:
        return rows
    if base(found.type) not in _CASTS or (how is Masking.PARTIAL and found.type != "string"):
        raise _invalid(
            transform.location,
            f"{found.name} is a {base(found.type).upper()}, which {how} cannot mask",
            "Use mask(..., redact), or drop the column.",
        )
    return _typed(rows, found, "string")


def _check_cast(column: Column, type_: str, transform: Transform) -> None:
    kind, wanted = base(column.type), base(type_)
    if wanted in _CASTS.get(kind, ()):
        return
    advice = "Make a stream of the rows in SQL, with an expression for the column."
    if (kind in TIMES and wanted in _NUMBERS) or (kind in _NUMBERS and wanted in TIMES):
        advice = f"Use timestamp({column.name}, millis), with the unit of the number."
    elif kind == "struct":
        advice = f"Use flatten({column.name}), and cast its columns."
    problem = f"{column.name} is a {kind.upper()}, and cannot be cast to {wanted.upper()}"
    raise _invalid(transform.location, problem, advice)


def _time_type(column: Column, transform: Timestamp) -> str:
    kind = base(column.type)
    if kind in TIMES and not (kind == "timestamp_ntz" and transform.unit):
        return "bigint" if transform.unit else "string"
    if kind == "string" and transform.pattern is not None:
        return "timestamp"
    if kind in _WHOLE and transform.unit is not None:
        return "timestamp"
    wanted = (
        "a text or a time" if transform.pattern is not None else "a whole number or a TIMESTAMP"
    )
    problem = f"{column.name} is a {kind.upper()}, not {wanted}"
    advice = "A text and a time have a pattern such as 'yyyy-MM-dd', a number has a unit."
    raise _invalid(transform.location, problem, advice)


def _typed(rows: Rows, column: Column, type_: str) -> Rows:
    changed = Column(column.name, type_)
    return replace(rows, columns=tuple(changed if c is column else c for c in rows.columns))


def _free(rows: Rows, named: Named, transform: Transform) -> Column:
    """The column, which must not be one that tells rows apart."""
    found = rows.column(named)
    if found.name in rows.key:
        raise _of_key(transform, found.name, named.location)
    return found


def _of_key(transform: Transform, name: str, location: SourceLocation) -> MainstemError:
    return _invalid(
        location,
        f"{name} is of the key, which {transform.kind} would take away or change",
        "Rows are told apart by their key: rename it, mask it by hash, or leave it as it is.",
    )


def _exchanged(
    rows: Rows, column: Column, others: Sequence[Column], location: SourceLocation
) -> tuple[Column, ...]:
    """The columns with others in the place of one."""
    at = rows.columns.index(column)
    left = (*rows.columns[:at], *rows.columns[at + 1 :])
    _check_new(left, others, location)
    return (*left[:at], *others, *left[at:])


def _check_new(known: Iterable[Column], new: Iterable[Column], location: SourceLocation) -> None:
    taken = {column.name.lower() for column in known}
    for column in new:
        if column.name.lower() in taken:
            raise MainstemError(
                "DUPLICATE_COLUMN", location=location, column=column.name, name="the transforms"
            )
        if len(column.name.encode()) > MAX_COLUMN:
            raise MainstemError(
                "INVALID_NAME", location=location, name=column.name, what="a column"
            )
        taken.add(column.name.lower())


def _invalid(location: SourceLocation, problem: str, advice: str) -> MainstemError:
    return MainstemError("INVALID_TRANSFORM", location=location, problem=problem, advice=advice)
