"""The schema registry's API: Confluent's paths below /registry, its content types and its errors.

It is an application of its own inside the gateway, because Confluent's clients read errors in
another shape than ours, and because subjects may have slashes: its routes see paths that are still
percent-encoded, where %2F is no separator.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mainstem import __version__
from mainstem.errors import MainstemError
from mainstem.gateway.problems import REQUEST_ID, internal
from mainstem.gateway.registry_answers import PLAIN_JSON, REGISTRY_JSON, Answer, failure
from mainstem.gateway.routes import (
    registry_compatibility,
    registry_schemas,
    registry_settings,
    registry_subjects,
)

PREFIX = "/registry/"
_TAKES = ("*/*", "application/*", "schemaregistry")


class RegistryApp:
    """The registry's routes; requests for anything else go to the rest of the gateway."""

    def __init__(self, services: Any, rest: ASGIApp) -> None:
        self._rest = rest
        app = FastAPI(
            title="Mainstem's schema registry",
            version=__version__,
            docs_url=None,
            redoc_url=None,
            openapi_url=None,  # the gateway describes it among the rest
            redirect_slashes=False,
            default_response_class=Answer,
        )
        app.state.services = services
        app.add_exception_handler(MainstemError, _known)
        app.add_exception_handler(RequestValidationError, _invalid)
        app.add_exception_handler(HTTPException, _http)
        app.add_exception_handler(Exception, _unexpected)
        for part in (
            registry_subjects, registry_schemas, registry_settings, registry_compatibility,
        ):  # fmt: skip
            app.include_router(part.router)
        self._app = app

    def openapi(self) -> dict[str, Any]:
        """What the API description says of it."""
        app = self._app
        document = get_openapi(title=app.title, version=app.version, routes=app.routes)
        for path in document["paths"].values():
            for operation in path.values():
                if content := operation.get("requestBody", {}).get("content"):
                    content[REGISTRY_JSON] = content[PLAIN_JSON]
        return document

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the gateway's start and end."""
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self._rest(scope, receive, send)
            return
        path = scope.get("raw_path") or scope["path"].encode()
        inner = {**scope, "path": path.decode("latin-1")}
        accepted = Request(scope).headers.get("accept", "*/*")
        plain = PLAIN_JSON in accepted and not any(word in accepted for word in _TAKES)

        async def sending(message: Message) -> None:
            if plain and message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                if headers.get("content-type") == REGISTRY_JSON:
                    headers["content-type"] = PLAIN_JSON
            await send(message)

        try:
            await self._app(inner, receive, sending)
        finally:
            scope["route"] = inner.get("route")  # for the gateway's numbers


async def _known(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, MainstemError)
    return failure(error)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["loc"][0] == "path":  # what is no id has no schema
        what = f"with id {request.path_params.get('id')}"
        return failure(MainstemError("SCHEMA_UNKNOWN", what=what))
    return failure(MainstemError("BAD_REQUEST", problem=f"{place}: {first['msg']}"))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path
    match error.status_code:
        case 404:
            return failure(MainstemError("NO_SUCH_PATH", url=path))
        case 405:
            return failure(MainstemError("METHOD_NOT_ALLOWED", method=request.method, url=path))
    return failure(MainstemError("BAD_REQUEST", problem=str(error.detail)))


async def _unexpected(request: Request, error: Exception) -> Response:
    del error  # the front logs it, with its stack
    return failure(internal(str(request.scope.get(REQUEST_ID, "-"))))
