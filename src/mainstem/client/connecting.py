"""Where the gateway is, when nobody says so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mainstem.client.clients import AsyncClient, Client
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from mainstem.config import Project


def connect(
    url: str | None = None, *, project: str | Path | None = None, timeout: float = 60.0
) -> Client:
    """A client of the gateway at `url`, or of that which MAINSTEM_URL or the project names.

    Without an address the project is the one in the folder `project`, in MAINSTEM_PROJECT, or that
    the working folder is in: its settings name a gateway, or its stack runs (`mainstem up`).
    """
    return Client(url or address(project), timeout)


def connect_async(
    url: str | None = None, *, project: str | Path | None = None, timeout: float = 60.0
) -> AsyncClient:
    """Likewise a client whose methods are awaited, for `async with`."""
    return AsyncClient(url or address(project), timeout)


def address(project: str | Path | None = None) -> str:
    """The gateway's address; NO_GATEWAY_FOUND says where it was looked for."""
    from mainstem.local.run_file import running

    given = None if project is not None else os.environ.get("MAINSTEM_URL")
    if given:
        return given
    try:
        found = project_of(project)
    except MainstemError as error:
        if error.code != "NOT_A_PROJECT":
            raise
        raise MainstemError("NO_GATEWAY_FOUND", problem=error.message) from None
    if found.settings.gateway.url:
        return found.settings.gateway.url
    info = running(found)
    if info is None:
        problem = f"the stack of {found.folder} is not running"
        raise MainstemError("NO_GATEWAY_FOUND", problem=problem)
    return info.gateway_url


def project_of(folder: str | Path | None = None) -> Project:
    """The project in this folder, in MAINSTEM_PROJECT, or around the working folder."""
    from mainstem.config import find_project, load_project

    named = folder or os.environ.get("MAINSTEM_PROJECT")
    return load_project(Path(named)) if named else find_project(Path.cwd())
