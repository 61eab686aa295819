"""Rows by equal columns: prepared statements, and one statement for all who ask at once.

A look-up by the whole key that comes while another one is on its way to PostgreSQL waits for its
return, and is then asked together with all that have come meanwhile. One client waits for nobody;
of many, each pays for a part of a round trip only. All rows of one statement are of one snapshot.
"""

# ruff: noqa: S608 - names go through `quoted`, values are parameters

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mainstem.definitions.model import Definition
from mainstem.errors import MainstemError, did_you_mean
from mainstem.schemas.postgres_types import postgres_type
from mainstem.views.freshness import Freshness
from mainstem.views.readers import Readers
from mainstem.views.rows import literal, quoted, table
from mainstem.views.values import json_names, json_object

_MOST_SHAPES = 1000
_LANES = 2
"""Statements of one shape on their way at once: PostgreSQL works while we write answers."""
_MOST_TOGETHER = 200


class Lookups:
    """Look-ups over the reader role's connections; for one event loop."""

    def __init__(self, readers: Readers, max_rows: int, freshness: Freshness) -> None:
        self._readers = readers
        self._max_rows = max_rows
        self._freshness = freshness
        self._shapes: dict[tuple[str, tuple[str, ...]], _Several | _Alone] = {}

    async def rows(self, definition: Definition, equal: Mapping[str, str]) -> bytes:
        """Rows whose columns have these values, given as text: `{"rows": [...], ...}` as bytes."""
        columns = tuple(equal)
        shape = self._shapes.get((definition.name, columns))
        if shape is None or shape.definition is not definition:
            shape = self._shape(definition, columns)
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            self._shapes[definition.name, columns] = shape
        return await shape.rows(list(equal.values()))

    def _shape(self, definition: Definition, columns: tuple[str, ...]) -> _Several | _Alone:
        key = {name.lower() for name in definition.key}
        whole = bool(key) and {name.lower() for name in columns} == key
        # a key has one row at most, so that what is asked together stays small
        kind = _Several if whole and len(columns) == len(key) else _Alone
        return kind(definition, columns, self._readers, self._freshness, self._max_rows)


class _Shape:
    """One table and one set of columns."""

    def __init__(
        self,
        definition: Definition,
        columns: tuple[str, ...],
        readers: Readers,
        freshness: Freshness,
        max_rows: int,
    ) -> None:
        self.definition = definition
        self._readers = readers
        self._freshness = freshness
        self._names = json_names([c.name for c in definition.columns])
        found = [_column(definition, name) for name in columns]
        self._types = [postgres_type(c.type, c.name) for c in found]
        self.sql = self._sql([quoted(c.name) for c in found], max_rows)

    def _sql(self, columns: Sequence[str], max_rows: int) -> str:
        raise NotImplementedError

    @property
    def _shown(self) -> str:
        # with the types in its text, a statement prepared for the columns of before is not reused
        return ", ".join(
            f"v.{quoted(c.name)}::{postgres_type(c.type, c.name)}" for c in self.definition.columns
        )

    @property
    def _offsets(self) -> str:
        return (
            "(SELECT json_object_agg(partition, next_offset) AS offsets"
            f" FROM _mainstem.offsets WHERE view = {literal(self.definition.name)}) o"
        )

    def _said(self, as_of: str, rows: Sequence[Sequence[Any]]) -> str:
        """How fresh rows are that were asked for at that time; the first column has the offsets."""
        positions = json.loads(rows[0][0] or "{}")
        return self._freshness.say(as_of, {self.definition.name: positions})

    def _answer(self, rows: Sequence[str], freshness: str) -> bytes:
        return f'{{"rows":[{",".join(rows)}],"freshness":{freshness}}}'.encode()


