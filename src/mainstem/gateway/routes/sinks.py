"""Sinks: their targets built anew."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field

from mainstem.gateway.services import Services, services

router = APIRouter(tags=["sinks"])
At = Annotated[Services, Depends(services)]


class Rebuild(BaseModel):
    """How to build a target anew."""

    model_config = ConfigDict(extra="forbid")

    dry_run: bool = Field(False, description="Only say what would be read.")


@router.post("/v1/sinks/{name}/rebuild")
def rebuild(at: At, name: str, wanted: Rebuild) -> dict[str, Any]:
    """Fill another table, index or folder from the beginning, which takes the old one's place in
    one step. `/v1/backfills/{name}` says how far it is, pauses and cancels it.
    """
    return at.backfills.rebuild(name, dry_run=wanted.dry_run)
