"""The columns of a stream that leaves them to the versions of its subject.

They come in the order in which the versions brought them. A field that goes in a later version
stays as a column: records of the earlier one may still come. Fields that no column can hold, or
whose names no column can have, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from mainstem.definitions.cursor import Cursor
from mainstem.definitions.lexer import Source
from mainstem.definitions.model import Definition, Format
from mainstem.definitions.names import check_column_name
from mainstem.definitions.types import read_type
from mainstem.errors import MainstemError
from mainstem.schemas.known import subject_of
from mainstem.schemas.model import SchemaType
from mainstem.schemas.parse import parse
from mainstem.schemas.record_names import record_names
from mainstem.schemas.source import SchemaSource
from mainstem.schemas.to_columns import to_columns
from mainstem.vocabulary import Column

_NUMBERS = ("int", "bigint", "float", "double")
"""Each holds what those before it hold."""
_NESTED = ("struct<", "array<", "map<")


class FollowedColumns:
    """What a registry's versions mean for columns; any thread may call."""

    def __init__(self, registry: SchemaSource) -> None:
        self._registry = registry
        self._versions: dict[tuple[object, ...], tuple[Column, ...]] = {}
        """A version stays what it is."""

    def columns(
        self,
        definition: Definition,
        known: Sequence[Column],
        *,
        widen: bool = False,
        fresh: bool = False,
    ) -> tuple[Column, ...]:
        """Those that are known, in their order, then the others; `widen`: with wider types.

        When none is known: SUBJECT_UNKNOWN if nothing was registered for the topic,
        SCHEMA_NOT_DERIVED if no version has anything that could be a column.
        """
        subject = subject_of(definition)
        found = {column.name.lower(): column for column in known}
        for version in self._versions_of(subject, fresh, gone=bool(known)):
            for column in self._of_version(subject, version, definition):
                there = found.setdefault(column.name.lower(), column)
                if widen or there not in known:
                    found[column.name.lower()] = Column(there.name, _wider(there.type, column.type))
        if not found:
            problem = "no version has a field that could be a column"
            raise MainstemError("SCHEMA_NOT_DERIVED", where=subject, problem=problem)
        return tuple(found.values())

    def _versions_of(self, subject: str, fresh: bool, gone: bool) -> list[int]:
        """All versions; `gone`: a subject that was deleted has none."""
        try:
            return self._registry.versions(subject, fresh=fresh)
        except MainstemError as error:
            if gone and error.code == "SUBJECT_UNKNOWN":
                return []
            raise

    def added(self, definition: Definition) -> list[str]:
        """Names of columns that the definition does not have yet."""
        columns = self.columns(definition, definition.columns, fresh=True)
        return [column.name for column in columns[len(definition.columns) :]]

    def _of_version(self, subject: str, version: int, definition: Definition) -> tuple[Column, ...]:
        asked = (subject, version, definition.format, definition.record)
        if asked not in self._versions:
            self._versions[asked] = self._read(subject, version, definition)
        return self._versions[asked]

    def _read(self, subject: str, version: int, definition: Definition) -> tuple[Column, ...]:
        schema, record = self._registry.version(subject, version).schema, definition.record
        if schema.type is not _type_of(definition.format):
            return ()
        parsed = parse(schema, self._registry.resolve)
        if record is not None and record not in record_names(parsed):
            return ()
        made = (_column(name, type_) for name, type_ in to_columns(parsed, record).columns)
        return tuple(column for column in made if column is not None)


def _type_of(form: Format) -> SchemaType:
    return SchemaType(form.upper().removesuffix("_SCHEMA"))


def _column(name: str, type_: str) -> Column | None:
    """The field as a column; None when no column can have its name."""
    source = Source(type_)
    try:
        check_column_name(source, name, 0)
        return Column(name, read_type(Cursor(source, source.statements()[0]), name))
    except MainstemError:
        return None


def _wider(one: str, other: str) -> str:
    """A type that holds the values of both, as far as there is one; else the first."""
    if one in _NUMBERS and other in _NUMBERS:
        return max(one, other, key=_NUMBERS.index)
    nested = one.startswith(_NESTED) and other.startswith(_NESTED)
    return other if nested else one
