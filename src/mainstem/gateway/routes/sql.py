"""Statements of SQL."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mainstem.gateway.connected_client import while_connected
from mainstem.gateway.pulled import Asked
from mainstem.gateway.services import Services, services

router = APIRouter(tags=["queries"])

NDJSON = "application/x-ndjson"


class SqlRequest(BaseModel):
    """One statement and the values of its parameters."""

    model_config = ConfigDict(extra="forbid")

    sql: str = Field(max_length=1_000_000, examples=["SELECT * FROM visits WHERE page = ?"])
    parameters: list[Any] | dict[str, Any] = Field(
        default=[], examples=[["/home"]], description="A list for `?`, an object for `:name`."
    )
    wait_for: str | None = Field(
        default=None,
        max_length=20_000,
        examples=["orders:0=41"],
        description="The receipt of a write: the tables must have taken in its records.",
    )
    wait_seconds: float | None = Field(
        default=None, gt=0, le=3600, description="How long to wait for that; 10 when absent."
    )
    limit: int | None = Field(default=None, ge=1, le=2**31 - 1, description="Most rows.")


@router.post("/v1/sql", response_class=Response)
async def sql(
    at: Annotated[Services, Depends(services)],
    request: Request,
    body: SqlRequest,
    accept: Annotated[str, Header()] = "",
    mainstem_wait_for: Annotated[str | None, Header(max_length=20_000)] = None,
) -> Response:
    """Run one statement; the answer is rows or a message.

    `{"kind": "rows", "columns": [...], "rows": [[...]], "truncated": false, "freshness": {...}}` or
    `{"kind": "message", "message": "...", "detail": {...}}`. A query over tables that accepts
    `application/x-ndjson` gets its rows in lines, as many as there are: `{"columns": [...],
    "freshness": {...}}`, an array for each row, and at the end `{"end": true, "rows": 2}`.
    """
    wait_for = body.wait_for if body.wait_for is not None else mainstem_wait_for
    asked = Asked(body.parameters, wait_for, body.wait_seconds, body.limit)
    if NDJSON in accept:
        pieces = await while_connected(request, at.statements.stream(body.sql, asked))
        return StreamingResponse(pieces, media_type=NDJSON)
    answer = await while_connected(request, at.statements.run(body.sql, asked))
    return Response(answer, media_type="application/json")
