"""The connectors that there are, by their descriptions: a form for one is drawn from it."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from mainstem.connect.catalogue import specs
from mainstem.connect.spec import ConnectorSpec, Field

router = APIRouter(tags=["connectors"])


class Option(BaseModel):
    """One option."""

    name: str
    kind: str
    doc: str
    example: str
    default: str | None
    required: bool
    secret: bool
    choices: list[str]


class ConnectorKind(BaseModel):
    """One connector."""

    name: str
    role: str
    about: str
    statement: str
    options: list[Option]


@router.get("/v1/connector-kinds")
def connector_kinds() -> list[ConnectorKind]:
    """All of them, in order of their names."""
    return [_kind(spec) for _, spec in sorted(specs().items())]


def _kind(spec: ConnectorSpec) -> ConnectorKind:
    return ConnectorKind(
        name=spec.name,
        role=spec.role.value,
        about=spec.paragraphs[0],
        statement=spec.statement,
        options=[_option(field) for field in spec.fields],
    )


def _option(field: Field) -> Option:
    return Option(
        name=field.name,
        kind=field.kind.value,
        doc=field.doc,
        example=field.example,
        default=field.default,
        required=field.required,
        secret=field.secret,
        choices=list(field.choices),
    )
