"""Plan and apply: a project's files against the catalog."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field

from mainstem.gateway.changes import plan_text
from mainstem.gateway.services import Services, services

router = APIRouter(tags=["definitions"])


class File(BaseModel):
    """A file of the project."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(max_length=1000, examples=["pipeline/visits.sql"])
    text: str


class PlanRequest(BaseModel):
    """All definitions of a project."""

    model_config = ConfigDict(extra="forbid")

    files: list[File]

    def pairs(self) -> list[tuple[str, str]]:
        """Path and text of each file."""
        return [(file.path, file.text) for file in self.files]


class ApplyRequest(PlanRequest):
    """The files again, and the plan that was looked at."""

    digest: str
    revision: int


@router.post("/v1/plan")
def plan(at: Annotated[Services, Depends(services)], request: PlanRequest) -> dict[str, Any]:
    """What the files would change; nothing is changed."""
    made = at.changes.plan(request.pairs())
    return {
        "plan": json.loads(made.to_json()),
        "digest": made.digest,
        "revision": made.revision,
        "text": plan_text(made),
        "changes": made.changes,
    }


@router.post("/v1/apply")
def apply(at: Annotated[Services, Depends(services)], request: ApplyRequest) -> dict[str, Any]:
    """Carry out a plan; refused when it would be another one by now."""
    made = at.changes.apply(request.pairs(), request.digest, request.revision)
    return {
        "applied": made.changes,
        "text": plan_text(made),
        "revision": at.catalog().revision,
    }
