"""Events as a response: server-sent events or lines of JSON over HTTP, messages over a WebSocket.

Whichever it is, a write waits until the client's socket takes it, so a slow client slows its own
subscription and nothing else; one that takes nothing for a long time is let go.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, Coroutine
from enum import StrEnum
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from mainstem.errors import MainstemError
from mainstem.gateway.protocol import abort
from mainstem.views.events import Event, Piece

_LOG = logging.getLogger(__name__)
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
STALLED_SECONDS = 60.0
"""How long a client may leave its socket full."""
_REFUSED, _TRY_LATER = 1008, 1013
"""How a WebSocket is closed after an error: for good, or until later."""


class Form(StrEnum):
    """How events are written over HTTP: a media type."""

    SSE = "text/event-stream"
    LINES = "application/x-ndjson"


def form_of(accept: str | None) -> Form:
    """What a client that says it accepts this gets."""
    return Form.LINES if accept and "ndjson" in accept.lower() else Form.SSE


class EventStream(StreamingResponse):
    """Sends pieces while the client listens; ends, and cleans up, as soon as it is gone."""

    def __init__(self, pieces: AsyncGenerator[Piece, None], form: Form = Form.SSE) -> None:
        super().__init__((), headers=_HEADERS, media_type=form.value)
        self._pieces = pieces
        self._sse = form is Form.SSE

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the events end or the client leaves, whichever comes first."""
        await _until_left(scope, self._pieces, self._write(send), _left(receive))

    async def _write(self, send: Send) -> None:
        status: Message = {"type": "http.response.start", "status": 200}
        await send({**status, "headers": self.raw_headers})
        async for piece in self._pieces:
            body = piece.sse if self._sse else piece.lines
            async with asyncio.timeout(STALLED_SECONDS):
                await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def over_websocket(socket: WebSocket, pieces: AsyncGenerator[Piece, None]) -> None:
    """Send each event as a message; then close, with the code of an error as the reason.

    What is wrong from the beginning is an event `error`, too: a page cannot see why a WebSocket was
    not opened.
    """
    await socket.accept()
    writing = _unless_left(_messages(socket, pieces))
    await _until_left(socket.scope, pieces, writing, _left(socket.receive))


async def _messages(socket: WebSocket, pieces: AsyncGenerator[Piece, None]) -> None:
    failed: dict[str, Any] | None = None
    try:
        async for piece in pieces:
            async with asyncio.timeout(STALLED_SECONDS):
                for message in piece.messages:
                    await socket.send_text(message)
            last = piece.events[-1]
            failed = json.loads(last.data) if last.name == "error" else None
    except MainstemError as error:
        failed = error.problem()
        await socket.send_text(Event("error", json.dumps(failed), "").message())
    if failed is None:
        await socket.close()
    else:
        later = failed["status"] == 503
        await socket.close(_TRY_LATER if later else _REFUSED, failed["title"])


async def _unless_left(writing: Coroutine[Any, Any, None]) -> None:
    with contextlib.suppress(WebSocketDisconnect):
        await writing


async def singly(events: AsyncGenerator[Event, None]) -> AsyncGenerator[Piece, None]:
    """Each event as a piece of its own."""
    try:
        async for event in events:
            yield Piece((event,), None)
    finally:
        await events.aclose()


async def begun(pieces: AsyncGenerator[Piece, None]) -> AsyncGenerator[Piece, None]:
    """The same pieces, with the first one already there; raises what that raises."""
    first = await anext(pieces)

    async def all_of_them() -> AsyncGenerator[Piece, None]:
        try:
            yield first
            async for piece in pieces:
                yield piece
        finally:
            await pieces.aclose()

    return all_of_them()


async def _until_left(
    scope: Scope,
    pieces: AsyncGenerator[Piece, None],
    write: Coroutine[Any, Any, None],
    leave: Coroutine[Any, Any, None],
) -> None:
    writing, leaving = asyncio.create_task(write), asyncio.create_task(leave)
    try:
        await asyncio.wait((writing, leaving), return_when=asyncio.FIRST_COMPLETED)
        if writing.done():
            await writing
    except TimeoutError:
        error = MainstemError("SUBSCRIBER_TOO_SLOW", seconds=f"{STALLED_SECONDS:g}")
        _LOG.info("%s: %s", error.code, error.message, extra={"path": scope["path"]})
        abort(scope)
    finally:
        for task in (writing, leaving):
            task.cancel()
        try:
            await asyncio.gather(writing, leaving, return_exceptions=True)
        finally:
            await pieces.aclose()


async def _left(receive: Receive) -> None:
    try:
        while (await receive())["type"] not in ("http.disconnect", "websocket.disconnect"):
            pass
    except WebSocketDisconnect:
        pass
