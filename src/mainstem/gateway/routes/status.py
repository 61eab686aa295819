"""The state of the whole platform."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from mainstem.gateway.services import Services, services
from mainstem.gateway.status import status_document

router = APIRouter(tags=["status"])


@router.get("/v1/status")
async def status(at: Annotated[Services, Depends(services)]) -> dict[str, Any]:
    """Engine, flows, views, quarantine, and whether log and PostgreSQL answer."""
    return await status_document(at)
