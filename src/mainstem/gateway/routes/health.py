"""Alive, ready, and the numbers for Prometheus."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import JSONResponse, Response

from mainstem.gateway.services import Services, services

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def alive() -> dict[str, str]:
    """The process lives; says nothing about others."""
    return {"status": "alive"}


@router.get("/readyz", responses={503: {"description": "Something that it needs is missing."}})
async def ready(at: Annotated[Services, Depends(services)]) -> JSONResponse:
    """Whether log, PostgreSQL and catalog can be used."""
    checks = await at.health()
    good = all(check["ok"] for check in checks.values())
    document: dict[str, Any] = {"status": "ready" if good else "waiting", "checks": checks}
    return JSONResponse(document, 200 if good else 503)


@router.get("/metrics", response_class=Response)
def metrics(at: Annotated[Services, Depends(services)]) -> Response:
    """Numbers in Prometheus' text format."""
    return Response(at.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")
