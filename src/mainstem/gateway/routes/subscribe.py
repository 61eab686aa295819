"""Push queries as server-sent events."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from starlette.responses import StreamingResponse

from mainstem.definitions.model import Select
from mainstem.definitions.parse import parse_one
from mainstem.definitions.resolve import classify
from mainstem.errors import MainstemError
from mainstem.gateway.events import EventStream, begun
from mainstem.gateway.services import Services, services
from mainstem.views.changes import selection_of
from mainstem.views.push import Subscription
from mainstem.views.tokens import decode_token

router = APIRouter(tags=["queries"])


@router.get(
    "/v1/subscribe",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "The events."}},
)
async def subscribe(
    at: Annotated[Services, Depends(services)],
    sql: Annotated[str, Query(description="SELECT ... EMIT CHANGES", max_length=100_000)],
    snapshot: Annotated[bool, Query(description="Begin with the rows of a table.")] = True,
    limit: Annotated[int | None, Query(ge=1, description="End after so many changes.")] = None,
    after: Annotated[str | None, Query(description="Go on behind this event's id.")] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> EventStream:
    """Rows, then changes: `columns`, `upsert`, `delete`, `append`, `progress`, `error` events.

    Each event has an id; a client that was cut off sends the last one it saw in `Last-Event-ID`.
    """
    token = after or last_event_id
    wanted = subscription(at, sql, snapshot=snapshot, limit=limit, after=token)
    # what is wrong from the beginning is an answer of its own, not an event
    return EventStream(await begun(at.push.subscribe(wanted)))


def subscription(
    at: Services, sql: str, *, snapshot: bool, limit: int | None, after: str | None
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
    )
