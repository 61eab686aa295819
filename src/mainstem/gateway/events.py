"""Server-sent events as a response that ends, and cleans up, as soon as the client is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from mainstem.views.push import Event

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """Sends events while the client listens.

    Each write waits until the client's socket takes it, so a slow client slows its own
    subscription and nothing else.
    """

    def __init__(self, events: AsyncGenerator[Event, None]) -> None:
        super().__init__(
            (_text(event) async for event in events),
            headers=_HEADERS,
            media_type="text/event-stream",
        )
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the events end or the client leaves, whichever comes first."""
        sending = asyncio.create_task(self.stream_response(send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                await sending
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            await self._events.aclose()


async def begun(events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """The same events, with the first one already there; raises what that raises."""
    first = await anext(events)

    async def all_of_them() -> AsyncGenerator[Event, None]:
        try:
            yield first
            async for event in events:
                yield event
        finally:
            await events.aclose()

    return all_of_them()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _text(event: Event) -> str:
    # the data is JSON text of our own making: there are no line ends in it
    return f"event: {event.name}\nid: {event.id}\ndata: {event.data}\n\n"
