"""The objects that a source brings: for each captured table its stream of changes, and its rows.

A table of events (an outbox) brings no rows, but a sink: it routes each event to its topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from mainstem.connect.capture import Captured, Outbox
from mainstem.definitions.connections import receipts
from mainstem.definitions.lexer import Source
from mainstem.definitions.model import Connection, Definition, Format, Kind, Query
from mainstem.definitions.names import plain_name
from mainstem.definitions.query import read_query
from mainstem.definitions.transforms import Filter, Flatten, Named, Rename
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

CHANGES = "_changes"
"""Behind the name of a table: the stream of its changes."""
_AFTER = "after_"
"""Before the columns of the row in a change that was made flat."""
_FOREVER = "forever"
_COMMITS = "commits"
"""The option that asks for a stream of the source's transactions, and what that is called."""
_MARK = (
    "struct<status:string,id:string,event_count:bigint,"
    "data_collections:array<struct<data_collection:string,event_count:bigint>>,ts_ms:bigint>"
)
"""What Debezium writes when a transaction begins, and when it has ended."""


def definitions_of(source: Definition, captured: Sequence[Captured]) -> tuple[Definition, ...]:
    """Stream and table for each captured table, at the place of the source's own statement.

    The stream is Debezium's topic, with one partition: a truncate has no key, and would be in no
    order with the changes of other partitions. The table is made from the whole of it, so it is
    kept forever.
    """
    assert source.captures is not None
    if events := [_stream(source, table) for table in captured if table.events is not None]:
        return tuple(events)
    options = dict(source.captures.options)
    prefix = options.get("prefix", f"{source.name}_")
    made: dict[str, Definition] = {}
    found = [_objects(source, table, prefix + _own_name(table)) for table in captured]
    if options.get(_COMMITS, "").lower() == "true":
        found.append((_commits(source, prefix + _COMMITS),))
    for definition in chain.from_iterable(found):
        if definition.name.lower() in made:
            other = made[definition.name.lower()].location
            raise MainstemError("DUPLICATE_NAME", name=definition.name, other=other)
        made[definition.name.lower()] = definition
    return tuple(made.values())


def _stream(source: Definition, captured: Captured) -> Definition:
    """The stream of a source that brings events."""
    _check_name(captured.table, "stream")
    how = captured.events
    assert how is not None
    return Definition(
        name=captured.table,
        kind=Kind.STREAM,
        topic=captured.topic,
        location=source.location,
        text=source.text,
        columns=captured.columns,
        key=captured.key,
        format=how.format,
        event_time=how.event_time,
        watermark=how.watermark,
        partitions=how.partitions,
        retention=how.retention,
        source=source.name,
        comment=f"events of {source.name}",
    )


def tables_of(source: str, topics: Iterable[str]) -> list[str]:
    """The captured tables, as the source names them, by the topics of their changes."""
    return sorted(topic.removeprefix(f"{source}.") for topic in topics)


def _own_name(captured: Captured) -> str:
    schema, _, name = captured.table.partition(".")
    return name if schema == captured.home else f"{schema}_{name}"


def _objects(source: Definition, table: Captured, name: str) -> tuple[Definition, ...]:
    _check_name(name, "prefix")
    changes = Definition(
        name=name + CHANGES,
        kind=Kind.STREAM,
        topic=table.topic,
        location=source.location,
        text=source.text,
        columns=_change_columns(table),
        format=Format.DEBEZIUM,
        event_time="at",
        # the clock of another machine is no reason to set a change aside
        max_ahead=_FOREVER,
        max_behind=_FOREVER,
        partitions=1,
        retention=_FOREVER,
        source=source.name,
        comment=f"changes of {table.table}, captured by {source.name}",
    )
    if table.outbox is not None:
        return changes, _router(source, changes, table.outbox, name)
    rows = Definition(
        name=name,
        kind=Kind.TABLE,
        topic=name,
        location=source.location,
        text=source.text,
        columns=table.columns,
        key=table.key,
        follows=True,
        query=replace(_query("after.*", changes.name), location=source.location),
        source=source.name,
        comment=f"rows of {table.table}, captured by {source.name}",
    )
    return changes, rows


def _commits(source: Definition, name: str) -> Definition:
    """The stream of the source's transactions, as Debezium writes it: kept as long as changes."""
    return Definition(
        name=name,
        kind=Kind.STREAM,
        topic=f"{source.name}.transaction",
        location=source.location,
        text=source.text,
        columns=(Column("payload", _MARK),),
        partitions=1,
        retention=_FOREVER,
        source=source.name,
        comment=f"transactions of {source.name}",
    )


def _router(source: Definition, changes: Definition, outbox: Outbox, name: str) -> Definition:
    """The sink that writes each event to its topic: rows that come, not those that change or go."""
    at = source.location

    def column(of: str) -> Named:
        return Named(of, at)

    new = "op IN ('c', 'r')"
    return Definition(
        name=name,
        kind=Kind.STREAM,
        topic=name,
        location=at,
        text=source.text,
        columns=receipts(),
        query=replace(_query("*", changes.name), location=at),
        target=Connection(
            "kafka",
            (
                ("topic", f"{source.name}.outbox.{{{_AFTER}{outbox.kind}}}"),
                ("keyed_by", _AFTER + outbox.key),
                ("value", _AFTER + outbox.payload),
                ("headers", "id, type"),
            ),
        ),
        transforms=(
            Filter(new, new, at),
            Flatten(column("after"), at),
            Rename(column(_AFTER + outbox.id), column("id"), at),
            Rename(column(_AFTER + outbox.type), column("type"), at),
        ),
        source=source.name,
        comment=f"events of {source.name}, each to its topic",
    )


def _check_name(name: str, option: str) -> None:
    if not plain_name(name) or "." in name:
        what = "a stream or a table"
        raise MainstemError("INVALID_NAME", name=name, what=what, option=option)


def _change_columns(table: Captured) -> tuple[Column, ...]:
    row = _struct(table.columns)
    # without REPLICA IDENTITY FULL PostgreSQL tells no more of a row that was
    before = row if table.whole else _struct([c for c in table.columns if c.name in table.key])
    return (
        Column("op", "string"),
        Column("before", before),
        Column("after", row),
        Column("position", "string"),
        Column("transaction", "string"),
        Column("at", "timestamp"),
    )


def _struct(columns: Iterable[Column]) -> str:
    return f"struct<{','.join(f'{_quoted(c.name)}:{c.type}' for c in columns)}>"


def _quoted(name: str) -> str:
    plain = name.isascii() and name.isidentifier()
    return name if plain else "`" + name.replace("`", "``") + "`"


def _query(columns: str, changes: str) -> Query:
    text = Source(f"SELECT {columns} FROM {changes}")  # noqa: S608 - a plain name
    query, _ = read_query(text, text.statements()[0], definition=True)
    return query
