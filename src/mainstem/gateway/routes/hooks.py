"""Requests of webhooks: JSON that others post, into the stream of a source."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request

from mainstem.connect.listening.webhook import Taken, Webhook
from mainstem.definitions.model import Definition
from mainstem.errors import MainstemError
from mainstem.gateway.records import outgoing
from mainstem.gateway.services import Services, services
from mainstem.log.producer import Outgoing

router = APIRouter(tags=["records"])

_PROBLEM = {"application/problem+json": {"schema": {"type": "object"}}}
_REFUSED: dict[int | str, dict[str, Any]] = {
    401: {"description": "The signature is missing or does not fit.", "content": _PROBLEM},
    404: {"description": "There is no webhook of that name.", "content": _PROBLEM},
    413: {"description": "The body is too large.", "content": _PROBLEM},
    422: {
        "description": "The body does not fit; `index`, `path` and `detail` say where and why.",
        "content": _PROBLEM,
    },
    503: {"description": "The source is paused, or the log away: try again.", "content": _PROBLEM},
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"oneOf": [{"type": "object"}, {"type": "array"}]},
            }
        },
    }
}


@router.post("/v1/hooks/{source}", openapi_extra=_BODY, responses=_REFUSED)
async def take(
    at: Annotated[Services, Depends(services)], source: str, request: Request
) -> dict[str, Any]:
    """Take a request for a source with the connector `webhook`; answered when the log has it.

    `duplicate` is true when a request with the same id was taken before: then nothing is written.
    """
    hook = _hook(at, source)
    body = await request.body()
    headers = {name.lower(): value for name, value in request.headers.items()}

    def encode(stream: Definition, rows: Sequence[Mapping[str, Any]]) -> list[Outgoing]:
        try:
            return outgoing(stream, [{"value": dict(row)} for row in rows], at.codec)
        except MainstemError as error:
            for name in ("path", "problem"):  # the sender knows nothing of a value around it
                error.params[name] = str(error.params.get(name, "")).removeprefix("value.")
            raise

    taken: Taken = await asyncio.to_thread(hook.take, headers, body, encode)
    return {"written": taken.written, "duplicate": taken.duplicate}


def _hook(at: Services, name: str) -> Webhook:
    listeners = at.connectors.listeners
    told = listeners.one(name)
    if told is None or told["connector"] != "webhook":
        raise MainstemError("HOOK_UNKNOWN", name=name)
    running = listeners.running(name)
    if not isinstance(running, Webhook):
        raise MainstemError("SOURCE_NOT_READY", name=name)
    return running
