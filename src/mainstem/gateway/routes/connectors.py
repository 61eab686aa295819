"""The connectors of sources: state, restart, pause and resume, offsets."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from mainstem.gateway.services import Services, services

router = APIRouter(tags=["connectors"])
At = Annotated[Services, Depends(services)]


@router.get("/v1/connectors")
def connectors(at: At) -> dict[str, Any]:
    """Every connector, and how Kafka Connect itself is."""
    return {"worker": at.connectors.worker(), "connectors": at.connectors.all()}


@router.get("/v1/connectors/{name}")
def one(at: At, name: str) -> dict[str, Any]:
    """The connector of a source: state, tasks with the cause of a failure, restarts, errors."""
    return at.connectors.one(name)


@router.post("/v1/connectors/{name}/restart")
def restart(
    at: At,
    name: str,
    only_failed: Annotated[bool, Query(description="Leave tasks alone that run.")] = False,
) -> dict[str, Any]:
    """Start a connector and its tasks again, at once."""
    return at.connectors.restart(name, only_failed=only_failed)


@router.post("/v1/connectors/{name}/pause")
def pause(at: At, name: str) -> dict[str, Any]:
    """Stop capturing; the source's system keeps what happens meanwhile. As PAUSE SOURCE."""
    at.connectors.one(name)
    return {"message": at.changes.pause(name, paused=True).message}


@router.post("/v1/connectors/{name}/resume")
def resume(at: At, name: str) -> dict[str, Any]:
    """Go on where it stopped. As RESUME SOURCE."""
    at.connectors.one(name)
    return {"message": at.changes.pause(name, paused=False).message}


@router.post("/v1/connectors/{name}/snapshot")
def snapshot(
    at: At,
    name: str,
    table: Annotated[list[str] | None, Query(description="Captured tables; none: all.")] = None,
) -> dict[str, Any]:
    """Read the rows of captured tables once more, while their changes go on."""
    return {"name": name, "tables": at.connectors.snapshot(name, table or ())}


@router.get("/v1/connectors/{name}/offsets")
def offsets(at: At, name: str) -> dict[str, Any]:
    """How far a connector has come, in the words of its plugin."""
    return {"name": name, "offsets": at.connectors.offsets(name)}


@router.delete("/v1/connectors/{name}/offsets")
def reset_offsets(at: At, name: str) -> dict[str, Any]:
    """Forget how far a paused connector has come: resumed, it reads everything once more."""
    at.connectors.reset_offsets(name)
    return {"message": f"{name} begins from the beginning when it is resumed"}


@router.delete("/v1/connectors/{name}")
def forget(at: At, name: str) -> dict[str, Any]:
    """Remove the connector of a source that was dropped, though its system does not answer.

    What it left there, such as a replication slot, stays.
    """
    at.connectors.forget(name)
    return {"message": f"{name} is removed; what it left in its system stays there"}
