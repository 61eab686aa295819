"""Statements of SQL."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from mainstem.gateway.services import Services, services

router = APIRouter(tags=["queries"])


class SqlRequest(BaseModel):
    """One statement and the values of its parameters."""

    model_config = ConfigDict(extra="forbid")

    sql: str = Field(max_length=1_000_000, examples=["SELECT * FROM visits WHERE page = ?"])
    parameters: list[Any] | dict[str, Any] = Field(default=[], examples=[["/home"]])


@router.post("/v1/sql", response_class=Response)
async def sql(at: Annotated[Services, Depends(services)], request: SqlRequest) -> Response:
    """Run one statement; the answer is rows or a message.

    `{"kind": "rows", "columns": [...], "rows": [[...]], "truncated": false, "freshness": {...}}` or
    `{"kind": "message", "message": "...", "detail": {...}}`.
    """
    answer = await at.statements.run(request.sql, request.parameters)
    return Response(answer, media_type="application/json")
