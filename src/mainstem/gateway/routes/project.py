"""What this gateway serves: the project's name and place, and its files if they are here."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from mainstem import __version__
from mainstem.definitions.project import read_files
from mainstem.gateway.routes.plan import File
from mainstem.gateway.services import Services, services

router = APIRouter(tags=["definitions"])


class Project(BaseModel):
    """Name and place."""

    name: str
    environment: str = Field(description="What its people call this installation.")
    colour: str = Field(description="Its colour on the page; empty: the page's own.")
    read_only: bool = Field(description="Whether all that would change something is refused.")
    version: str = Field(description="Of the gateway.")


class ProjectFiles(BaseModel):
    """The files that a plan is made of."""

    files: list[File]


@router.get("/v1/project")
def project(at: Annotated[Services, Depends(services)]) -> Project:
    """What this gateway serves, and whether it may be changed through it."""
    gateway = at.settings.gateway
    return Project(
        name=at.settings.name,
        environment=gateway.environment,
        colour=gateway.colour,
        read_only=gateway.read_only,
        version=__version__,
    )


@router.get("/v1/project/files")
def project_files(at: Annotated[Services, Depends(services)]) -> ProjectFiles:
    """The project's files as they are in its folder now; none where the gateway runs without it."""
    found = read_files(at.project)
    return ProjectFiles(files=[File(path=path, text=text) for path, text in found])
