"""Answers that fit into a conversation: plain JSON, cut where it is too long, and saying so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

MOST_CHARACTERS = 50_000
"""Of an answer; the models that read it take several times as much, but not for one question."""
_LONGEST_TEXT = 2_000
"""Of a text within an answer that is too long."""


def plain(value: Any) -> Any:
    """The value in types of JSON; a number that a float cannot hold comes as text."""
    match value:
        case Decimal():
            near = float(value)
            return near if Decimal(repr(near)) == value else str(value)
        case Mapping():
            return {str(name): plain(item) for name, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value


def fitted(document: dict[str, Any], most: int = MOST_CHARACTERS) -> dict[str, Any]:
    """The document, not longer than that: long texts are clipped, then lists shortened.

    `cut` names each list that is shorter than it was, and how long that is; an answer whose `rows`
    are among them says `truncated`.
    """
    found: dict[str, Any] = plain(document)
    if length(found) <= most:
        return found
    found = _clipped(found)
    whole: dict[str, int] = {}
    while length({**found, "cut": whole}) > most:
        heaviest = max(_lists(found), key=lambda one: length(one[1]), default=None)
        if heaviest is None:
            return {"cut": f"an answer of more than {most:,} characters, of no use in parts"}
        place, items = heaviest
        whole.setdefault(place, len(items))
        del items[len(items) // 2 :]
    if whole:
        found["cut"] = {place: f"the first of {count}" for place, count in whole.items()}
    if "rows" in whole:
        found["truncated"] = True
    return found


def length(value: Any) -> int:
    """Characters of the value as JSON."""
    return len(json.dumps(value, ensure_ascii=False))


def _clipped(value: Any) -> Any:
    match value:
        case str() if len(value) > _LONGEST_TEXT:
            return f"{value[:_LONGEST_TEXT]}... ({len(value) - _LONGEST_TEXT:,} characters more)"
        case dict():
            return {name: _clipped(item) for name, item in value.items()}
        case list():
            return [_clipped(item) for item in value]
        case _:
            return value


def _lists(value: Any, place: str = "") -> Iterator[tuple[str, list[Any]]]:
    """The lists that can be shortened, and where they are; not those within another list."""
    if isinstance(value, list):
        if value:
            yield place, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _lists(item, f"{place}.{name}" if place else name)
