"""Backfills: a flow once more over history, for a table's whole result or a stream's older part."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field

from mainstem.catalog.backfill import BEGINNING
from mainstem.catalog.entry import BackfillState
from mainstem.gateway.services import Services, services

router = APIRouter(tags=["backfills"])
At = Annotated[Services, Depends(services)]
Rate = Annotated[int | None, Field(ge=1, description="Most records a second.")]


class Start(BaseModel):
    """From where on, and how fast."""

    model_config = ConfigDict(extra="forbid")

    since: str | dict[str, dict[str, int]] = Field(
        BEGINNING, description="`beginning`, a time (ISO 8601), or offsets by topic and partition."
    )
    rate: Rate = None
    dry_run: bool = Field(False, description="Only say what would be read.")


class Resume(BaseModel):
    """How to go on."""

    model_config = ConfigDict(extra="forbid")

    rate: Rate = None


@router.get("/v1/backfills")
def backfills(at: At) -> dict[str, Any]:
    """The last backfill of each table or stream that had one."""
    return {"backfills": at.backfills.all()}


@router.get("/v1/backfills/{name}")
def one(at: At, name: str) -> dict[str, Any]:
    """The last backfill of a table or stream, and how far it is."""
    return at.backfills.one(name)


@router.post("/v1/backfills/{name}")
def start(at: At, name: str, wanted: Start) -> dict[str, Any]:
    """Compute a table anew, which is served as it is until the new result has caught up; or add to
    a stream the rows of records before those with which its flow began.
    """
    return at.backfills.start(name, wanted.since, wanted.rate, dry_run=wanted.dry_run)


@router.post("/v1/backfills/{name}/pause")
def pause(at: At, name: str) -> dict[str, Any]:
    """Stop a backfill where it is."""
    return at.backfills.turn(name, BackfillState.PAUSED)


@router.post("/v1/backfills/{name}/resume")
def resume(at: At, name: str, wanted: Resume) -> dict[str, Any]:
    """Let a backfill go on, at another rate if one is given."""
    return at.backfills.turn(name, BackfillState.RUNNING, wanted.rate)


@router.delete("/v1/backfills/{name}")
def cancel(at: At, name: str) -> dict[str, Any]:
    """Give a backfill up: the table stays as it is; a stream keeps what was added, and is never
    given the rest.
    """
    return at.backfills.turn(name, BackfillState.CANCELLED)
