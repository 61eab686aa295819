"""The page and the API description at `/docs`: static files, and nothing from elsewhere.

The page is built from `ui/`; its own router knows what is at which address, so every address of it
is answered with the same document.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import Response

router = APIRouter(include_in_schema=False)

_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline';"
        " img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_NOW = "no-cache"
_FOR_EVER = "public, max-age=31536000, immutable"
"""The name of such a file changes with what is in it."""


def index() -> Response:
    """The page."""
    return _file("app", "index.html")


for _place in (
    "/", "/lineage", "/streams", "/streams/{name:path}", "/topics/{name:path}", "/tables",
    "/tables/{name:path}", "/flows", "/flows/{name:path}", "/sql", "/schemas",
    "/schemas/{name:path}", "/connectors", "/connectors/{name:path}", "/new-connector",
    "/quarantine", "/plan",
):  # fmt: skip
    router.add_api_route(_place, index, methods=["GET"])


@router.get("/assets/{name}")
def built(name: str) -> Response:
    """A part of the page."""
    return _file("app/assets", name, _FOR_EVER)


@router.get("/docs")
def docs() -> Response:
    """The API description, readable."""
    return _file(".", "docs.html")


@router.get("/page/{name}")
def asset(name: str) -> Response:
    """A file of the API description."""
    return _file(".", name)


def _file(folder: str, name: str, keep: str = _NOW) -> Response:
    known = _known(folder)
    if name not in known:
        raise HTTPException(404)
    headers = {**_HEADERS, "Cache-Control": keep}
    return Response(known[name], headers=headers, media_type=_TYPES[name.rpartition(".")[2]])


@cache
def _known(folder: str) -> dict[str, bytes]:
    """The files of a folder of the package; no other can be asked for."""
    place = files("mainstem.gateway").joinpath("page", folder)
    return {
        file.name: file.read_bytes()
        for file in place.iterdir()
        if file.is_file() and file.name.rpartition(".")[2] in _TYPES
    }
