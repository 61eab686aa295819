"""How the API description shows what can go wrong."""

from __future__ import annotations

from typing import Any

from mainstem.gateway.problems import PROBLEM

_SAID = {
    400: "The request cannot be read.",
    403: "Not for clients.",
    404: "There is no such thing.",
    409: "It is not in the state for that, or somebody was quicker.",
    410: "What is asked for is gone.",
    413: "A record, a line or the request is too large.",
    422: "A record does not fit; `index`, `path` and `detail` say where and why.",
    429: "There are too many already.",
    503: "The log is away: try again.",
}
_SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string", "description": "The code: docs/errors.md lists them all."},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "hint": {"type": "string"},
        "request_id": {"type": "string"},
    },
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that are problem documents."""
    return {
        status: {"description": _SAID[status], "content": {PROBLEM: {"schema": _SCHEMA}}}
        for status in statuses
    }
