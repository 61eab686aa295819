"""Documents that an agent can read: the definition of each object, and the catalogue of errors."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from mainstem.errors import MainstemError, catalogue, did_you_mean
from mainstem.mcp.tool import Place

OBJECT, ERROR = "mainstem://objects/", "mainstem://errors/"
ALL_ERRORS = "mainstem://errors"
SQL, MARKDOWN = "application/sql", "text/markdown"


@dataclass(frozen=True, slots=True)
class Document:
    """A document by its address."""

    uri: str
    name: str
    kind: str
    description: str = ""
    text: str = ""


TEMPLATES = (
    Document(OBJECT + "{name}", "definition", SQL, "The definition of an object, as written."),
    Document(ERROR + "{code}", "error", MARKDOWN, "What an error means, and what to do."),
)


def listed(place: Place) -> list[Document]:
    """The errors, and the definition of each object; without a gateway, only the errors."""
    errors = Document(ALL_ERRORS, "errors", MARKDOWN, "All error codes, and what to do about each.")
    try:
        objects = place.client.objects()
    except MainstemError:
        return [errors]
    definitions = [
        Document(
            OBJECT + quote(one["name"], safe=""),
            one["name"],
            SQL,
            one.get("comment") or f"The definition of the {one['kind']} {one['name']}.",
        )
        for one in objects
    ]
    return [errors, *definitions]


def read(place: Place, uri: str) -> Document:
    """One of them; UNKNOWN_RESOURCE when there is none at the address."""
    if uri == ALL_ERRORS:
        return Document(uri, "errors", MARKDOWN, text="\n\n".join(map(_error, catalogue())))
    if uri.startswith(ERROR):
        code = unquote(uri.removeprefix(ERROR))
        if code not in catalogue():
            suggestion = did_you_mean(code, catalogue())
            raise MainstemError("UNKNOWN_RESOURCE", uri=uri, suggestion=suggestion)
        return Document(uri, code, MARKDOWN, text=_error(code))
    if uri.startswith(OBJECT):
        found = place.client.object(unquote(uri.removeprefix(OBJECT)))
        return Document(uri, found["name"], SQL, text=found["sql"])
    raise MainstemError("UNKNOWN_RESOURCE", uri=uri, suggestion="")


def _error(code: str) -> str:
    entry = catalogue()[code]
    return f"## {code}\n\n{entry.message}\n\n{entry.hint}"
