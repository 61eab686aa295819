"""Confluent REST Proxy's paths below /kafka, for clients that know those: thin translations.

`/kafka/v3/...` and `/kafka/topics`, `/kafka/consumers/...` (v2). An application of its own inside
the gateway, because its clients read errors in another shape than ours.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mainstem import __version__
from mainstem.errors import MainstemError
from mainstem.gateway.problems import REQUEST_ID, internal
from mainstem.gateway.routes import kafka_v2, kafka_v3
from mainstem.gateway.routes.kafka_v3 import PREFIX

_NUMBERS = {
    "UNKNOWN_TOPIC": 40401,
    "MEMBER_UNKNOWN": 40403,
    "GROUP_UNKNOWN": 40403,
    "MEMBER_EXISTS": 40902,
    "GROUP_STATE": 40903,
}
"""Where Confluent has a number of its own; others are the status and 01."""


__all__ = ["PREFIX", "kafka_app", "openapi"]


def kafka_app(services: Any) -> FastAPI:
    """The application; the gateway mounts it at PREFIX."""
    app = FastAPI(
        title="Confluent REST Proxy's paths",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # the gateway describes it among the rest
        redirect_slashes=False,
    )
    app.state.services = services
    app.add_exception_handler(MainstemError, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)
    for part in (kafka_v3, kafka_v2):
        app.include_router(part.router)
    return app


def openapi(app: FastAPI) -> dict[str, Any]:
    """What the API description says of it."""
    document = get_openapi(title=app.title, version=app.version, routes=app.routes)
    document["paths"] = {PREFIX + path: methods for path, methods in document["paths"].items()}
    return document


def _failure(error: MainstemError) -> Response:
    status = 404 if error.code == "UNKNOWN_TOPIC" else error.status
    number = _NUMBERS.get(error.code, status * 100 + 1)
    message = f"{error.code}: {error.message}"
    return JSONResponse({"error_code": number, "message": message}, status)


async def _known(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, MainstemError)
    return _failure(error)


async def _invalid(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return _failure(MainstemError("BAD_REQUEST", problem=f"{place}: {first['msg']}"))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path
    match error.status_code:
        case 404:
            return _failure(MainstemError("NO_SUCH_PATH", url=path))
        case 405:
            return _failure(MainstemError("METHOD_NOT_ALLOWED", method=request.method, url=path))
    return _failure(MainstemError("BAD_REQUEST", problem=str(error.detail)))


async def _unexpected(request: Request, error: Exception) -> Response:
    del error  # the front logs it, with its stack
    return _failure(internal(str(request.scope.get(REQUEST_ID, "-"))))
