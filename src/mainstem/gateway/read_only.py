"""A gateway that only shows: whatever would change something is refused.

What reads by POST is named here. All else that is no GET is refused, so a new route is safe until
somebody says that it only reads.
"""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from mainstem.errors import MainstemError

_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_READS = re.compile(
    r"/v1/(sql|live|plan|transforms/trial|trial|topics/[^/]+/trial)"
    r"|/registry/compatibility/.+|/registry/subjects/[^/]+"
)
"""Statements of SQL are looked at one by one, where they are read."""


class ReadOnly:
    """Wraps the application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the application's start and end."""
        if scope["type"] == "http" and not _reads(scope["method"], scope["path"]):
            raise MainstemError("READ_ONLY", what=f"{scope['method']} {scope['path']}")
        await self._app(scope, receive, send)


def _reads(method: str, path: str) -> bool:
    return method in _SAFE or (method == "POST" and _READS.fullmatch(path) is not None)
