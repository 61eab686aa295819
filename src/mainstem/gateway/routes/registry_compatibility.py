"""The schema registry: whether a schema keeps the rule of its subject; and the registry itself."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from starlette.responses import Response

from mainstem.gateway import registry_answers as answers
from mainstem.gateway.registry_answers import Answer, described
from mainstem.gateway.registry_requests import (
    At,
    Limit,
    Normalize,
    Offset,
    RegistrySchema,
    Subject,
    Version,
    cut,
)
from mainstem.schemas.registry_rules import known_version

router = APIRouter(prefix="/registry", tags=["schema registry"])
_CHECKED = answers.object_of(is_compatible=answers.YES, messages=answers.listed(answers.TEXT))
_BREAK = {
    "is_compatible": False,
    "messages": [
        "version 1, BACKWARD: Click.at: the field at is not written, and has no default"
        " (READER_FIELD_MISSING_DEFAULT_VALUE)"
    ],
}
Verbose = Annotated[bool, Query(description="Say every break, with path and reason.")]
Given = Annotated[RegistrySchema, Body(openapi_examples=answers.EXAMPLES)]


@router.post(
    "/compatibility/subjects/{subject}/versions",
    responses=described(_CHECKED, _BREAK, 42201, 42203, 42209),
    response_model=None,
)
def check_all(
    at: At,
    subject: Subject,
    given: Given,
    verbose: Verbose = False,
    normalize: Normalize = False,
) -> Response:
    """Whether registering a schema would be refused, by the rule of the subject."""
    found = at.breaks(
        subject, given.wanted().schema, at.state.versions(subject), normalize=normalize
    )
    return _checked(found, verbose=verbose)


@router.post(
    "/compatibility/subjects/{subject}/versions/{version}",
    responses=described(_CHECKED, _BREAK, 40401, 40402, 42201, 42202, 42203, 42209),
    response_model=None,
)
def check_one(
    at: At,
    subject: Subject,
    version: Version,
    given: Given,
    verbose: Verbose = False,
    normalize: Normalize = False,
) -> Response:
    """Whether a schema keeps the rule of the subject towards one version."""
    if version is None:
        earlier = at.state.versions(subject)[-1:]
    else:
        earlier = [known_version(at.state, subject, version)]
    found = at.breaks(subject, given.wanted().schema, earlier, normalize=normalize)
    return _checked(found, verbose=verbose)


@router.get(
    "/contexts", responses=described(answers.listed(answers.TEXT), ["."]), response_model=None
)
def contexts(offset: Offset = 0, limit: Limit = -1) -> Response:
    """The one context there is: all subjects are in it."""
    return Answer(cut(["."], offset, limit))


@router.get("/", responses=described({"type": "object"}, {}), response_model=None)
def root() -> Response:
    """Nothing: some clients look here whether the registry answers."""
    return Answer({})


def _checked(found: list[str], *, verbose: bool) -> Response:
    document: dict[str, Any] = {"is_compatible": not found}
    if verbose:
        document["messages"] = found
    return Answer(document)
