"""The schema registry: rules and modes, of a subject or of all."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from mainstem.errors import MainstemError
from mainstem.gateway import registry_answers as answers
from mainstem.gateway.registry_answers import Answer, described
from mainstem.gateway.registry_requests import (
    At,
    DefaultToGlobal,
    Subject,
)
from mainstem.schemas.compatibility import Level
from mainstem.schemas.registry import Registry
from mainstem.schemas.registry_rules import (
    Mode,
    check_subject,
    level_of,
    mode_of,
    normalizes,
)

router = APIRouter(prefix="/registry", tags=["schema registry"])
_CONFIG = answers.object_of(compatibilityLevel=answers.TEXT, normalize=answers.YES)
_MODE = answers.object_of(mode=answers.TEXT)
_FULL = {"compatibilityLevel": "FULL"}
Force = Annotated[bool, Query(description="Import even where schemas are.")]


class RegistryConfig(BaseModel):
    """Rules to be set; those that are missing stay."""

    model_config = ConfigDict(extra="forbid")

    compatibility: str | None = Field(None, description="A compatibility level.")
    normalize: bool | None = Field(
        None, description="Bring schemas into one form, also when a request does not ask for it."
    )

    def changes(self) -> dict[str, Any]:
        """The members of the record that they change."""
        found: dict[str, Any] = {}
        if self.compatibility is not None:
            try:
                found["compatibilityLevel"] = Level(self.compatibility.upper()).value
            except ValueError:
                raise MainstemError("COMPATIBILITY_INVALID", level=self.compatibility) from None
        if self.normalize is not None:
            found["normalize"] = self.normalize
        return found


class RegistryMode(BaseModel):
    """A mode to be set."""

    mode: str = Field(description="READWRITE, READONLY or IMPORT.")

    def checked(self) -> Mode:
        """The mode."""
        try:
            return Mode(self.mode.upper())
        except ValueError:
            raise MainstemError("REGISTRY_MODE_INVALID", mode=self.mode) from None


GivenConfig = Annotated[
    RegistryConfig, Body(openapi_examples={"full": {"value": {"compatibility": "FULL"}}})
]
GivenMode = Annotated[
    RegistryMode, Body(openapi_examples={"read-only": {"value": {"mode": "READONLY"}}})
]


# -- rules


@router.get("/config", responses=described(_CONFIG, _FULL), response_model=None)
def config(at: At) -> Response:
    """The rules for all subjects that have none of their own."""
    default = {"compatibilityLevel": Level.BACKWARD.value}
    return Answer(default | dict(at.state.config(None) or {}))


@router.put(
    "/config",
    responses=described(_CONFIG, {"compatibility": "FULL"}, 42203, 42205, changes=True),
    response_model=None,
)
def set_config(at: At, given: GivenConfig) -> Response:
    """Set the rules for all."""
    return _set(at, None, given)


@router.delete(
    "/config", responses=described(_CONFIG, _FULL, 42205, changes=True), response_model=None
)
def delete_config(at: At) -> Response:
    """Back to BACKWARD for all; gives what was set."""
    return Answer(dict(at.delete_config(None)))


@router.get("/config/{subject}", responses=described(_CONFIG, _FULL, 40408), response_model=None)
def subject_config(at: At, subject: Subject, default: DefaultToGlobal = False) -> Response:
    """The rules of a subject."""
    own = at.state.config(subject)
    if default:
        applies = {
            "compatibilityLevel": level_of(at.state, subject).value,
            "normalize": normalizes(at.state, subject),
        }
        return Answer(applies | dict(own or {}))
    if own is None:
        raise MainstemError("SUBJECT_LEVEL_NOT_SET", subject=subject)
    return Answer(dict(own))


@router.put(
    "/config/{subject}",
    responses=described(_CONFIG, {"compatibility": "FULL"}, 42203, 42205, changes=True),
    response_model=None,
)
def set_subject_config(at: At, subject: Subject, given: GivenConfig) -> Response:
    """Set the rules of a subject, which need not have a schema yet."""
    check_subject(subject)
    return _set(at, subject, given)


@router.delete(
    "/config/{subject}",
    responses=described(_CONFIG, _FULL, 40401, 42205, changes=True),
    response_model=None,
)
def delete_subject_config(at: At, subject: Subject) -> Response:
    """Back to the rules for all; gives what was set."""
    return Answer(dict(at.delete_config(subject)))


# -- modes


@router.get("/mode", responses=described(_MODE, {"mode": "READWRITE"}), response_model=None)
def mode(at: At) -> Response:
    """What may be done to subjects that have no mode of their own."""
    return Answer({"mode": at.state.mode(None) or Mode.READWRITE.value})


@router.put(
    "/mode",
    responses=described(_MODE, {"mode": "READONLY"}, 42204, 42205, 42206, changes=True),
    response_model=None,
)
def set_mode(at: At, given: GivenMode, force: Force = False) -> Response:
    """Set the mode for all."""
    return Answer({"mode": at.set_mode(None, given.checked(), force=force).value})


@router.delete(
    "/mode", responses=described(_MODE, {"mode": "READONLY"}, changes=True), response_model=None
)
def delete_mode(at: At) -> Response:
    """Back to READWRITE for all; gives what was set."""
    return Answer({"mode": at.delete_mode(None)})


@router.get(
    "/mode/{subject}", responses=described(_MODE, {"mode": "READWRITE"}, 40409), response_model=None
)
def subject_mode(at: At, subject: Subject, default: DefaultToGlobal = False) -> Response:
    """What may be done to a subject."""
    own = at.state.mode(subject)
    if own is None and not default:
        raise MainstemError("SUBJECT_MODE_NOT_SET", subject=subject)
    return Answer({"mode": own or mode_of(at.state, subject).value})


@router.put(
    "/mode/{subject}",
    responses=described(_MODE, {"mode": "READONLY"}, 42204, 42205, 42206, changes=True),
    response_model=None,
)
def set_subject_mode(at: At, subject: Subject, given: GivenMode, force: Force = False) -> Response:
    """Set the mode of a subject, which need not have a schema yet."""
    check_subject(subject)
    return Answer({"mode": at.set_mode(subject, given.checked(), force=force).value})


@router.delete(
    "/mode/{subject}",
    responses=described(_MODE, {"mode": "READONLY"}, 40401, changes=True),
    response_model=None,
)
def delete_subject_mode(at: At, subject: Subject) -> Response:
    """Back to the mode for all; gives what was set."""
    return Answer({"mode": at.delete_mode(subject)})


def _set(at: Registry, subject: str | None, given: RegistryConfig) -> Response:
    at.set_config(subject, given.changes())
    return Answer(given.model_dump(exclude_none=True))
