"""Rows of a served table by equal columns: the fast way in.

It stands before the application with its many routes, since look-ups are many.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Receive, Scope, Send

from mainstem.definitions.model import Definition, Kind
from mainstem.errors import MainstemError, did_you_mean
from mainstem.gateway.metrics import LOOKUP_PATH
from mainstem.gateway.services import Services

_MOST_COLUMNS = 100
_BEGIN, _END = "/v1/tables/", "/rows"
_WAIT_FOR = b"mainstem-wait-for"
_MOST_RECEIPT = 20_000


class TableRows:
    """Look-ups; requests for anything else go to the rest of the gateway."""

    def __init__(self, services: Services, rest: ASGIApp) -> None:
        self._services = services
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the gateway's start and end."""
        name = _table(scope)
        if not name:
            await self._rest(scope, receive, send)
            return
        scope["route"] = LOOKUP_PATH  # for the gateway's numbers
        if scope["method"] not in ("GET", "HEAD"):
            raise MainstemError("METHOD_NOT_ALLOWED", method=scope["method"], url=scope["path"])
        body = await self._rows(name, scope)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _rows(self, name: str, scope: Scope) -> bytes:
        at = self._services
        definition = self._definition(name)
        equal = _columns(scope["query_string"])
        receipt = next((value for header, value in scope["headers"] if header == _WAIT_FOR), None)
        if receipt is not None:
            text = receipt[:_MOST_RECEIPT].decode("latin-1")
            await at.taken_in.wait([definition.name], text, None)
        return await at.pull.lookup(definition, equal)

    def _definition(self, name: str) -> Definition:
        catalog = self._services.catalog()
        entry = catalog.get(name)
        if entry is None:
            known = (e.name for e in catalog.of_kind(Kind.TABLE))
            raise MainstemError("UNKNOWN_RELATION", name=name, suggestion=did_you_mean(name, known))
        if entry.definition.kind is not Kind.TABLE:
            raise MainstemError(
                "WRONG_KIND",
                name=entry.name,
                actual=entry.definition.noun,
                expected="table",
                advice="Streams are read with /v1/subscribe or a query.",
            )
        return entry.definition


def _table(scope: Scope) -> str:
    """The name in the path of a look-up; empty for all other requests."""
    path: str = scope["path"] if scope["type"] == "http" else ""
    if not (path.startswith(_BEGIN) and path.endswith(_END)):
        return ""
    name = path[len(_BEGIN) : -len(_END)]
    return "" if "/" in name else name


def _columns(query_string: bytes) -> dict[str, str]:
    try:
        equal = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=_MOST_COLUMNS,
            strict_parsing=bool(query_string),
            errors="strict",
        )
    except ValueError:
        raise MainstemError("BAD_REQUEST", problem="the query string is malformed") from None
    columns = dict(equal)
    if len(columns) != len(equal):
        raise MainstemError("BAD_REQUEST", problem="a column is given twice")
    return columns


OPENAPI: dict[str, Any] = {
    LOOKUP_PATH: {
        "get": {
            "tags": ["tables"],
            "summary": "Rows",
            "description": "Rows of a served table. Each query parameter is a column and the value"
            " that it must have; with all key columns this is a look-up by key.",
            "operationId": "table_rows",
            "parameters": [
                {
                    "name": "name",
                    "in": "path",
                    "required": True,
                    "schema": {"type": "string"},
                },
                {
                    "name": "columns",
                    "in": "query",
                    "style": "form",
                    "explode": True,
                    "schema": {"type": "object", "additionalProperties": {"type": "string"}},
                },
                {
                    "name": "Mainstem-Wait-For",
                    "in": "header",
                    "description": "The receipt of a write: the table must have taken in its"
                    " records.",
                    "schema": {"type": "string"},
                },
            ],
            "responses": {
                "200": {
                    "description": "The rows, and how fresh they are.",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                }
            },
        }
    }
}
"""What the API description says of it: the route is not one of FastAPI's, for speed."""
