"""Pull queries: one answer, from one snapshot, with how fresh it is.

`query` runs any SELECT that the definitions package has checked and put into PostgreSQL's words,
`stream` does so row by row, for answers of any length. `lookup` is the fast way to rows by equal
columns.
"""

# ruff: noqa: S608 - the query was checked and transpiled from a tree

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import psycopg

from mainstem.definitions.model import Definition
from mainstem.errors import MainstemError
from mainstem.schemas.postgres_types import spark_type
from mainstem.views.advice import Hint, advice
from mainstem.views.freshness import EndsOf, Freshness
from mainstem.views.lookups import Lookups
from mainstem.views.readers import AsyncConnection, Readers
from mainstem.views.values import json_array
from mainstem.vocabulary import Clock, Column, Offsets

Parameters = Sequence[Any] | Mapping[str, Any]

_OFFSETS = (
    "SELECT view, json_object_agg(partition, next_offset) FROM _mainstem.offsets"
    " WHERE view = ANY($1) GROUP BY view"
)
_SLOW_SECONDS = 0.02
"""A query that takes longer is looked at for what would make it faster."""
_STREAMS = 4
"""Answers that are streamed at once: each has a connection as long as its client reads."""
_STREAM_WAIT_SECONDS = 5.0
_STREAM_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Ask:
    """A query in PostgreSQL's words, and what it is over."""

    sql: str
    definitions: tuple[Definition, ...] = ()
    parameters: Parameters | None = None
    """None: the text has none, and a `%` in it means itself."""
    limit: int | None = None
    """Most rows of the answer; None: what the settings say, or for a stream as many as there are.
    """

    @property
    def tables(self) -> list[str]:
        """Names of the views."""
        return [definition.name for definition in self.definitions]


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows as JSON texts, one array per row, and what is to be known of them."""

    columns: tuple[Column, ...]
    rows: tuple[str, ...]
    truncated: bool
    freshness: str
    """JSON object: when, and per table its offsets and lag."""
    hints: tuple[Hint, ...] = ()
    """What would make it faster."""

    def to_json(self) -> str:
        """The answer as the gateway gives it."""
        hints = f',"hints":{json.dumps(self.hints)}' if self.hints else ""
        return (
            f'{{"kind":"rows","columns":{_columns(self.columns)},"rows":[{",".join(self.rows)}],'
            f'"truncated":{"true" if self.truncated else "false"},"freshness":{self.freshness}'
            f"{hints}}}"
        )


class Pull:
    """Pull queries over the reader role's connections; for one event loop."""

    def __init__(
        self,
        readers: Readers,
        max_rows: int,
        ends_of: EndsOf,
        clock: Clock | None = None,
    ) -> None:
        self._readers = readers
        self._max_rows = max_rows
        self._freshness = Freshness(ends_of, clock)
        self._lookups = Lookups(readers, max_rows, self._freshness)
        self._streams = asyncio.Semaphore(_STREAMS)

    async def query(self, ask: Ask) -> Answer:
        """Run a SELECT; all of its tables are seen in one snapshot."""
        return await self._readers.when_served(lambda: self._query(ask))

    async def _query(self, ask: Ask) -> Answer:
        most = min(ask.limit or self._max_rows, self._max_rows)
        text = f"SELECT * FROM (\n{ask.sql}\n) AS answer LIMIT {most + 1}"
        as_of, began = self._freshness.now(), time.monotonic()
        async with self._readers.snapshot() as connection:
            async with connection.pipeline():
                answer = psycopg.AsyncCursor(connection)
                await answer.execute(text, ask.parameters, prepare=False)
                offsets = await connection.execute(_OFFSETS, [ask.tables])
                rows = await answer.fetchall()
                positions = await offsets.fetchall()
            slow = time.monotonic() - began > _SLOW_SECONDS
            hints = await advice(connection, ask) if slow else ()
        return Answer(
            columns=_described(answer),
            rows=tuple(json_array(row) for row in rows[:most]),
            truncated=len(rows) > most,
            freshness=self._said(as_of, ask, positions),
            hints=hints,
        )

    async def stream(self, ask: Ask) -> AsyncIterator[bytes]:
        """The answer as lines of JSON, in pieces: a head, a line per row, and an end.

        It begins when the first rows are there: errors up to then are raised, later ones are the
        last line. What is not read is not fetched; a reader that stops for long is ended.
        """
        pieces, first = await self._readers.when_served(lambda: self._begun(ask))
        return _joined(first, pieces)

    async def _begun(self, ask: Ask) -> tuple[AsyncGenerator[bytes], bytes]:
        pieces = self._pieces(ask)
        return pieces, await anext(pieces)

    async def _pieces(self, ask: Ask) -> AsyncGenerator[bytes]:
        text = f"SELECT * FROM (\n{ask.sql}\n) AS answer"
        if ask.limit is not None:
            text += f" LIMIT {ask.limit + 1}"
        try:
            await asyncio.wait_for(self._streams.acquire(), _STREAM_WAIT_SECONDS)
        except TimeoutError:
            raise MainstemError("TOO_MANY_QUERIES") from None
        try:
            as_of = self._freshness.now()
            async with self._readers.snapshot() as connection:
                offsets = await connection.execute(_OFFSETS, [ask.tables])
                said = self._said(as_of, ask, await offsets.fetchall())
                cursor = psycopg.AsyncServerCursor(connection, "answer")
                await cursor.execute(text, ask.parameters)
                head = f'{{"columns":{_columns(_described(cursor))},"freshness":{said}}}\n'
                count, left = 0, ask.limit
                while True:
                    rows = await cursor.fetchmany(_STREAM_ROWS)
                    taken = rows if left is None else rows[:left]
                    count += len(taken)
                    yield (head + "".join([json_array(row) + "\n" for row in taken])).encode()
                    head = ""
                    left = None if left is None else left - len(taken)
                    if len(rows) < _STREAM_ROWS or len(taken) < len(rows):
                        break
                truncated = "true" if len(taken) < len(rows) else "false"
                yield f'{{"end":true,"rows":{count},"truncated":{truncated}}}\n'.encode()
        finally:
            self._streams.release()

    async def lookup(self, definition: Definition, equal: Mapping[str, str]) -> bytes:
        """Rows whose columns have these values, given as text: `{"rows": [...], ...}` as bytes."""
        return await self._readers.when_served(lambda: self._lookups.rows(definition, equal))

    async def positions(self, tables: Sequence[str]) -> dict[str, Offsets]:
        """The next offset to be read, by view and partition."""
        async with self._readers.single() as connection:
            cursor = await connection.execute(_OFFSETS, [list(tables)], prepare=True)
            found = _positions(await cursor.fetchall())
        return {view: {int(p): o for p, o in at.items()} for view, at in found.items()}

    async def explain(self, ask: Ask) -> tuple[str, tuple[Hint, ...]]:
        """PostgreSQL's plan of the query, and what would make it faster."""
        async with self._readers.snapshot() as connection:
            return await _plan(connection, ask), await advice(connection, ask)

    async def row_estimates(self) -> dict[str, int]:
        """About how many rows each view has, from PostgreSQL's statistics."""
        async with self._readers.single() as connection:
            cursor = await connection.execute(
                "SELECT relname, n_live_tup FROM pg_stat_user_tables WHERE schemaname = 'public'"
            )
            return {json.loads(name): int(rows) for name, rows in await cursor.fetchall()}

    def _said(self, as_of: str, ask: Ask, positions: Sequence[tuple[Any, ...]]) -> str:
        found = _positions(positions)
        return self._freshness.say(as_of, {name: found.get(name, {}) for name in ask.tables})


async def _plan(connection: AsyncConnection, ask: Ask) -> str:
    cursor = psycopg.AsyncCursor(connection)
    await cursor.execute(f"EXPLAIN {ask.sql}", ask.parameters, prepare=False)
    return "\n".join([json.loads(line) for (line,) in await cursor.fetchall()])


async def _joined(first: bytes, pieces: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    try:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece
    except MainstemError as error:
        yield json.dumps({"error": error.problem()}).encode() + b"\n"


def _positions(rows: Sequence[tuple[Any, ...]]) -> dict[str, dict[str, int]]:
    return {json.loads(view): json.loads(offsets) for view, offsets in rows}


def _described(cursor: psycopg.AsyncCursor[Any]) -> tuple[Column, ...]:
    return tuple(Column(d.name, spark_type(d.type_display)) for d in cursor.description or ())


def _columns(columns: Sequence[Column]) -> str:
    return json.dumps([{"name": c.name, "type": c.type} for c in columns])
