"""What has changed between two versions of a subject, and what that breaks."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from mainstem.errors import MainstemError
from mainstem.gateway.services import Services, services
from mainstem.schemas.diff import diff

router = APIRouter(tags=["schemas"])


@router.get("/v1/schemas/{subject}/diff")
def schema_diff(
    at: Annotated[Services, Depends(services)],
    subject: str,
    older: Annotated[int, Query(alias="from", ge=1, description="The version before.")],
    newer: Annotated[int, Query(alias="to", ge=1, description="The version behind.")],
) -> dict[str, Any]:
    """The changes between two versions, each compatible or breaking under the subject's level."""
    registry = at.registry
    if registry is None:
        raise MainstemError(
            "NOT_SUPPORTED",
            what="a comparison of versions",
            where="a gateway that uses another registry",
            advice="`mainstem schema diff` compares them.",
        )
    before, after = registry.version(subject, older), registry.version(subject, newer)
    level = registry.level(subject)
    changes = [
        change.as_dict(level) for change in diff(before.schema, after.schema, registry.resolve)
    ]
    return {
        "from": older,
        "to": newer,
        "level": level.value,
        "compatible": not any(change["breaking"] for change in changes),
        "changes": changes,
    }
