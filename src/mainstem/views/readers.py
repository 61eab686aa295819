"""Connections of the reader role, pooled, for the event loop; PostgreSQL's errors in our words.

A session of this role is read-only and has a statement time-out, whatever the text asks for.
Values come as pieces of JSON text (see `values`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from mainstem.errors import MainstemError
from mainstem.views.store import SESSION
from mainstem.views.values import load_as_json

AsyncConnection = psycopg.AsyncConnection[tuple[Any, ...]]

T = TypeVar("T")

_WAIT_SECONDS = 5.0
_NEW_VIEW_SECONDS = 5.0
_ASK_AGAIN_SECONDS = 0.1
_SNAPSHOT_IDLE_SECONDS = 60


class Readers:
    """Two pools: `single` for statements that stand alone, `snapshot` for several in one snapshot.

    Open and use it inside one event loop.
    """

    def __init__(self, url: str, timeout_seconds: float, size: int = 8) -> None:
        self.timeout_seconds = timeout_seconds
        options = (
            f"{SESSION} -c default_transaction_read_only=on -c search_path=public"
            f" -c statement_timeout={int(timeout_seconds * 1000)}"
            f" -c idle_in_transaction_session_timeout={_SNAPSHOT_IDLE_SECONDS * 1000}"
        )
        self._single = _pool(url, options, size, _configure_single)
        self._snapshot = _pool(url, options, size, _configure_snapshot)

    async def open(self) -> None:
        """Begin to connect; does not wait for PostgreSQL."""
        await self._single.open()
        await self._snapshot.open()

    async def close(self) -> None:
        """Close all connections."""
        await self._single.close()
        await self._snapshot.close()

    @asynccontextmanager
    async def single(self) -> AsyncIterator[AsyncConnection]:
        """A connection on which every statement is a transaction of its own."""
        async with self._translated(self._single), self._single.connection() as connection:
            yield connection

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncConnection]:
        """A read-only transaction in which all statements see the same state."""
        async with self._translated(self._snapshot), self._snapshot.connection() as connection:
            yield connection

    async def when_served(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What `ask` gives; while that is VIEW_NOT_READY, a new table gets a moment to appear."""
        deadline = time.monotonic() + _NEW_VIEW_SECONDS
        while True:
            try:
                return await ask()
            except MainstemError as error:
                if error.code != "VIEW_NOT_READY" or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(_ASK_AGAIN_SECONDS)

    async def ping(self) -> None:
        """Return when PostgreSQL answers; VIEW_STORE_UNREACHABLE when it does not."""
        async with self.single() as connection:
            await connection.execute("SELECT 1")

    @asynccontextmanager
    async def _translated(self, pool: AsyncConnectionPool[AsyncConnection]) -> AsyncIterator[None]:
        try:
            yield
        except PoolTimeout as error:
            # connections there are, and none that is free
            busy = pool.get_stats().get("pool_size", 0) >= pool.max_size
            code = "TOO_MANY_QUERIES" if busy else "VIEW_STORE_UNREACHABLE"
            raise MainstemError(code) from error
        except (psycopg.Error, PoolClosed) as error:
            raise translate(error, self.timeout_seconds) from error


def translate(error: Exception, timeout_seconds: float) -> MainstemError:
    """The error of the catalogue for one of psycopg's or of the pool's."""
    if isinstance(error, pg.QueryCanceled):
        return MainstemError("QUERY_TOO_LONG", seconds=f"{timeout_seconds:g}")
    if isinstance(error, psycopg.Error) and error.sqlstate and not _lost(error.sqlstate):
        if isinstance(error, pg.UndefinedTable):
            # the catalog knows the table, or the query would not have come this far
            name = (error.diag.message_primary or "").partition('"')[2].rpartition('"')[0]
            return MainstemError("VIEW_NOT_READY", name=name.removeprefix("public.") or "?")
        problem = error.diag.message_primary or type(error).__name__
        return MainstemError("QUERY_FAILED", problem=problem)
    if isinstance(error, (psycopg.ProgrammingError, psycopg.DataError)):
        return MainstemError("QUERY_FAILED", problem=str(error))
    return MainstemError("VIEW_STORE_UNREACHABLE")


def _lost(sqlstate: str) -> bool:
    """True when the server or the connection is gone, rather than the statement wrong."""
    return sqlstate.startswith(("08", "57P", "28", "3D"))


async def _configure_single(connection: AsyncConnection) -> None:
    await connection.set_autocommit(True)
    load_as_json(connection)


async def _configure_snapshot(connection: AsyncConnection) -> None:
    await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
    load_as_json(connection)


def _pool(
    url: str, options: str, size: int, configure: Any
) -> AsyncConnectionPool[AsyncConnection]:
    return AsyncConnectionPool(
        url,
        connection_class=psycopg.AsyncConnection[tuple[Any, ...]],
        kwargs={
            "options": options,
            "application_name": "mainstem reader",
            "cursor_factory": psycopg.AsyncRawCursor,
            "connect_timeout": int(_WAIT_SECONDS),
            "prepare_threshold": 1,
        },
        configure=configure,
        min_size=1,
        max_size=size,
        timeout=_WAIT_SECONDS,
        reconnect_timeout=float("inf"),
        open=False,
    )
