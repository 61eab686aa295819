"""What goes over the wire: JSON that keeps every digit, and problem documents as errors."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx2

from mainstem.errors import CatalogueEntry, MainstemError, catalogue, filled
from mainstem.vocabulary import SourceLocation

Parameters = Sequence[Any] | Mapping[str, Any]
"""Values of a query's parameters: in order, or by name."""
JSON = {"Content-Type": "application/json"}


class RemoteError(MainstemError):
    """An error that the gateway reported: whole, even when the local catalogue lacks its code."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        code = str(problem.get("title", "INTERNAL"))
        status = int(problem.get("status", 500))
        known = catalogue().get(code)
        self.code = code
        detail = str(problem.get("detail", ""))
        self.params = (filled(known.message, detail) or {}) if known else {}
        self.location = _location(problem.get("location"))
        self.entry = CatalogueEntry(
            message=_verbatim(detail),
            hint=_verbatim(problem.get("hint", "")),
            status=status,
            exit=known.exit if known else 69 if status == 503 else 1,
        )
        Exception.__init__(self, self.message)


def path(*parts: str) -> str:
    """A path below /v1; whatever a name has in it stays inside its part."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def quoted(name: str) -> str:
    """A name for SQL; a dot in it stands between a source and its table."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in name.split("."))


def row_text(row: Any) -> str:
    """A row, a dict or an object with `model_dump` (pydantic), as JSON."""
    dump = getattr(row, "model_dump", None)
    return as_text(row if dump is None else dump(by_alias=True))


def key_text(value: Any) -> str:
    """A value of a key as text."""
    text = as_text(value)
    return str(json.loads(text)) if text.startswith('"') else text


def as_text(value: Any) -> str:
    """JSON in which numbers keep their digits; times are in UTC if they say no zone."""
    match value:
        case Decimal():
            return f"{value:f}" if value.is_finite() else json.dumps(str(value))
        case datetime() | date():
            return json.dumps(value.isoformat())
        case bytes() | bytearray():
            return json.dumps(base64.b64encode(value).decode())
        case UUID():
            return json.dumps(str(value))
        case float() if not math.isfinite(value):
            return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
        case Mapping():
            pieces = (f"{json.dumps(str(key))}:{as_text(item)}" for key, item in value.items())
            return "{" + ",".join(pieces) + "}"
        case list() | tuple():
            return "[" + ",".join(map(as_text, value)) + "]"
        case _:
            return json.dumps(value)


def read_json(text: str | bytes) -> Any:
    """JSON whose fractions are decimals."""
    return json.loads(text, parse_float=Decimal)


def document_of(response: httpx2.Response, url: str) -> dict[str, Any]:
    """The object in an answer."""
    if response.status_code == 204:
        return {}
    try:
        document = read_json(response.content)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        problem = "its answer is not the JSON that was expected"
        raise MainstemError("NOT_A_GATEWAY", url=url, problem=problem)
    return document


def refusal(response: httpx2.Response, url: str) -> MainstemError:
    """What an answer of 400 and more means."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if kind == "application/problem+json":
        try:
            problem = read_json(response.content)
        except ValueError:
            problem = None
        if isinstance(problem, dict) and "title" in problem:
            return RemoteError(problem)
    answer = f"it answered {response.status_code} without a problem document"
    return MainstemError("NOT_A_GATEWAY", url=url, problem=answer)


def _verbatim(text: object) -> str:
    """The text as a format string that gives back just that text."""
    return str(text).replace("{", "{{").replace("}", "}}")


def _location(place: Any) -> SourceLocation | None:
    if not isinstance(place, dict):
        return None
    return SourceLocation(
        file=str(place.get("file", "")),
        line=int(place.get("line", 1)),
        column=int(place.get("column", 1)),
        snippet=str(place.get("snippet", "")),
    )
