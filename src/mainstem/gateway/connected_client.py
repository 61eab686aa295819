"""Work for a client that may leave: then nobody waits for the answer, and the work is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from mainstem.errors import MainstemError

T = TypeVar("T")


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives; it is cancelled when the client of the request goes away.

    A query is cancelled in PostgreSQL, too. Work in a thread goes on to its end. The request's
    body must have been read.
    """
    task = asyncio.create_task(work)
    leaving = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
            raise MainstemError("BAD_REQUEST", problem="the client has left")
        return task.result()
    finally:
        leaving.cancel()
        task.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
