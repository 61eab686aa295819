"""The first thing that a request meets: who may ask, how much, under which id; and what it took.

Written against ASGI itself, since it runs for every request, key look-ups included.

A page on another site can make a browser send requests here. Two checks keep it out: the Host
header must be an address of ours (a foreign name that was made to resolve to this machine is
not), and a request that changes something must come from our own page or from no page at all.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import time
import uuid
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mainstem.errors import MainstemError
from mainstem.gateway.metrics import Metrics
from mainstem.gateway.problems import REQUEST_ID, internal, problem_response

_LOG = logging.getLogger(__name__)

MAX_BODY_BYTES = 32 * 1024 * 1024
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
NDJSON = "application/x-ndjson"
ANY_LENGTH = "mainstem.any_length"
"""Where a route says in the ASGI scope that it takes a body of any length, part by part."""
_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LOOPBACK = frozenset(("localhost",))
_MOST_HOSTS = 1000
_REFUSED = 1008


class Front:
    """Wraps the application."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        hosts: Iterable[str] = (),
        max_body: int = MAX_BODY_BYTES,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._hosts = _LOOPBACK | {host.lower() for host in hosts if host}
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the application's start and end."""
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        request_id = _request_id(headers.get(b"x-request-id"))
        scope[REQUEST_ID] = request_id
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                ]
            await send(message)

        try:
            self._check_origin(scope["method"], headers)
            self._check_length(headers)
            await self._app(scope, self._limited(scope, receive), sending)
        except MainstemError as error:
            if not status:
                await problem_response(error, request_id)(scope, receive, sending)
        except Exception:  # noqa: BLE001 - the answer must say something, the log all
            _LOG.exception("request %s failed", request_id, extra={"path": scope["path"]})
            if not status:
                answer = problem_response(internal(request_id), request_id)
                await answer(scope, receive, sending)
        finally:
            self._metrics.request(scope, status, time.perf_counter() - began)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket: any page may ask for one, so it has to come from ours or from none."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        try:
            self._check_origin("", headers)
            await self._app(scope, receive, send)
        except MainstemError as error:
            await send({"type": "websocket.close", "code": _REFUSED, "reason": error.code})
        except Exception:  # noqa: BLE001 - the client sees that it is gone, the log says why
            _LOG.exception("a WebSocket failed", extra={"path": scope["path"]})

    def _check_origin(self, method: str, headers: dict[bytes, str]) -> None:
        host = headers.get(b"host", "")
        name = host_name(host)
        if not (name in self._hosts or _is_address(name)):
            raise MainstemError("FOREIGN_REQUEST", problem="its Host header is not this gateway")
        if method in _SAFE:
            return
        origin = headers.get(b"origin")
        same = origin is None or urlsplit(origin).netloc.lower() == host.lower()
        if not same or headers.get(b"sec-fetch-site") in ("cross-site", "same-site"):
            raise MainstemError("FOREIGN_REQUEST", problem="it comes from a page of another site")

    def _check_length(self, headers: dict[bytes, str]) -> None:
        length = headers.get(b"content-length", "0")
        lines = headers.get(b"content-type", "").startswith(NDJSON)  # maybe of any length
        if length.isdigit() and int(length) > self._max_body and not lines:
            raise MainstemError("BODY_TOO_LARGE", limit=self._max_body)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        taken = 0

        async def receiving() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._max_body and not scope.get(ANY_LENGTH):
                raise MainstemError("BODY_TOO_LARGE", limit=self._max_body)
            return message

        return receiving


@lru_cache(_MOST_HOSTS)
def host_name(host: str) -> str:
    """The name in a Host header, small letters, without port and brackets."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


@lru_cache(_MOST_HOSTS)
def _is_address(name: str) -> bool:
    # no name was looked up, so none can have been bent to this machine
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _request_id(given: str | None) -> str:
    return given if given and _GIVEN_ID.fullmatch(given) else uuid.uuid4().hex
