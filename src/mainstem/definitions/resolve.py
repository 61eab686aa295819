"""Definitions against each other: order of dependence, unknown names, circles, output columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from sqlglot import exp

from mainstem.definitions.event_time import TIME_TYPES
from mainstem.definitions.formats import check_format
from mainstem.definitions.grouping import shape_of
from mainstem.definitions.model import Definition, Kind, Query, Select
from mainstem.definitions.names import MAX_COLUMN
from mainstem.definitions.places import place_of
from mainstem.definitions.query import aggregates, one_row, reparse
from mainstem.definitions.relations import relations
from mainstem.errors import MainstemError, did_you_mean
from mainstem.vocabulary import HIDDEN_PREFIX, RESERVED_COLUMNS, Column

QueryClass = Literal["pull", "history", "push", "past"]

_PUSH_PARTS = {"expressions", "from_", "where"}
_NOT_STORED = re.compile(r"\b(interval|void|calendar_interval)\b")


def order(
    definitions: Iterable[Definition], existing: Mapping[str, Definition]
) -> list[Definition]:
    """The definitions, each behind those that it reads.

    `existing` are the catalog's other objects by lower-case name; a new definition hides them.
    """
    wanted = {definition.name.lower(): definition for definition in definitions}
    known = {**existing, **wanted}
    graph: TopologicalSorter[str] = TopologicalSorter()
    for name, definition in wanted.items():
        graph.add(name)
        if (pattern := definition.pattern) is not None:
            # it comes behind those whose topics it reads, like any reader
            graph.add(name, *(n for n, d in wanted.items() if pattern.matches(d.topic)))
        if definition.query is None:
            continue
        for read in definition.query.inputs:
            source = known.get(read.lower())
            if source is None:
                raise unknown_relation(definition.query, read, (d.name for d in known.values()))
            check_readable(definition.query, source, known.values())
            if read.lower() in wanted:
                graph.add(name, read.lower())
    try:
        return [wanted[name] for name in graph.static_order()]
    except CycleError as error:
        circle = [wanted[name].name for name in reversed(error.args[1])]
        raise MainstemError(
            "CYCLE", location=wanted[circle[0].lower()].location, cycle=" -> ".join(circle)
        ) from None


def resolve(
    definition: Definition, columns: Sequence[Column], inputs: Sequence[Definition] = ()
) -> Definition:
    """A definition with the columns that the analysis of its query found, or the registry told."""
    query = definition.query
    if query is None:
        return _with_columns(definition, columns) if definition.follows else definition
    seen: dict[str, str] = {}
    for column in columns:
        folded = column.name.lower()
        if folded in seen:
            raise MainstemError(
                "DUPLICATE_COLUMN",
                location=query.location,
                column=column.name,
                name=definition.name,
            )
        seen[folded] = column.name
        _check_output(definition, query, column)
    check_aliases(query, [c.name for source in inputs for c in source.columns])
    if definition.stateful is not None:
        kept = all(key.lower() in seen for key in definition.stateful.key)
        definition = replace(definition, key=definition.stateful.key if kept else ())
    elif definition.kind is Kind.STREAM and not definition.key:
        streams = [source for source in inputs if source.kind is Kind.STREAM]
        if len({tuple(key.lower() for key in source.key) for source in streams}) == 1:
            definition = replace(definition, key=_kept_key(streams[0], seen))
    if definition.kind is Kind.TABLE and not definition.key:
        definition = replace(definition, key=_table_key(definition, query, inputs, seen))
    return _with_columns(definition, columns)


def _with_columns(definition: Definition, columns: Sequence[Column]) -> Definition:
    """The definition with its columns, among which its key and its event time are."""
    seen = {column.name.lower(): column.name for column in columns}
    names = list(seen.values())
    for key in definition.key:
        if key.lower() not in seen:
            raise MainstemError(
                "KEY_NOT_A_COLUMN",
                location=definition.location,
                column=key,
                name=definition.name,
                known=", ".join(names),
                suggestion=did_you_mean(key, names),
            )
    resolved = replace(
        definition,
        columns=tuple(columns),
        key=tuple(seen[key.lower()] for key in definition.key),
    )
    check_format(resolved)
    if definition.event_time is None or definition.time is not None:
        return resolved
    time = resolved.column(definition.event_time)
    if time is None or time.type not in TIME_TYPES:
        raise MainstemError(
            "INVALID_OPTION",
            location=definition.location,
            option="event_time",
            value=definition.event_time,
            problem="it is not a TIMESTAMP column"
            + (" of the query" if definition.derived else ""),
            advice=f"Name one of the columns that is a TIMESTAMP: {', '.join(names)}.",
        )
    return replace(resolved, event_time=time.name)


def _kept_key(source: Definition, columns: Mapping[str, str]) -> tuple[str, ...]:
    """What is derived keeps its input's key, and so the order per key, when it has the columns."""
    return source.key if all(key.lower() in columns for key in source.key) else ()


