"""Pull queries: one answer, from one snapshot, with how fresh it is.

`query` runs any SELECT that the definitions package has checked and put into PostgreSQL's words.
`lookup` is the fast way to rows by equal columns: one prepared statement, one round trip.
"""

# ruff: noqa: S608 - names go through `quoted`; the query was checked and transpiled from a tree

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from mainstem.definitions.model import Definition
from mainstem.errors import MainstemError, did_you_mean
from mainstem.schemas.postgres_types import postgres_type, spark_type
from mainstem.views.observe import lag
from mainstem.views.readers import Readers
from mainstem.views.rows import literal, quoted, table
from mainstem.views.times import iso_utc
from mainstem.views.values import json_array, json_names, json_object
from mainstem.vocabulary import Clock, Column, Offsets, SystemClock

Parameters = Sequence[Any] | Mapping[str, Any]
EndsOf = Callable[[str], Offsets | None]
"""The last known ends of a view's topic, by the view's name; None when not known."""

_OFFSETS = (
    "SELECT view, json_object_agg(partition, next_offset) FROM _mainstem.offsets"
    " WHERE view = ANY($1) GROUP BY view"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows as JSON texts, one array per row, and what is to be known of them."""

    columns: tuple[Column, ...]
    rows: tuple[str, ...]
    truncated: bool
    freshness: str
    """JSON object: when, and per table its offsets and lag."""

    def to_json(self) -> str:
        """The answer as the gateway gives it."""
        columns = json.dumps([{"name": c.name, "type": c.type} for c in self.columns])
        return (
            f'{{"kind":"rows","columns":{columns},"rows":[{",".join(self.rows)}],'
            f'"truncated":{"true" if self.truncated else "false"},"freshness":{self.freshness}}}'
        )


class Pull:
    """Pull queries over the reader role's connections."""

    def __init__(
        self,
        readers: Readers,
        max_rows: int,
        ends_of: EndsOf,
        clock: Clock | None = None,
    ) -> None:
        self._readers = readers
        self._max_rows = max_rows
        self._ends_of = ends_of
        self._clock = clock or SystemClock()
        self._lookups: dict[tuple[str, tuple[str, ...]], _Lookup] = {}

    async def query(
        self, sql: str, tables: Sequence[str], parameters: Parameters | None = None
    ) -> Answer:
        """Run a SELECT over these tables; all of them are seen in one snapshot.

        Without parameters (None) a `%` in the text means itself.
        """
        return await self._readers.when_served(lambda: self._query(sql, tables, parameters))

    async def _query(
        self, sql: str, tables: Sequence[str], parameters: Parameters | None
    ) -> Answer:
        text = f"SELECT * FROM (\n{sql}\n) AS answer LIMIT {self._max_rows + 1}"
        as_of = iso_utc(self._clock.now())
        async with self._readers.snapshot() as connection, connection.pipeline():
            answer = psycopg.AsyncCursor(connection)
            await answer.execute(text, parameters, prepare=False)
            offsets = await connection.execute(_OFFSETS, [list(tables)])
            rows = await answer.fetchall()
            positions = {json.loads(view): json.loads(o) for view, o in await offsets.fetchall()}
        columns = tuple(
            Column(d.name, spark_type(d.type_display)) for d in answer.description or ()
        )
        return Answer(
            columns=columns,
            rows=tuple(json_array(row) for row in rows[: self._max_rows]),
            truncated=len(rows) > self._max_rows,
            freshness=self._freshness(as_of, {name: positions.get(name, {}) for name in tables}),
        )

    async def lookup(self, definition: Definition, equal: Mapping[str, str]) -> bytes:
        """Rows whose columns have these values, given as text: `{"rows": [...], ...}` as bytes."""
        return await self._readers.when_served(lambda: self._lookup(definition, equal))

    async def _lookup(self, definition: Definition, equal: Mapping[str, str]) -> bytes:
        found = self._lookups.get((definition.name, tuple(equal)))
        if found is None or found.definition is not definition:
            found = _Lookup(definition, tuple(equal), self._max_rows)
            if len(self._lookups) >= _MOST_LOOKUPS:
                self._lookups.clear()
            self._lookups[definition.name, tuple(equal)] = found
        as_of = iso_utc(self._clock.now())
        async with self._readers.single() as connection:
            cursor = await connection.execute(found.sql, list(equal.values()), prepare=True)
            rows = await cursor.fetchall()
        names = found.names
        body = ",".join([json_object(names, row[2:]) for row in rows if row[1] is not None])
        freshness = self._freshness(as_of, {definition.name: json.loads(rows[0][0] or "{}")})
        return f'{{"rows":[{body}],"freshness":{freshness}}}'.encode()

    async def row_estimates(self) -> dict[str, int]:
        """About how many rows each view has, from PostgreSQL's statistics."""
        async with self._readers.single() as connection:
            cursor = await connection.execute(
                "SELECT relname, n_live_tup FROM pg_stat_user_tables WHERE schemaname = 'public'"
            )
            return {json.loads(name): int(rows) for name, rows in await cursor.fetchall()}

    def _freshness(self, as_of: str, positions: Mapping[str, Mapping[str, int]]) -> str:
        tables: dict[str, Any] = {}
        for name, offsets in positions.items():
            ends = self._ends_of(name)
            at = {int(p): o for p, o in offsets.items()}
            tables[name] = {
                "offsets": offsets,
                "lag_records": None if ends is None else lag(at, ends),
            }
        return json.dumps({"as_of": as_of, "tables": tables}, separators=(",", ":"))


_MOST_LOOKUPS = 1000


class _Lookup:
    """The statement for one table and one set of columns."""

    def __init__(self, definition: Definition, columns: tuple[str, ...], max_rows: int) -> None:
        self.definition = definition
        conditions = []
        for number, name in enumerate(columns, 1):
            column = definition.column(name)
            if column is None:
                known = [c.name for c in definition.columns]
                raise MainstemError(
                    "UNKNOWN_COLUMN",
                    column=name,
                    known=", ".join(known),
                    suggestion=did_you_mean(name, known),
                )
            type_name = postgres_type(column.type, column.name)
            conditions.append(f"{quoted(column.name)} = ${number}::text::{type_name}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        # with the types in its text, a statement prepared for the columns of before is not reused
        shown = ", ".join(
            f"v.{quoted(c.name)}::{postgres_type(c.type, c.name)}" for c in definition.columns
        )
        # the left join gives the offsets even when no row is found
        self.sql = (
            "SELECT o.offsets, v._mainstem_found, "
            f"{shown} FROM (SELECT json_object_agg(partition, next_offset) AS offsets"
            f" FROM _mainstem.offsets WHERE view = {literal(definition.name)}) o LEFT JOIN LATERAL"
            f" (SELECT true AS _mainstem_found, * FROM {table(definition.name)}{where}"
            f" LIMIT {max_rows}) v ON true"
        )
        self.names = json_names([c.name for c in definition.columns])
