"""CREATE INDEX and DROP INDEX: which columns of a table PostgreSQL finds rows by, beside its key.

An index belongs to the definition of its table, so that it is planned, made and rebuilt with it.
One of a table that comes with a source is kept by the source, whose text brings the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mainstem.definitions.cursor import Cursor
from mainstem.definitions.model import CreateIndex, Definition, DropIndex, Index, Kind
from mainstem.definitions.names import MAX_COLUMN
from mainstem.errors import MainstemError, did_you_mean

_MOST_COLUMNS = 16
_WITHOUT_ORDER = ("array<", "map<", "struct<", "variant")


def at_index(cursor: Cursor) -> bool:
    """True at CREATE INDEX or DROP INDEX."""
    return cursor.peek(1).upper == "INDEX"


def read_create_index(cursor: Cursor) -> CreateIndex:
    """CREATE INDEX [IF NOT EXISTS] [name] ON table (columns)."""
    source = cursor.source
    begin = cursor.take().start
    cursor.expect("INDEX")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name_at = cursor.current.start
    name = "" if cursor.at("ON") else cursor.take_name("a name or ON").name
    cursor.expect("ON")
    table, _ = cursor.take_path("the name of a table")
    cursor.expect("(")
    columns: list[str] = []
    while True:
        token = cursor.take_name("a column")
        if token.name.lower() in (column.lower() for column in columns):
            raise source.error("DUPLICATE_COLUMN", token.start, column=token.name, name=table)
        columns.append(token.name)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    cursor.finish()
    if len(columns) > _MOST_COLUMNS:
        raise source.syntax(f"an index has {_MOST_COLUMNS} columns at most", begin)
    name = name or "_".join([table.rpartition(".")[2], *columns]).lower()[:MAX_COLUMN]
    if not name or len(name.encode()) > MAX_COLUMN or not name.isprintable():
        raise source.error("INVALID_NAME", name_at, name=name, what="an index")
    index = Index(name, table, tuple(columns), source.location(begin))
    return CreateIndex(index, if_not_exists)


def read_drop_index(cursor: Cursor) -> DropIndex:
    """DROP INDEX [IF EXISTS] name."""
    place = cursor.source.location(cursor.take().start)
    cursor.expect("INDEX")
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.take_name("the name of an index").name
    cursor.finish()
    return DropIndex(name, place, if_exists)


def with_indexes(definitions: Sequence[Definition], indexes: Iterable[Index]) -> list[Definition]:
    """The definitions, each with the indexes of its table; of a source, those of its tables."""
    by_name = {definition.name.lower(): definition for definition in definitions}
    places: dict[str, Index] = {}
    for index in indexes:
        other = places.setdefault(index.name.lower(), index)
        if other is not index:
            raise MainstemError(
                "DUPLICATE_NAME",
                location=index.location,
                name=index.name,
                other=str(other.location),
            )
        owner = _owner(by_name, index)
        own = index if owner.kind is Kind.SOURCE else replace(index, table=owner.name)
        by_name[owner.name.lower()] = replace(owner, indexes=(*owner.indexes, own))
    return [by_name[definition.name.lower()] for definition in definitions]


def _owner(by_name: Mapping[str, Definition], index: Index) -> Definition:
    """The table, or the source that it comes with: what a source brings is not known here."""
    table = index.table.lower()
    found = by_name.get(table)
    if found is not None and found.kind is not Kind.SOURCE:
        return found
    sources = [d for d in by_name.values() if table.startswith(_prefix(d)) and d.captures]
    if sources:
        return max(sources, key=lambda source: len(_prefix(source)))
    known = [definition.name for definition in by_name.values()]
    raise MainstemError(
        "UNKNOWN_RELATION",
        location=index.location,
        name=index.table,
        suggestion=did_you_mean(index.table, known),
    )


def _prefix(source: Definition) -> str:
    """What the names of a source's tables begin with."""
    options = dict(source.captures.options) if source.captures else {}
    return options.get("prefix", f"{source.name}_").lower()


def brought(source: Definition, definition: Definition) -> Definition:
    """What comes with a source, with the indexes that the source keeps for it."""
    name = definition.name
    mine = tuple(replace(i, table=name) for i in source.indexes if i.table.lower() == name.lower())
    return replace(definition, indexes=mine) if mine else definition


def check_indexes(definition: Definition) -> None:
    """Refuse indexes of what is no served table, and over columns that it has not."""
    if definition.kind is Kind.SOURCE:
        return
    for index in definition.indexes:
        if definition.kind is not Kind.TABLE or definition.is_sink:
            raise MainstemError(
                "WRONG_KIND",
                location=index.location,
                name=definition.name,
                actual=definition.noun,
                expected="table",
                advice="Rows of a table are found by its key and its indexes.",
            )
        for name in index.columns:
            column = definition.column(name)
            if column is None:
                known = [c.name for c in definition.columns]
                raise MainstemError(
                    "UNKNOWN_COLUMN",
                    location=index.location,
                    column=name,
                    known=", ".join(known),
                    suggestion=did_you_mean(name, known),
                )
            if column.type.startswith(_WITHOUT_ORDER):
                raise MainstemError(
                    "NOT_SUPPORTED",
                    location=index.location,
                    what=f'column "{column.name}" of type {column.type}',
                    where="an index",
                    advice="Make a table with the part that you look for as a column.",
                )
