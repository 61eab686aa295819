"""The schema registry: subjects and their versions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Header, Query
from starlette.responses import Response

from mainstem.errors import MainstemError
from mainstem.gateway import registry_answers as answers
from mainstem.gateway.registry_answers import Answer, described
from mainstem.gateway.registry_requests import (
    At,
    Deleted,
    Format,
    Limit,
    Normalize,
    Offset,
    Permanent,
    Prefix,
    RegistrySchema,
    Subject,
    Version,
    cut,
    starts_with,
)
from mainstem.schemas.model import SchemaType
from mainstem.schemas.registry_rules import known_version

router = APIRouter(prefix="/registry/subjects", tags=["schema registry"])
Given = Annotated[RegistrySchema, Body(openapi_examples=answers.EXAMPLES)]
DeletedOnly = Annotated[bool, Query(alias="deletedOnly", description="Only what was deleted.")]
_VERSIONS = answers.listed(answers.NUMBER)
_REGISTERED = answers.object_of(id=answers.NUMBER)


@router.get(
    "", responses=described(answers.listed(answers.TEXT), ["clicks-value"]), response_model=None
)
def subjects(
    at: At,
    prefix: Prefix = "",
    deleted: Deleted = False,
    deleted_only: DeletedOnly = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> Response:
    """Names of all subjects."""
    begins = starts_with(prefix)
    found = at.state.subjects(begins, deleted=deleted or deleted_only)
    if deleted_only:
        alive = set(at.state.subjects(begins))
        found = [name for name in found if name not in alive]
    return Answer(cut(found, offset, limit))


@router.post(
    "/{subject}",
    responses=described(answers.VERSION, answers.CLICK_VERSION, 40401, 40403, 42201, 42209),
    response_model=None,
)
def lookup(
    at: At,
    subject: Subject,
    given: Given,
    normalize: Normalize = False,
    deleted: Deleted = False,
    form: Annotated[Format, Query(alias="format")] = "",
) -> Response:
    """The version of a subject that is this schema, if it was registered."""
    found = at.lookup(subject, given.wanted(), normalize=normalize, deleted=deleted)
    return Answer(answers.version_document(found, at.resolve, form))


@router.delete(
    "/{subject}",
    responses=described(_VERSIONS, [1, 2], 40401, 40404, 40405, 42205, 42206, changes=True),
    response_model=None,
)
def delete_subject(at: At, subject: Subject, permanent: Permanent = False) -> Response:
    """Delete all versions of a subject; once they are, for good. Gives their numbers."""
    return Answer(at.delete_subject(subject, permanent=permanent))


@router.get(
    "/{subject}/versions", responses=described(_VERSIONS, [1, 2], 40401), response_model=None
)
def versions(
    at: At,
    subject: Subject,
    deleted: Deleted = False,
    deleted_only: DeletedOnly = False,
    negative: Annotated[
        bool, Query(alias="deletedAsNegative", description="All; deleted ones below zero.")
    ] = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> Response:
    """Numbers of the versions of a subject."""
    found = at.state.versions(subject, deleted=deleted or deleted_only or negative)
    if not found:
        raise MainstemError("SUBJECT_UNKNOWN", subject=subject)
    if deleted_only and not negative:
        found = [kept for kept in found if kept.registered.deleted]
    numbers = [
        -kept.registered.version if negative and kept.registered.deleted
        else kept.registered.version
        for kept in found
    ]  # fmt: skip
    return Answer(cut(numbers, offset, limit))


@router.post(
    "/{subject}/versions",
    responses=described(_REGISTERED, {"id": 1}, 40901, 42201, 42205, 42209, changes=True),
    response_model=None,
)
def register(
    at: At,
    subject: Subject,
    given: Given,
    normalize: Normalize = False,
    force: Annotated[bool, Query(description="Do not check compatibility.")] = False,
    more: Annotated[
        str | None,
        Header(
            alias="Confluent-Accept-Unknown-Properties",
            description="`true`: the answer has the version, too.",
        ),
    ] = None,
) -> Response:
    """Register a schema as the next version of a subject; one that is there keeps its id."""
    new = at.register_wanted(subject, given.wanted(), normalize=normalize, force=force)
    # older clients take the id alone
    return Answer({"id": new.id, "version": new.version} if more == "true" else {"id": new.id})


@router.get(
    "/{subject}/versions/{version}",
    responses=described(answers.VERSION, answers.CLICK_VERSION, 40401, 40402, 42202),
    response_model=None,
)
def one_version(
    at: At,
    subject: Subject,
    version: Version,
    deleted: Deleted = False,
    form: Annotated[Format, Query(alias="format")] = "",
) -> Response:
    """One version of a subject."""
    found = known_version(at.state, subject, version, deleted=deleted)
    return Answer(answers.version_document(found, at.resolve, form))


@router.get(
    "/{subject}/versions/{version}/schema",
    responses=answers.described_text(40401, 40402, 42202),
    response_model=None,
)
def text(
    at: At,
    subject: Subject,
    version: Version,
    deleted: Deleted = False,
    form: Annotated[Format, Query(alias="format")] = "",
) -> Response:
    """The text of one version, alone."""
    found = known_version(at.state, subject, version, deleted=deleted).registered.schema
    return plain(answers.text_of(found, at.resolve, form), found.type)


@router.get(
    "/{subject}/versions/{version}/referencedby",
    responses=described(_VERSIONS, [3], 40401, 40402, 42202),
    response_model=None,
)
def referenced_by(
    at: At,
    subject: Subject,
    version: Version,
    deleted: Deleted = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> Response:
    """Ids of the schemas that refer to a version."""
    its = known_version(at.state, subject, version, deleted=True).registered
    found = at.state.referenced_by(subject, its.version, deleted=deleted)
    return Answer(cut(sorted({kept.registered.id for kept in found}), offset, limit))


@router.delete(
    "/{subject}/versions/{version}",
    responses=described(
        answers.NUMBER, 1, 40401, 40402, 40406, 40407, 42202, 42205, 42206, changes=True
    ),
    response_model=None,
)
def delete_version(
    at: At, subject: Subject, version: Version, permanent: Permanent = False
) -> Response:
    """Delete one version; once it is, for good. Gives its number."""
    return Answer(at.delete_version(subject, version, permanent=permanent))


def plain(text: str, kind: SchemaType) -> Response:
    """A schema's text as the whole answer: JSON, but for Protobuf."""
    if kind is SchemaType.PROTOBUF:
        return Response(text, media_type="text/plain; charset=utf-8")
    return Response(text, media_type=answers.REGISTRY_JSON)
