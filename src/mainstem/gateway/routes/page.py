"""The page at `/` and the API description at `/docs`: static files, and nothing from elsewhere."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import Response

router = APIRouter(include_in_schema=False)

_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "docs.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "docs.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@router.get("/")
def index() -> Response:
    """The page."""
    return _file("index.html")


@router.get("/docs")
def docs() -> Response:
    """The API description, readable."""
    return _file("docs.html")


@router.get("/page/{name}")
def asset(name: str) -> Response:
    """A file of the page."""
    return _file(name)


def _file(name: str) -> Response:
    if name not in _TYPES:
        raise HTTPException(404)
    return Response(_read(name), headers=_HEADERS, media_type=_TYPES[name])


@cache
def _read(name: str) -> bytes:
    return files("mainstem.gateway").joinpath("page", name).read_bytes()
