"""CREATE INDEX and DROP INDEX as statements, and what SHOW INDEXES shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mainstem.catalog.entry import Catalog, Entry
from mainstem.definitions.indexes import check_indexes
from mainstem.definitions.model import CreateIndex, DropIndex, Index, Kind
from mainstem.errors import MainstemError, did_you_mean


def indexes_of(catalog: Catalog) -> dict[str, Index]:
    """All indexes by lower-case name."""
    return {
        index.name.lower(): index
        for entry in catalog.of_kind(Kind.TABLE)
        for index in entry.definition.indexes
    }


def with_index(catalog: Catalog, entry: Entry, statement: CreateIndex) -> list[Entry]:
    """The entries that change for a new index of a table; DUPLICATE_NAME when its name is taken."""
    index = replace(statement.index, table=entry.name)
    taken = indexes_of(catalog).get(index.name.lower())
    if taken is not None:
        raise MainstemError(
            "DUPLICATE_NAME",
            location=index.location,
            name=index.name,
            other=str(taken.location),
        )
    changed = [_with(e, (*e.definition.indexes, index)) for e in _keepers(catalog, entry)]
    check_indexes(changed[0].definition)
    return changed


def without_index(catalog: Catalog, statement: DropIndex) -> list[Entry]:
    """The entries that change when an index goes; UNKNOWN_RELATION when there is none."""
    known = indexes_of(catalog)
    index = known.get(statement.name.lower())
    if index is None:
        names = [one.name for one in known.values()]
        raise MainstemError(
            "UNKNOWN_RELATION",
            location=statement.location,
            name=statement.name,
            suggestion=did_you_mean(statement.name, names),
        )
    return [
        _with(e, tuple(i for i in e.definition.indexes if i.name.lower() != index.name.lower()))
        for e in _keepers(catalog, catalog.entries[index.table.lower()])
    ]


def shown_indexes(
    catalog: Catalog, states: Mapping[tuple[str, str], str]
) -> tuple[tuple[str, ...], list[list[Any]]]:
    """What SHOW INDEXES shows: headings and rows."""
    rows = [
        [i.name, i.table, ", ".join(i.columns), states.get((i.table, i.name), "waiting")]
        for _, i in sorted(indexes_of(catalog).items())
    ]
    return ("name", "table", "columns", "state"), rows


def _keepers(catalog: Catalog, entry: Entry) -> list[Entry]:
    """Who knows of a table's indexes: itself, and the source that it comes with."""
    source = catalog.get(entry.definition.source or "")
    return [entry] if source is None else [entry, source]


def _with(entry: Entry, indexes: tuple[Index, ...]) -> Entry:
    return replace(entry, definition=replace(entry.definition, indexes=indexes))
