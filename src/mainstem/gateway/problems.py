"""Errors as answers: every one an RFC 9457 problem document from the catalogue of errors."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mainstem.errors import MainstemError

PROBLEM = "application/problem+json"
REQUEST_ID = "mainstem.request_id"
"""Where the request's id stands in the ASGI scope."""
_MEMBERS = ("index", "path", "expected_version", "actual_version", "first_version")
"""Parameters of an error that clients want as members of their own."""


def problem_response(error: MainstemError, request_id: str) -> Response:
    """The answer that says this error."""
    document: dict[str, Any] = {**error.problem(), "request_id": request_id}
    document |= {name: error.params[name] for name in _MEMBERS if name in error.params}
    headers = {"Retry-After": "1"} if error.status == 503 else None
    return JSONResponse(document, error.status, headers, media_type=PROBLEM)


def internal(request_id: str) -> MainstemError:
    """The error for what nobody foresaw; the log has it under the request's id."""
    return MainstemError("INTERNAL", problem=f"request {request_id} failed")


def install(app: FastAPI) -> None:
    """Make the application answer all errors as problems."""
    app.add_exception_handler(MainstemError, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def _id(request: Request) -> str:
    return str(request.scope.get(REQUEST_ID, "-"))


async def _known(request: Request, error: Exception) -> Response:
    if not isinstance(error, MainstemError):
        return await _unexpected(request, error)
    return problem_response(error, _id(request))


async def _invalid(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        return await _unexpected(request, error)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    problem = f"{place}: {first['msg']}"
    return problem_response(MainstemError("BAD_REQUEST", problem=problem), _id(request))


async def _http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return await _unexpected(request, error)
    path = request.url.path
    match error.status_code:
        case 404:
            known = MainstemError("NO_SUCH_PATH", url=path)
        case 405:
            known = MainstemError("METHOD_NOT_ALLOWED", method=request.method, url=path)
        case _:
            known = MainstemError("BAD_REQUEST", problem=str(error.detail))
    return problem_response(known, _id(request))


async def _unexpected(request: Request, error: Exception) -> Response:
    del error  # the front logs it, with its stack
    return problem_response(internal(_id(request)), _id(request))
