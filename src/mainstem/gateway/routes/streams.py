"""Records into streams and declared tables: some, a body without an end, several at once."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mainstem.errors import MainstemError
from mainstem.gateway import producing
from mainstem.gateway.front import NDJSON
from mainstem.gateway.ndjson import LinesWritten
from mainstem.gateway.receipts import Asked
from mainstem.gateway.records import read_body
from mainstem.gateway.routes.problems_shown import problems
from mainstem.gateway.services import Services, services

router = APIRouter(tags=["records"])
At = Annotated[Services, Depends(services)]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="A request that is repeated with it within a day is answered with the first"
        " receipt (`repeated`), and written once.",
        examples=["order-4711"],
    ),
]
_WHOLE = ("application/octet-stream", "application/avro", "application/x-protobuf")
"""The body is the value of one record, as the log is to hold it."""
_LONGEST_LINES = 4
"""A line may be so many times as long as the largest record: JSON takes more room."""

RECORD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "value": {"type": ["object", "null"], "description": "The columns; null deletes a row."},
        "value_base64": {
            "type": "string",
            "description": "In place of `value`: bytes as the log is to hold them, such as Avro"
            " or Protobuf behind the id of a schema.",
        },
        "key": {"description": "Without it, the key comes from the key columns."},
        "key_base64": {"type": "string"},
        "timestamp": {"type": ["integer", "null"], "description": "Milliseconds since 1970."},
        "headers": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
            },
        },
    },
}
_EXAMPLE = {"value": {"user": "ann", "at": "2026-11-15T09:00:00Z"}}
RECORDS = {"type": "array", "minItems": 1, "items": RECORD}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["records"],
                    "properties": {"records": RECORDS},
                },
                "example": {"records": [_EXAMPLE]},
            },
            NDJSON: {"schema": {"type": "string"}, "example": json.dumps(_EXAMPLE) + "\n"},
            _WHOLE[0]: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_SEVERAL = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["streams"],
                    "properties": {"streams": {"type": "object", "additionalProperties": RECORDS}},
                },
                "example": {"streams": {"clicks": [_EXAMPLE]}},
            }
        },
    }
}
RECEIPT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The receipt; for lines, one for each part and a last one with `done`.",
        "content": {
            "application/json": {
                "example": {
                    "written": 1,
                    "topic": "clicks",
                    "offsets": {"0": 41},
                    "records": [{"partition": 0, "offset": 41}],
                    "repeated": False,
                }
            },
            NDJSON: {},
        },
    },
    **problems(400, 404, 409, 413, 422, 503),
}


@router.post("/v1/streams/{name}/records", openapi_extra=_BODY, responses=RECEIPT)
async def write(
    at: At,
    name: str,
    request: Request,
    idempotency_key: Key = None,
    key: Annotated[
        str | None, Query(description="Of the record whose value is the whole body.")
    ] = None,
) -> Response:
    """Write records, all or none; each is checked against the columns before a byte is sent.

    Without a `key` it comes from the key columns. In a table, `value: null` deletes the row of the
    key. Lines of JSON (`application/x-ndjson`) may go on without an end: they are written in parts
    of up to 1,000, each all or none, and each is told of. With its `receipt` as
    `wait_for`, a query answers when its tables have taken them in.
    """
    entry = producing.target(at, name)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    scope = f"records {entry.name.lower()}"
    if kind == NDJSON:
        longest = _LONGEST_LINES * at.connection.max_record_bytes
        asked = Asked.of(scope, idempotency_key, b"")
        return LinesWritten(
            partial(producing.write_part, at, entry, asked), longest, prompt=asked is None
        )
    body = await request.body()

    def work() -> dict[str, Any]:
        asked = Asked.of(scope, idempotency_key, body)
        whole = kind in _WHOLE
        records = [producing.whole_record(body, key)] if whole else read_body(body)
        done: dict[str, Any] = producing.write(at, entry, records, asked)
        return done

    return JSONResponse(await asyncio.to_thread(work))


@router.post("/v1/transactions", openapi_extra=_SEVERAL, responses=problems(400, 404, 413, 422))
async def together(at: At, request: Request, idempotency_key: Key = None) -> Response:
    """Write records to several streams and tables: all of them, or nothing."""
    body = await request.body()

    def work() -> dict[str, Any]:
        streams = _streams(body)
        asked = Asked.of("transactions", idempotency_key, body)
        return producing.write_together(at, streams, asked)

    return JSONResponse(await asyncio.to_thread(work))


def _streams(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise MainstemError("BAD_REQUEST", problem=f"the body is not JSON: {error}") from None
    streams = document.get("streams") if isinstance(document, dict) else None
    if not isinstance(streams, dict) or not streams or document.keys() != {"streams"}:
        problem = 'the body must be {"streams": {"orders": [{"value": {...}}], ...}}'
        raise MainstemError("BAD_REQUEST", problem=problem)
    for name, records in streams.items():
        if not isinstance(records, list) or not records:
            problem = f"streams.{name}: a list of at least one record was expected"
            raise MainstemError("BAD_REQUEST", problem=problem)
    return streams
