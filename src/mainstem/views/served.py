"""One push query as PostgreSQL answers it: its columns, its rows at a moment, what records change.

Both kinds of work wait for their turn, so that subscriptions leave connections to other queries.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

import psycopg

from mainstem.catalog.entry import Entry
from mainstem.errors import MainstemError
from mainstem.views.changes import Change, Evaluated, Evaluation, Selection
from mainstem.views.readers import AsyncConnection, Readers
from mainstem.views.source import Positions
from mainstem.views.values import json_names
from mainstem.vocabulary import Column, Record

_PAGE = 500
_SNAPSHOT_SECONDS = 300.0
_PATIENCE_SECONDS = 30.0
_TRY_AGAIN_SECONDS = 0.5
_AWAY = 503
_SNAPSHOTS = 4
_EVALUATIONS = 3

SnapshotPage = tuple[Positions, list[Change]]


class PushQuery(Protocol):
    """What a subscription needs to know of its query. For the event loop."""

    async def columns(self) -> tuple[Column, ...]:
        """The columns of its rows; comes before all else."""
        ...

    def snapshot(self) -> AsyncGenerator[SnapshotPage, None]:
        """The rows of a table, in pages, each with the place in the log that all belong to."""
        ...

    async def changes(self, records: Sequence[Record]) -> Evaluated:
        """What the records change, in their order."""
        ...


class Turns:
    """How much of PostgreSQL subscriptions may use at a time."""

    def __init__(self) -> None:
        self.snapshots = asyncio.Semaphore(_SNAPSHOTS)
        self.evaluations = asyncio.Semaphore(_EVALUATIONS)


class ServedQuery:
    """A push query over one object."""

    def __init__(self, readers: Readers, turns: Turns, entry: Entry, selection: Selection) -> None:
        self._readers = readers
        self._turns = turns
        self._entry = entry
        self._evaluation = Evaluation(selection)
        self._names: tuple[str, ...] = ()

    async def columns(self) -> tuple[Column, ...]:
        """See PushQuery."""
        async with self._turns.evaluations, self._readers.single() as connection:
            columns = await self._evaluation.columns(connection)
        self._names = json_names([column.name for column in columns])
        return columns

    async def changes(self, records: Sequence[Record]) -> Evaluated:
        """See PushQuery. While PostgreSQL is away or busy it waits, as long as clients can."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                async with self._turns.evaluations:
                    return await self._evaluation.changes(self._readers, self._names, records)
            except MainstemError as error:
                if error.status != _AWAY or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(_TRY_AGAIN_SECONDS)

    async def snapshot(self) -> AsyncGenerator[SnapshotPage, None]:
        """See PushQuery."""
        await self._readers.when_served(self._begun)
        async with self._turns.snapshots:
            deadline = time.monotonic() + _SNAPSHOT_SECONDS
            async with self._readers.snapshot() as connection:
                offsets = await self._position(connection)
                async with psycopg.AsyncRawServerCursor(connection, "snapshot") as rows:
                    await rows.execute(self._evaluation.snapshot)
                    while len(page := await rows.fetchmany(_PAGE)) == _PAGE:
                        yield offsets, [self._evaluation.upsert(self._names, r) for r in page]
                        if time.monotonic() > deadline:
                            raise MainstemError(
                                "SUBSCRIBER_TOO_SLOW", seconds=f"{_SNAPSHOT_SECONDS:g}"
                            )
        # the last page is all there is of a small table: nothing is held while it is sent
        yield offsets, [self._evaluation.upsert(self._names, row) for row in page]

    async def _begun(self) -> None:
        async with self._readers.single() as connection:
            await self._position(connection)

    async def _position(self, connection: AsyncConnection) -> Positions:
        """Where the table's view is in its topic."""
        cursor = await connection.execute(
            "SELECT partition, next_offset FROM _mainstem.offsets WHERE view = $1",
            [self._entry.name],
        )
        offsets = {int(p): int(o) for p, o in await cursor.fetchall()}
        if not offsets:
            raise MainstemError("VIEW_NOT_READY", name=self._entry.name)
        return {self._entry.definition.topic: offsets}
