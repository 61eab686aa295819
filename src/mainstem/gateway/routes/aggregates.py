"""Event sourcing: append with an expected version, load, and keep snapshots."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mainstem.errors import MainstemError
from mainstem.gateway import producing
from mainstem.gateway.aggregates import Aggregate, Loaded, read_key
from mainstem.gateway.receipts import Asked
from mainstem.gateway.routes.problems_shown import problems
from mainstem.gateway.routes.streams import Key
from mainstem.gateway.services import Services, services
from mainstem.schemas.codec import Codec, NotDecoded

router = APIRouter(tags=["aggregates"], responses=problems(400, 404, 409, 503))
At = Annotated[Services, Depends(services)]
_MOST_EVENTS = 1_000
_MOST_VERSION = 2**53

_APPEND = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["key", "events"],
                    "properties": {
                        "key": {"description": "Which aggregate."},
                        "expected_version": {
                            "type": ["integer", "null"],
                            "minimum": 0,
                            "description": "How many events it must have; 0: none yet; null: any.",
                        },
                        "events": {
                            "type": "array",
                            "minItems": 1,
                            "maxItems": _MOST_EVENTS,
                            "items": {"type": "object"},
                            "description": "Columns; those of the key may be left out.",
                        },
                    },
                },
                "example": {
                    "key": "q-4711",
                    "expected_version": 2,
                    "events": [{"kind": "priced", "premium": 312.5}],
                },
            }
        },
    }
}
_SNAPSHOT = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["version", "state"],
                    "properties": {
                        "version": {"type": "integer", "minimum": 1},
                        "state": {"description": "Whatever the events up to it make."},
                    },
                },
                "example": {"version": 100, "state": {"premium": 312.5}},
            }
        },
    }
}


@router.post("/v1/streams/{name}/append", openapi_extra=_APPEND, responses=problems(413, 422))
async def append(at: At, name: str, request: Request, idempotency_key: Key = None) -> Response:
    """Append events to an aggregate, all or none, if it has the version that is expected.

    409 VERSION_CONFLICT says the `actual_version`. It holds for requests to several gateways at
    once, and when one of them dies.
    """
    body = await request.body()

    def work() -> dict[str, Any]:
        entry = producing.target(at, name)
        document = _document(body, {"key", "expected_version", "events"})
        events, expected = document.get("events"), document.get("expected_version")
        if not isinstance(events, list) or not 1 <= len(events) <= _MOST_EVENTS:
            raise _bad(f"events: a list of 1 to {_MOST_EVENTS} events was expected")
        if expected is not None and (type(expected) is not int or expected < 0):
            raise _bad("expected_version: a whole number was expected, or null")
        aggregate = at.aggregates.of(entry, document.get("key"))
        asked = Asked.of(f"append {aggregate.id.hex()}", idempotency_key, body)
        done = at.aggregates.append(aggregate, expected, events, asked)
        receipt = producing.receipt_of(entry, done.receipt)
        return {"key": aggregate.key, "version": done.version, **receipt}

    return Response(_printed(await asyncio.to_thread(work)), media_type="application/json")


@router.get("/v1/streams/{name}/aggregates/{key}", responses=problems(410))
def load(
    at: At,
    name: str,
    key: str,
    since_version: Annotated[
        int | None,
        Query(ge=0, le=_MOST_VERSION, description="Events behind it; else behind the snapshot."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
) -> Response:
    """The events of an aggregate in their order, behind its snapshot if it has one.

    `next` is the version to go on behind when there are more. A key of several columns is a JSON
    object.
    """
    aggregate = _aggregate(at, name, key)
    loaded = at.aggregates.load(aggregate, since_version, limit)
    return Response(_loaded(aggregate, loaded, at.codec), media_type="application/json")


@router.put(
    "/v1/streams/{name}/aggregates/{key}/snapshot",
    openapi_extra=_SNAPSHOT,
    responses=problems(413),
)
async def keep(at: At, name: str, key: str, request: Request) -> Response:
    """Keep what the events of an aggregate up to a version make; an older one is replaced."""
    body = await request.body()

    def work() -> dict[str, Any]:
        aggregate = _aggregate(at, name, key)
        document = _document(body, {"version", "state"})
        version = document.get("version")
        if type(version) is not int or not 1 <= version <= _MOST_VERSION:
            raise _bad("version: a whole number from 1 on was expected")
        if "state" not in document:
            raise _bad("state is missing")
        return {"version": at.aggregates.keep(aggregate, version, _printed(document["state"]))}

    return JSONResponse(await asyncio.to_thread(work))


def _aggregate(at: Services, name: str, key: str) -> Aggregate:
    entry = producing.target(at, name)
    return at.aggregates.of(entry, read_key(entry, key))


def _loaded(aggregate: Aggregate, loaded: Loaded, codec: Codec) -> str:
    events = []
    for version, record in loaded.events:
        try:
            value = codec.text(aggregate.entry.definition, record.value or b"null").decode()
        except NotDecoded:  # nobody but the gateway writes these
            value = "null"
        events.append(
            f'{{"version":{version},"value":{value},"partition":{record.partition},'
            f'"offset":{record.offset},"timestamp":{record.timestamp}}}'
        )
    return (
        f'{{"key":{_printed(aggregate.key)},"version":{loaded.version},'
        f'"snapshot":{loaded.snapshot or "null"},"events":[{",".join(events)}],'
        f'"next":{_printed(loaded.next)}}}'
    )


def _document(body: bytes, fields: set[str]) -> dict[str, Any]:
    try:
        document = json.loads(body, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise _bad(f"the body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise _bad("a JSON object was expected")
    for name in sorted(document.keys() - fields):
        raise _bad(f"unknown field {json.dumps(name)}")
    return document


def _printed(value: Any) -> str:
    """JSON in which numbers keep their digits."""
    match value:
        case Decimal():
            return str(value)
        case dict():
            items = (f"{json.dumps(name)}:{_printed(item)}" for name, item in value.items())
            return "{" + ",".join(items) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_printed, value)) + "]"
        case _:
            return json.dumps(value)


def _bad(problem: str) -> MainstemError:
    return MainstemError("BAD_REQUEST", problem=problem)
