"""CREATE SOURCE and CREATE SINK: a connector and its options, which the connector itself checks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from mainstem.definitions.cursor import Cursor
from mainstem.definitions.lexer import Source
from mainstem.definitions.model import Connection, Definition, Kind, Query
from mainstem.definitions.names import check_object_name, plain_name
from mainstem.definitions.options import Option, invalid, read_options, settings
from mainstem.definitions.query import read_query
from mainstem.definitions.sinks import RECEIPTS
from mainstem.definitions.transform_clause import read_transforms
from mainstem.definitions.types import struct_fields
from mainstem.vocabulary import Column, SourceLocation

CONNECTOR = "connector"
OF_SOURCES = ("comment",)
OF_SINKS = ("comment", "start", "trigger")
"""Options that are no connector's own."""
_START = "start"
_FROM = "SELECT * FROM "
_EXAMPLE = "for example WITH (connector = '...', ...)"


def read_source(cursor: Cursor, begin: int) -> Definition:
    """What follows CREATE SOURCE [IF NOT EXISTS], up to the end; `begin` is where CREATE stands."""
    name = _name(cursor, "source")
    options = _options(cursor)
    transforms = read_transforms(cursor)
    cursor.finish()
    connection, fields = _split(cursor, options, OF_SOURCES)
    return Definition(
        name=name,
        kind=Kind.SOURCE,
        topic="",
        captures=connection,
        transforms=transforms,
        **_common(cursor, begin, fields),
    )


def read_sink(cursor: Cursor, begin: int) -> Definition:
    """What follows CREATE SINK [IF NOT EXISTS], up to the end; `begin` is where CREATE stands."""
    name = _name(cursor, "sink")
    cursor.expect("FROM")
    query = _all_of(cursor)
    options = _options(cursor)
    transforms = read_transforms(cursor)
    cursor.finish()
    connection, fields = _split(cursor, options, OF_SINKS)
    return Definition(
        name=name,
        kind=Kind.STREAM,
        topic=name,
        query=query,
        target=connection,
        transforms=transforms,
        **_common(cursor, begin, fields),
    )


def receipts() -> tuple[Column, ...]:
    """The columns of what a sink leaves behind: a row for each micro-batch that it has taken."""
    return tuple(Column(name, type_) for name, type_ in struct_fields(RECEIPTS).values())


def connection_of(definition: Definition) -> Connection | None:
    """What a source captures, or what a sink writes to."""
    return definition.captures or definition.target


def option_place(definition: Definition, option: str, *, value: bool) -> SourceLocation:
    """Where the name or the value of an option stands; else where the definition begins."""
    start = definition.location
    source = Source(definition.text, start.file, None)
    cursor = Cursor(source, source.statements()[0])
    while not cursor.accept("WITH"):
        cursor.take()
    written = read_options(cursor).get(option)
    if written is None:
        return start
    inside = source.location(written.value_at if value else written.name_at)
    if inside.line > 1:
        return replace(inside, line=start.line + inside.line - 1)
    return replace(start, column=start.column + inside.column - 1)


def _name(cursor: Cursor, what: str) -> str:
    name, name_at = cursor.take_path(f"the name of the {what}")
    check_object_name(cursor.source, name, name_at)
    return name


def _all_of(cursor: Cursor) -> Query:
    """The query for all of the object whose name is at the cursor."""
    source, first = cursor.source, cursor.index
    name, name_at = cursor.take_path("the name of a stream or a table")
    if not plain_name(name):
        raise source.error("INVALID_NAME", name_at, name=name, what="a stream or a table")
    written = "".join(token.text for token in cursor.tokens[first : cursor.index])
    text = Source(f"{_FROM}{written}", source.file)
    query, _ = read_query(text, text.statements()[0], definition=True)
    place = source.location(name_at)
    # the query begins so far before the name that the name is where it is written
    return replace(query, location=replace(place, column=place.column - len(_FROM)))


def _options(cursor: Cursor) -> dict[str, Option]:
    if not cursor.accept("WITH"):
        raise cursor.unexpected(f"the connector, {_EXAMPLE},")
    return read_options(cursor)


def _split(
    cursor: Cursor, options: dict[str, Option], own: tuple[str, ...]
) -> tuple[Connection, dict[str, Any]]:
    """The connector with its options, and the fields of the definition for those in `own`."""
    connector = options.get(CONNECTOR)
    if connector is None:
        raise cursor.source.error(
            "MISSING_OPTION",
            cursor.tokens[0].start,
            option=CONNECTOR,
            what="a connector",
            example=_EXAMPLE,
        )
    mine = {name: option for name, option in options.items() if name in own}
    start = mine.pop(_START, None)
    fields = settings(cursor.source, mine, Kind.STREAM, derived=True)
    if start is not None:
        fields[_START] = _place(cursor.source, start)
    others = ((n, o.value) for n, o in options.items() if n not in (*own, CONNECTOR))
    return Connection(connector.value, tuple(others)), fields


def _place(source: Source, option: Option) -> str:
    """Where a sink begins: a word, or a time."""
    if option.value.lower() in ("earliest", "latest"):
        return option.value.lower()
    try:
        moment = datetime.fromisoformat(option.value)
    except ValueError:
        problem = "it is neither 'earliest' nor 'latest' nor a time such as '2026-01-31T12:00:00Z'"
        raise invalid(source, _START, option, problem) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _common(cursor: Cursor, begin: int, fields: dict[str, Any]) -> dict[str, Any]:
    source = cursor.source
    text = source.text[begin : cursor.tokens[-1].end]
    return {"location": source.location(begin), "text": text, **fields}
