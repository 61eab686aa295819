"""Push queries: server-sent events, lines of JSON, or messages over a WebSocket."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, WebSocket
from starlette.responses import StreamingResponse

from mainstem.definitions.model import Select
from mainstem.definitions.parse import parse_one
from mainstem.definitions.resolve import classify
from mainstem.errors import MainstemError
from mainstem.gateway.events import EventStream, Form, begun, form_of, over_websocket
from mainstem.gateway.services import Services, services
from mainstem.views.changes import selection_of
from mainstem.views.events import Piece
from mainstem.views.subscriber import OnSlow, Subscription
from mainstem.views.tokens import decode_token

router = APIRouter(tags=["queries"])
_SSE_EXAMPLE = (
    'event: upsert\nid: eyJuIjoidG90YWxzIn0\ndata: {"row":{"id":1,"total":12.5},"key":{"id":1}}\n\n'
)
_LINE_EXAMPLE = {
    "event": "upsert",
    "id": "eyJuIjoidG90YWxzIn0",
    "data": {"row": {"id": 1, "total": 12.5}, "key": {"id": 1}},
}
_MOST_SQL = 100_000


@router.get(
    "/v1/subscribe",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {
                Form.SSE.value: {"example": _SSE_EXAMPLE},
                Form.LINES.value: {"example": _LINE_EXAMPLE},
            },
            "description": "The events.",
        }
    },
)
async def subscribe(
    at: Annotated[Services, Depends(services)],
    sql: Annotated[str, Query(description="SELECT ... EMIT CHANGES", max_length=_MOST_SQL)],
    snapshot: Annotated[bool, Query(description="Begin with the rows of a table.")] = True,
    limit: Annotated[int | None, Query(ge=1, description="End after so many changes.")] = None,
    after: Annotated[str | None, Query(description="Go on behind this event's id.")] = None,
    on_slow: Annotated[
        OnSlow,
        Query(
            description="When the client is slow: `block`, all come later; `sample`, the latest."
        ),
    ] = OnSlow.BLOCK,
    accept: Annotated[str | None, Header()] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> EventStream:
    """Rows, then changes: `columns`, `snapshot`, `upsert`, `delete`, `append`, `progress` and more.

    With `Accept: application/x-ndjson` each event is a line of JSON; as a WebSocket, at the same
    path with the same parameters, a text message. Each event has an id; a client that was cut off
    sends the last one it saw as `after` or in `Last-Event-ID`. See docs/subscriptions.md.
    """
    wanted = subscription(
        at, sql, snapshot=snapshot, limit=limit, after=after or last_event_id, on_slow=on_slow
    )
    # what is wrong from the beginning is an answer of its own, not an event
    return EventStream(await begun(at.push.subscribe(wanted)), form_of(accept))


@router.websocket("/v1/subscribe")
async def subscribe_over_websocket(
    socket: WebSocket,
    sql: Annotated[str, Query(max_length=_MOST_SQL)] = "",
    snapshot: bool = True,
    limit: Annotated[int | None, Query(ge=1)] = None,
    after: str | None = None,
    on_slow: OnSlow = OnSlow.BLOCK,
) -> None:
    """The same, one text message for each event."""
    at: Services = socket.app.state.services

    async def pieces() -> AsyncGenerator[Piece, None]:
        wanted = subscription(at, sql, snapshot=snapshot, limit=limit, after=after, on_slow=on_slow)
        async with aclosing(at.push.subscribe(wanted)) as told:
            async for piece in told:
                yield piece

    await over_websocket(socket, pieces())


def subscription(
    at: Services,
    sql: str,
    *,
    snapshot: bool,
    limit: int | None,
    after: str | None,
    on_slow: OnSlow = OnSlow.BLOCK,
) -> Subscription:
    """What a client asked for, checked."""
    catalog = at.catalog()
    statement = parse_one(sql, functions=catalog.functions)
    if not isinstance(statement, Select) or not statement.emit_changes:
        raise MainstemError(
            "BAD_REQUEST", problem="a subscription takes SELECT ... EMIT CHANGES; use /v1/sql"
        )
    if statement.parameters:
        raise MainstemError("BAD_REQUEST", problem="a subscription takes no parameters")
    classify(statement, lambda name: e.definition if (e := catalog.get(name)) else None)
    entry = catalog.get(statement.query.inputs[0])
    if entry is None:
        raise MainstemError("UNKNOWN_RELATION", name=statement.query.inputs[0], suggestion="")
    return Subscription(
        entry,
        selection_of(statement, entry.definition),
        snapshot=snapshot,
        after=decode_token(after) if after else None,
        limit=limit,
        on_slow=on_slow,
    )
