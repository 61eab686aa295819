"""Rows of a served table by equal columns: the fast way in."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mainstem.definitions.model import Kind
from mainstem.errors import MainstemError, did_you_mean
from mainstem.gateway.metrics import LOOKUP_PATH
from mainstem.gateway.services import Services

_MOST_COLUMNS = 100


async def rows(request: Request) -> Response:
    """Rows whose columns have the given values, and how fresh they are."""
    at: Services = request.app.state.services
    request.scope["route"] = LOOKUP
    name = request.path_params["name"]
    entry = at.catalog().get(name)
    if entry is None:
        known = (e.name for e in at.catalog().of_kind(Kind.TABLE))
        raise MainstemError("UNKNOWN_RELATION", name=name, suggestion=did_you_mean(name, known))
    if entry.definition.kind is not Kind.TABLE:
        raise MainstemError(
            "WRONG_KIND",
            name=entry.name,
            actual=entry.definition.noun,
            expected="table",
            advice="Streams are read with /v1/subscribe or a query.",
        )
    try:
        equal = parse_qsl(
            request.scope["query_string"].decode("ascii"),
            keep_blank_values=True,
            max_num_fields=_MOST_COLUMNS,
            strict_parsing=bool(request.scope["query_string"]),
            errors="strict",
        )
    except ValueError:
        raise MainstemError("BAD_REQUEST", problem="the query string is malformed") from None
    if len(dict(equal)) != len(equal):
        raise MainstemError("BAD_REQUEST", problem="a column is given twice")
    body = await at.pull.lookup(entry.definition, dict(equal))
    return Response(body, media_type="application/json")


LOOKUP = Route(LOOKUP_PATH, rows, methods=["GET"])

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
