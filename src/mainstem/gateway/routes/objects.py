"""Streams, tables, sources and sinks: what they are, and their switches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from mainstem.catalog.connectors import of_source
from mainstem.catalog.personal import personal
from mainstem.definitions.model import Drop, Kind
from mainstem.gateway.changes import plan_text, unknown
from mainstem.gateway.objects import shown
from mainstem.gateway.services import Services, services
from mainstem.gateway.status import flow_statuses
from mainstem.vocabulary import SourceLocation

router = APIRouter(tags=["definitions"])
At = Annotated[Services, Depends(services)]


@router.get("/v1/objects")
def objects(at: At) -> dict[str, Any]:
    """All streams, tables, sources and sinks, by name."""
    statuses, catalog = flow_statuses(at), at.catalog()
    tagged, broken = personal(catalog), at.broken
    return {
        "revision": catalog.revision,
        "objects": [
            shown(entry, statuses.get(entry.name), tagged.get(name, {}), broken)
            for name, entry in sorted(catalog.entries.items())
        ],
    }


@router.get("/v1/objects/{name}")
def one(at: At, name: str) -> dict[str, Any]:
    """One of them, and the topics that its records are in."""
    catalog = at.catalog()
    entry = catalog.get(name)
    if entry is None:
        raise unknown(catalog, name)
    if entry.definition.kind is Kind.SOURCE:
        brought = of_source(catalog, entry.name)
        topics: Sequence[str] = [d.topic for d in brought if not d.derived]
    else:
        pattern = entry.definition.pattern
        topics = [entry.definition.topic] if pattern is None else at.admin.matching(pattern)
    tagged = personal(catalog).get(entry.name.lower(), {})
    status = flow_statuses(at).get(entry.name)
    return {**shown(entry, status, tagged, at.broken), "topics": topics}


@router.delete("/v1/objects/{name}")
def drop(
    at: At,
    name: str,
    cascade: Annotated[bool, Query(description="Also all that depend on it.")] = False,
) -> dict[str, Any]:
    """Drop it, with its flow, its view, and its topic if Mainstem made that.

    With a source goes all that came with it.
    """
    request = SourceLocation("<request>", 1, 1)
    done = at.changes.drop(Drop(name, request, cascade=cascade))
    text = plan_text(done.plan) if done.plan is not None else ""
    return {"message": done.message, "text": text}


@router.post("/v1/objects/{name}/pause")
def pause(at: At, name: str) -> dict[str, Any]:
    """Stop a flow or a source where it is."""
    return {"message": at.changes.pause(name, paused=True).message}


@router.post("/v1/objects/{name}/resume")
def resume(at: At, name: str) -> dict[str, Any]:
    """Let a paused flow or source go on."""
    return {"message": at.changes.pause(name, paused=False).message}
