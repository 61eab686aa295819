"""Transforms of a source: what is left out or made unreadable before the log has it.

The system that captures the changes does it, so only what that can do well is taken:

drop                 the column is not captured
mask(..., redact)    three stars in place of each text; Debezium masks no other types

A hash is refused. Debezium keeps its salt in plain text among its settings, and PostgreSQL leaves
large values out of an update that does not touch them: the hash would be that of a placeholder.
All else needs no hurry: it is done in SQL, over what the source brings.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from mainstem.definitions.model import Definition
from mainstem.definitions.transforms import Drop, Mask, Masking, Named, Transform
from mainstem.errors import MainstemError, did_you_mean
from mainstem.vocabulary import SourceLocation

DROP, REDACT = "drop", "redact"
"""Among the values of a source's options: columns, as `schema.table.column`, or `table.column`."""
# where a table is that is named alone; None: in a database that only the options can tell
_CONNECTORS: dict[str, str | None] = {
    "mariadb-cdc": None,
    "mysql-cdc": None,
    "postgres-cdc": "public",
}
_PLAIN = re.compile(r"\w+")
_IN_SQL = "Do it in SQL, over the stream and the table that the source brings."


def told_columns(source: Definition) -> dict[str, tuple[str, ...]]:
    """The columns that are dropped and redacted; raises what no source can do, at its place."""
    found: dict[str, tuple[str, ...]] = {DROP: (), REDACT: ()}
    assert source.captures is not None
    for transform in source.transforms:
        if source.captures.connector not in _CONNECTORS:
            problem = f"a source of the connector {source.captures.connector} has no transforms"
            raise _invalid(transform.location, problem, _IN_SQL)
        for named in _columns(transform):
            how = DROP if isinstance(transform, Drop) else REDACT
            found[how] = (*found[how], _full(source, named))
    return found


def in_database(options: Mapping[str, Any], database: str) -> dict[str, Any]:
    """The options, in which every column has the name of a database."""
    full = {
        how: tuple(c if c.count(".") > 1 else f"{database}.{c}" for c in options.get(how, ()))
        for how in (DROP, REDACT)
    }
    return {**options, **full}


def place_of(source: Definition, column: str | None) -> SourceLocation | None:
    """Where the transforms, which are known to be possible, name a `schema.table.column`."""
    for transform in source.transforms:
        for named in _columns(transform):
            full = _full(source, named)
            if column is not None and (column == full or column.endswith(f".{full}")):
                return named.location
    return None


def check_table(
    options: Mapping[str, Any], table: str, texts: Mapping[str, bool], key: Collection[str]
) -> None:
    """Refuse what cannot be done to a table; `texts` tells of each column whether it is a text."""
    for full in (*options.get(DROP, ()), *options.get(REDACT, ())):
        its, _, column = full.rpartition(".")
        if its != table:
            continue
        if column not in texts:
            raise MainstemError(
                "UNKNOWN_COLUMN",
                column=full,
                known=", ".join(texts),
                suggestion=did_you_mean(column, texts),
            )
        if column in key:
            problem = f"{full} is of the key, by which rows are told apart"
            raise _invalid(None, problem, "Leave it as it is.", column=full)
        if full in options.get(REDACT, ()) and not texts[column]:
            problem = f"{full} is no text, and cannot be redacted at the source"
            raise _invalid(None, problem, "Drop it.", column=full)


def check_tables(options: Mapping[str, Any], tables: Iterable[str]) -> None:
    """Refuse columns of tables that are not captured."""
    known = list(tables)
    for full in (*options.get(DROP, ()), *options.get(REDACT, ())):
        table = full.rpartition(".")[0]
        if table not in known:
            advice = f"The source captures: {', '.join(known)}.{did_you_mean(table, known)}"
            raise _invalid(None, f'the table "{table}" is not captured', advice, column=full)


def _columns(transform: Transform) -> Iterator[Named]:
    match transform:
        case Drop(columns):
            yield from columns
        case Mask(column, Masking.REDACT):
            yield column
        case Mask(how=Masking.HASH):
            advice = "Redact it here or drop it; or capture it, and use sha2() in SQL."
            problem = "a source cannot hash: its salt, or a wrong hash, would be in the log"
            raise _invalid(transform.location, problem, advice)
        case _:
            problem = f"a source cannot {transform.kind}: it only drops columns and redacts texts"
            raise _invalid(transform.location, problem, _IN_SQL)


def _full(source: Definition, named: Named) -> str:
    if named.table is None:
        advice = f"Write it with its table, such as orders.{named.name}."
        raise _invalid(named.location, f'it is not said of which table "{named.name}" is', advice)
    if _PLAIN.fullmatch(named.name) is None:  # what Debezium does not understand it passes over
        problem = f'the column "{named.name}" has signs in its name that cannot be told to Debezium'
        raise _invalid(named.location, problem, "Give it another name there.")
    assert source.captures is not None
    home = _CONNECTORS.get(source.captures.connector)
    table = named.table if "." in named.table or home is None else f"{home}.{named.table}"
    return f"{table}.{named.name}"


def _invalid(
    location: SourceLocation | None, problem: str, advice: str, **more: str
) -> MainstemError:
    return MainstemError(
        "INVALID_TRANSFORM", location=location, problem=problem, advice=advice, **more
    )
