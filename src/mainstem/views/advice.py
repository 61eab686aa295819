"""What would make a query faster: PostgreSQL's plan is looked at for tables that are read whole.

A table that is large, read from one end to the other, and of which a condition leaves few rows,
wants an index over the columns of that condition.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import psycopg

from mainstem.definitions.compared import compared
from mainstem.definitions.names import written
from mainstem.views.rows import table

if TYPE_CHECKING:
    from mainstem.definitions.model import Definition
    from mainstem.views.pull import Ask
    from mainstem.views.readers import AsyncConnection

_LARGE_BYTES = 1024 * 1024
_FEW = 0.2
"""An index does not help when more than this part of the rows is wanted."""


class Hint(TypedDict):
    """What could be done, in words, and the statement that does it."""

    message: str
    sql: str


async def advice(connection: AsyncConnection, ask: Ask) -> tuple[Hint, ...]:
    """Hints for a query; none when it is as fast as it can be, or nobody knows better."""
    cursor = psycopg.AsyncCursor(connection)
    await cursor.execute(f"EXPLAIN (FORMAT JSON) {ask.sql}", ask.parameters, prepare=False)
    [(document,)] = await cursor.fetchall()
    scans = list(filtered_scans(json.loads(document)[0]["Plan"]))
    if not scans:
        return ()
    by_name = {definition.name: definition for definition in ask.definitions}
    sizes = await _sizes(connection, [scan["Relation Name"] for scan in scans])
    hints: dict[str, Hint] = {}
    for scan in scans:
        definition = by_name.get(scan["Relation Name"])
        size, rows = sizes.get(scan["Relation Name"], (0, -1))
        few = rows <= 0 or scan["Plan Rows"] <= rows * _FEW
        if definition is None or size < _LARGE_BYTES or not few:
            continue
        columns = compared(scan["Filter"], definition)
        if columns and not _indexed(definition, columns):
            hint = _hint(definition, columns, rows)
            hints[hint["sql"]] = hint
    return tuple(hints.values())


def filtered_scans(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The nodes of a plan that read a whole table and leave rows out."""
    if plan["Node Type"] == "Seq Scan" and "Filter" in plan:
        yield plan
    for below in plan.get("Plans", ()):
        yield from filtered_scans(below)


def _indexed(definition: Definition, columns: Sequence[str]) -> bool:
    """True when there is an index for it, be it that PostgreSQL has not finished it."""
    wanted = set(columns)
    known = [definition.key, *(index.columns for index in definition.indexes)]
    return any(set(index[: len(wanted)]) == wanted for index in known)


async def _sizes(connection: AsyncConnection, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Bytes, and about how many rows (-1: not known), by table."""
    cursor = await connection.execute(
        "SELECT relname, pg_relation_size(oid), reltuples::bigint FROM pg_class"
        " WHERE oid = ANY($1::text[]::regclass[])",
        [[table(name) for name in names]],
    )
    return {json.loads(n): (int(size), int(rows)) for n, size, rows in await cursor.fetchall()}


def _hint(definition: Definition, columns: Sequence[str], rows: int) -> Hint:
    statement = f"CREATE INDEX ON {written(definition.name)} ({', '.join(map(written, columns))})"
    about = f", about {rows:,} of them" if rows > 0 else ""
    message = f"all rows of {definition.name} are read{about}; an index helps: {statement};"
    return Hint(message=message, sql=statement)
