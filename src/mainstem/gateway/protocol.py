"""Connections that can be given up on: a client that reads nothing would hold its socket for ever.

To close a connection properly means to wait until all is sent. The application finds in a request's
scope how to end one at once instead.
"""

from __future__ import annotations

from typing import Any, cast

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

_ABORT = "mainstem.abort"


class Http(HttpToolsProtocol):
    """HTTP/1.1."""

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        cast(Scope, self.scope)[_ABORT] = self.transport.abort


class WebSockets(WebSocketsSansIOProtocol):
    """A connection that became a WebSocket."""

    def handle_connect(self, event: Any) -> None:
        """The request to become one has come."""
        super().handle_connect(event)
        if hasattr(self, "scope"):
            cast(Scope, self.scope)[_ABORT] = self.transport.abort


def abort(scope: Scope) -> None:
    """End the connection of a request, whatever is on its way."""
    end = scope.get(_ABORT)
    if end is not None:
        end()
