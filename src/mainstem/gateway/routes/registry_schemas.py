"""The schema registry: schemas by their ids."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from mainstem.gateway import registry_answers as answers
from mainstem.gateway.registry_answers import Answer, described
from mainstem.gateway.registry_requests import (
    At,
    Deleted,
    Format,
    Id,
    Limit,
    Offset,
    Prefix,
    cut,
    starts_with,
)
from mainstem.gateway.routes.registry_subjects import plain
from mainstem.schemas.model import SchemaType
from mainstem.schemas.registry import Registry
from mainstem.schemas.topic_records import Kept

router = APIRouter(prefix="/registry/schemas", tags=["schema registry"])
_PLACE = answers.object_of(subject=answers.TEXT, version=answers.NUMBER)
OfSubject = Annotated[
    str | None, Query(description="A subject; ids are the same under all, so it changes nothing.")
]


@router.get(
    "",
    responses=described(answers.listed(answers.VERSION), [answers.CLICK_VERSION]),
    response_model=None,
)
def schemas(
    at: At,
    prefix: Prefix = "",
    deleted: Deleted = False,
    latest_only: Annotated[
        bool, Query(alias="latestOnly", description="Only the newest version of each subject.")
    ] = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> Response:
    """Versions of all subjects."""
    found: list[Kept] = []
    for subject in at.state.subjects(starts_with(prefix), deleted=deleted):
        versions = at.state.versions(subject, deleted=deleted)
        found += versions[-1:] if latest_only else versions
    return Answer([answers.version_document(k, at.resolve) for k in cut(found, offset, limit)])


@router.get(
    "/types",
    responses=described(answers.listed(answers.TEXT), ["AVRO", "JSON", "PROTOBUF"]),
    response_model=None,
)
def types() -> Response:
    """The types that a schema may have."""
    return Answer([kind.value for kind in SchemaType])


@router.get(
    "/ids/{id}",
    responses=described(answers.SCHEMA, {"schema": answers.CLICK}, 40403),
    response_model=None,
)
async def by_id(
    at: At,
    id: Id,
    subject: OfSubject = None,
    form: Annotated[Format, Query(alias="format")] = "",
    fetch_max_id: Annotated[
        bool, Query(alias="fetchMaxId", description="Also the largest id that was given.")
    ] = False,
) -> Response:
    """The schema that an id stands for, deleted or not, but for good."""
    found = await _with_id(at, id)
    if form:  # another form is computed, and that takes time
        document = await asyncio.to_thread(answers.schema_document, found[0], at.resolve, form)
    else:
        document = answers.schema_document(found[0], at.resolve)
    if fetch_max_id:
        document["maxId"] = at.state.highest_id()
    return Answer(document)


@router.get("/ids/{id}/schema", responses=answers.described_text(40403), response_model=None)
def text(
    at: At,
    id: Id,
    subject: OfSubject = None,
    form: Annotated[Format, Query(alias="format")] = "",
) -> Response:
    """The text of the schema, alone."""
    schema = at.by_id(id)
    return plain(answers.text_of(schema, at.resolve, form), schema.type)


@router.get(
    "/ids/{id}/subjects",
    responses=described(answers.listed(answers.TEXT), ["clicks-value"], 40403),
    response_model=None,
)
def subjects(
    at: At,
    id: Id,
    subject: Annotated[str | None, Query(description="Only this subject.")] = None,
    deleted: Deleted = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> Response:
    """The subjects that have the schema."""
    names = dict.fromkeys(place["subject"] for place in _places(at, id, subject, deleted=deleted))
    return Answer(cut(list(names), offset, limit))


@router.get(
    "/ids/{id}/versions",
    responses=described(answers.listed(_PLACE), [{"subject": "clicks-value", "version": 1}], 40403),
    response_model=None,
)
def versions(
    at: At,
    id: Id,
    subject: Annotated[str | None, Query(description="Only this subject.")] = None,
    deleted: Deleted = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> Response:
    """The subjects that have the schema, and as which version."""
    return Answer(cut(_places(at, id, subject, deleted=deleted), offset, limit))


def _places(at: Registry, id: int, subject: str | None, *, deleted: bool) -> list[dict[str, Any]]:
    return [
        {"subject": its.subject, "version": its.version}
        for its in (kept.registered for kept in at.with_id(id))
        if (deleted or not its.deleted) and subject in (None, its.subject)
    ]


async def _with_id(at: Registry, id: int) -> list[Kept]:
    """Without a thread when it is known, as it nearly always is."""
    found = at.state.with_id(id)
    return found or await asyncio.to_thread(at.with_id, id)
