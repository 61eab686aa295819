"""CloudEvents into a stream."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mainstem.gateway import producing
from mainstem.gateway.cloud_events import BATCH, STRUCTURED, as_record, read_events
from mainstem.gateway.receipts import Asked
from mainstem.gateway.routes.problems_shown import problems
from mainstem.gateway.routes.streams import Key
from mainstem.gateway.services import Services, services

router = APIRouter(tags=["records"])
_EVENT = {
    "specversion": "1.0",
    "id": "7c1f",
    "source": "/web",
    "type": "click",
    "data": {"user": "ann", "at": "2026-11-15T09:00:00Z"},
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            STRUCTURED: {"schema": {"type": "object"}, "example": _EVENT},
            BATCH: {
                "schema": {"type": "array", "minItems": 1, "items": {"type": "object"}},
                "example": [_EVENT],
            },
            "application/json": {"schema": {}, "example": _EVENT["data"]},
        },
    }
}


@router.post(
    "/v1/streams/{name}/events",
    openapi_extra=_BODY,
    responses=problems(400, 404, 413, 422, 503),
)
async def take(
    at: Annotated[Services, Depends(services)],
    name: str,
    request: Request,
    idempotency_key: Key = None,
) -> Response:
    """Take CloudEvents 1.0, all or none: structured, binary (`ce-` headers), or a batch.

    The data is an object of the stream's columns, or goes into a column `data`; attributes go into
    columns such as `ce_id`, and into headers of the record.
    """
    body = await request.body()

    def work() -> dict[str, Any]:
        entry = producing.target(at, name)
        events = read_events(dict(request.headers), body)
        records = [as_record(event, entry.definition) for event in events]
        asked = Asked.of(f"events {entry.name.lower()}", idempotency_key, body)
        done: dict[str, Any] = producing.write(at, entry, records, asked)
        return done

    return JSONResponse(await asyncio.to_thread(work))