def _table_key(
    definition: Definition,
    query: Query,
    inputs: Sequence[Definition],
    columns: Mapping[str, str],
) -> tuple[str, ...]:
    """The key of a table whose text names none: all columns of DISTINCT, or that of its table."""
    if query.python is not None:
        if query.row_key is not None:
            return query.row_key
        raise MainstemError(
            "MISSING_PRIMARY_KEY",
            location=definition.location,
            name=definition.name,
            advice='Say which columns tell its rows apart: @table(primary_key="...").',
        )
    parsed = reparse(query)
    tree = parsed.tree
    if one_row(parsed):
        return ()
    if tree.args.get("distinct"):  # SELECT DISTINCT, and UNION without ALL
        return tuple(columns.values())
    if isinstance(tree, exp.Select) and len(list(relations(parsed.tree))) == 1:
        [source] = inputs
        if source.kind is Kind.TABLE and not tree.args.get("laterals"):
            kept = _kept_key(source, columns)
            if kept:
                return kept
    raise MainstemError(
        "MISSING_PRIMARY_KEY",
        location=query.location,
        name=definition.name,
        advice="Add PRIMARY KEY (...) or WITH (key = '...') to keep the latest row of each "
        "key, or group the rows with GROUP BY.",
    )


def classify(select: Select, lookup: Callable[[str], Definition | None]) -> QueryClass:
    """How a query is answered: from the served tables, from the log, or as changes happen.

    `past` is from the log, too: tables as they were.
    """
    query = select.query
    kinds = set()
    for name in query.inputs:
        definition = lookup(name)
        if definition is None:
            raise unknown_relation(query, name, ())
        check_readable(query, definition, ())
        if select.moments and definition.kind is not Kind.TABLE:
            raise MainstemError(
                "WRONG_KIND",
                location=place_of(query, name),
                name=definition.name,
                actual="stream",
                expected="table",
                advice="A stream has a condition in place of AS OF: WHERE _timestamp <= '...'.",
            )
        kinds.add(definition.kind)
    if select.moments:
        return "past"
    if select.emit_changes:
        _check_push(query)
        return "push"
    if kinds == {Kind.STREAM, Kind.TABLE}:
        raise MainstemError(
            "NOT_SUPPORTED",
            location=query.location,
            what="reading streams and tables together",
            where="a query",
            advice="Ask one query over the tables and another over the stream.",
        )
    return "history" if Kind.STREAM in kinds else "pull"


def check_readable(query: Query, source: Definition, known: Iterable[Definition]) -> None:
    """WRONG_KIND when a query reads a source itself; `known` are all objects that there are."""
    if source.kind is not Kind.SOURCE:
        return
    brought = [d.name for d in known if d.source == source.name]
    raise MainstemError(
        "WRONG_KIND",
        location=place_of(query, source.name),
        name=source.name,
        actual="source",
        expected="stream or table",
        advice=f"Read what comes with it: {', '.join(brought) or f'DESCRIBE {source.name}'}.",
    )


def unknown_relation(query: Query, name: str, known: Iterable[str]) -> MainstemError:
    """The error for a name that nothing has, at its place in the query."""
    return MainstemError(
        "UNKNOWN_RELATION",
        location=place_of(query, name),
        name=name,
        suggestion=did_you_mean(name, known),
    )


def _check_output(definition: Definition, query: Query, column: Column) -> None:
    if column.name.lower() in RESERVED_COLUMNS:
        how = f'leave it out with .drop("{column.name}"), or rename it' if query.python else ""
        raise MainstemError(
            "RESERVED_NAME",
            location=query.location,
            name=column.name,
            advice="Every stream has a column of this name already; "
            f"{how or 'give it another with AS'}.",
        )
    if column.name.lower().startswith(HIDDEN_PREFIX):
        raise MainstemError(
            "RESERVED_NAME",
            location=query.location,
            name=column.name,
            advice="The engine uses such names; give it another with AS.",
        )
    if len(column.name.encode()) > MAX_COLUMN:
        raise MainstemError(
            "INVALID_NAME", location=query.location, name=column.name, what="a column"
        )
    if _NOT_STORED.search(column.type):
        raise MainstemError(
            "INVALID_QUERY",
            location=query.location,
            problem=f'column "{column.name}" of "{definition.name}" has the type {column.type}, '
            "which cannot be written; give it another with CAST",
        )


def check_aliases(query: Query, columns: Iterable[str]) -> None:
    """Refuse GROUP BY of an alias that is an input column, too: Spark groups by the column."""
    if not query.aggregates or query.python is not None:
        return
    known = {name.lower() for name in columns}
    for alias in shape_of(reparse(query)).aliases:
        if alias.lower() in known:
            raise MainstemError(
                "INVALID_QUERY",
                location=query.location,
                problem=f"GROUP BY {alias} means the input's column, not the expression of that "
                "name; give the expression another name",
            )


def _check_push(query: Query) -> None:
    parsed = reparse(query)
    tree = parsed.tree
    plain = (
        isinstance(tree, exp.Select)
        and not {part for part, value in tree.args.items() if value} - _PUSH_PARTS
        and len(list(tree.find_all(exp.Select))) == 1
        and len(list(relations(tree))) == 1
        and not tree.find(exp.Window)
        and not aggregates(parsed, tree)
    )
    if not plain:
        raise MainstemError(
            "NOT_SUPPORTED",
            location=query.location,
            what="more than SELECT ... FROM one name WHERE ...",
            where="EMIT CHANGES",
            advice="Make a table of the query, CREATE TABLE name AS SELECT ..., and subscribe to "
            "that: SELECT * FROM name EMIT CHANGES.",
        )
