"""Streams, tables, sources and sinks: what they are, and their switches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from mainstem.catalog.column_lineage import Reached, column_lineage
from mainstem.catalog.connectors import of_source
from mainstem.catalog.personal import personal
from mainstem.definitions.model import Drop, Kind
from mainstem.gateway.changes import plan_text, unknown
from mainstem.gateway.objects import shown
from mainstem.gateway.services import Services, services
from mainstem.gateway.status import flow_statuses
from mainstem.gateway.waiting import why_open
from mainstem.vocabulary import SourceLocation

router = APIRouter(tags=["definitions"])
At = Annotated[Services, Depends(services)]


class ReachedColumn(BaseModel):
    """A column before or behind another."""

    object: str
    column: str
    copied: bool = Field(description="It is passed on as it is; false: something is made of it.")
    steps: int = Field(description="How far away it is; 1: no other object is between them.")


class LineageColumn(BaseModel):
    """A column, what it is made of and what is made of it, nearest first."""

    name: str
    type: str
    made_of: list[ReachedColumn]
    goes_into: list[ReachedColumn]


class ObjectColumns(BaseModel):
    """The columns of an object."""

    object: str
    columns: list[LineageColumn]
    not_followed: list[str] = Field(
        description="Objects before and behind it that Python makes: not known."
    )


class Waiting(BaseModel):
    """Why windows are still open."""

    reasons: list[str] = Field(description="In sentences; none for a flow without a watermark.")


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


@router.get("/v1/objects/{name}/columns")
def columns(at: At, name: str) -> ObjectColumns:
    """Its columns, what each is made of and what is made of it, through all objects.

    Columns that only decide which rows there are (WHERE, ON, GROUP BY) do not count.
    """
    catalog = at.catalog()
    entry = catalog.get(name)
    if entry is None:
        raise unknown(catalog, name)
    found = column_lineage(catalog, entry.definition)
    return ObjectColumns(
        object=entry.name,
        columns=[
            LineageColumn(
                name=column.name,
                type=column.type,
                made_of=_reached(found.made_of[column.name.lower()]),
                goes_into=_reached(found.goes_into[column.name.lower()]),
            )
            for column in entry.definition.columns
        ],
        not_followed=found.not_followed,
    )


def _reached(places: Sequence[Reached]) -> list[ReachedColumn]:
    return [ReachedColumn(**place._asdict()) for place in places]


@router.get("/v1/objects/{name}/waiting")
def waiting(at: At, name: str) -> Waiting:
    """What the windows of a flow wait for; EXPLAIN says the same."""
    catalog = at.catalog()
    entry = catalog.get(name)
    if entry is None:
        raise unknown(catalog, name)
    query = entry.definition.query
    inputs = [e.definition for n in (query.inputs if query else ()) if (e := catalog.get(n))]
    status = flow_statuses(at).get(entry.name) or {}
    return Waiting(reasons=why_open(entry.definition, inputs, status, time.time()))


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