class _Alone(_Shape):
    """Columns that any number of rows may share: each look-up is a statement."""

    def _sql(self, columns: Sequence[str], max_rows: int) -> str:
        equal = (f"{c} = ${n}::text::{t}" for n, (c, t) in self._numbered(columns))
        where = " WHERE " + " AND ".join(equal) if columns else ""
        # the left join gives the offsets even when no row is found
        return (
            f"SELECT o.offsets, v._mainstem_found, {self._shown} FROM {self._offsets}"
            f" LEFT JOIN LATERAL (SELECT true AS _mainstem_found, * FROM"
            f" {table(self.definition.name)}{where} LIMIT {max_rows}) v ON true"
        )

    def _numbered(self, columns: Sequence[str]) -> enumerate[tuple[str, str]]:
        return enumerate(zip(columns, self._types, strict=True), 1)

    async def rows(self, values: list[str]) -> bytes:
        """The answer to one look-up."""
        as_of = self._freshness.now()
        async with self._readers.single() as connection:
            cursor = await connection.execute(self.sql, values, prepare=True)
            rows = await cursor.fetchall()
        found = [json_object(self._names, row[2:]) for row in rows if row[1] is not None]
        return self._answer(found, self._said(as_of, rows))


class _Several(_Shape):
    """The whole key: those who ask at once are answered by one statement."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._waiting: list[tuple[list[str], asyncio.Future[bytes]]] = []
        self._lanes: set[asyncio.Task[None]] = set()

    def _sql(self, columns: Sequence[str], max_rows: int) -> str:
        del max_rows
        arrays = ", ".join(f"${n}::text[]" for n in range(1, len(columns) + 1))
        asked = ", ".join(f"k{n}" for n in range(1, len(columns) + 1))
        equal = " AND ".join(
            f"{c} = k{n}::{t}" for n, (c, t) in enumerate(zip(columns, self._types, strict=True), 1)
        )
        return (
            f"SELECT o.offsets, v._mainstem_n, {self._shown} FROM {self._offsets} LEFT JOIN"
            f" (SELECT _mainstem_n, found.* FROM unnest({arrays}) WITH ORDINALITY AS"
            f" asked({asked}, _mainstem_n) CROSS JOIN LATERAL (SELECT * FROM"
            f" {table(self.definition.name)} WHERE {equal}) found) v ON true"
        )

    async def rows(self, values: list[str]) -> bytes:
        """The answer to one look-up."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append((values, future))
        if len(self._lanes) < _LANES:
            lane = asyncio.create_task(self._drive())
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)
        return await future

    async def _drive(self) -> None:
        while self._waiting:
            # two lanes share what waits, and each leaves something for the other's return
            asked = self._waiting[:_MOST_TOGETHER]
            del self._waiting[:_MOST_TOGETHER]
            await self._settle([one for one in asked if not one[1].done()])

    async def _settle(self, asked: list[tuple[list[str], asyncio.Future[bytes]]]) -> None:
        try:
            answers = await self._ask([values for values, _ in asked])
        except MainstemError as error:
            if error.code == "QUERY_FAILED" and len(asked) > 1:
                # one value that is none of its column's must not be the others' error
                for one in asked:
                    await self._settle([one])
                return
            self._fail(asked, error)
        except BaseException as error:  # whoever waits must hear of it, whatever it is
            self._fail(asked, error)
            raise
        else:
            for (_, future), answer in zip(asked, answers, strict=True):
                if not future.done():
                    future.set_result(answer)

    @staticmethod
    def _fail(asked: list[tuple[list[str], asyncio.Future[bytes]]], error: BaseException) -> None:
        for _, future in asked:
            if not future.done():
                future.set_exception(error)

    async def _ask(self, keys: list[list[str]]) -> list[bytes]:
        if not keys:
            return []
        as_of = self._freshness.now()
        async with self._readers.single() as connection:
            arrays = [list(column) for column in zip(*keys, strict=True)]
            cursor = await connection.execute(self.sql, arrays, prepare=True)
            rows = await cursor.fetchall()
        freshness = self._said(as_of, rows)
        found: list[list[str]] = [[] for _ in keys]
        for row in rows:
            if row[1] is not None:
                found[int(row[1]) - 1].append(json_object(self._names, row[2:]))
        return [self._answer(one, freshness) for one in found]


def _column(definition: Definition, name: str) -> Any:
    column = definition.column(name)
    if column is None:
        known = [c.name for c in definition.columns]
        raise MainstemError(
            "UNKNOWN_COLUMN",
            column=name,
            known=", ".join(known),
            suggestion=did_you_mean(name, known),
        )
    return column
