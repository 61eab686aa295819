"""The differences of two JSON Schemas: schemas meet by their place, references followed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from mainstem.schemas.differences import Action, Difference, compare
from mainstem.schemas.json_drafts import LEGACY
from mainstem.schemas.json_facts import key_of
from mainstem.schemas.json_parse import JsonSchema, Place, inner
from mainstem.schemas.text import pointer

_DOCS = {"title", "description", "$comment", "examples"}
# compared by name through what refers to them
_SKIPPED = {"definitions", "$defs", "$ref", "$schema", "$id", "id", "$anchor"}
MAX_PAIRS = 20_000

Pair = tuple[Place, Place, str]


def json_differences(old: JsonSchema, new: JsonSchema) -> list[Difference]:
    """All differences, the outermost first."""
    found: list[Difference] = []
    seen: set[tuple[int, int]] = set()
    todo: deque[Pair] = deque([(old.root, new.root, "#")])
    while todo and len(seen) < MAX_PAIRS:
        before, after, path = todo.popleft()
        if not (_says_more(before) or _says_more(after)):
            before, after = _target(before), _target(after)
        if (id(before.contents), id(after.contents)) in seen:
            continue
        seen.add((id(before.contents), id(after.contents)))
        if isinstance(before.contents, dict) and isinstance(after.contents, dict):
            found += _keywords(before.contents, after.contents, path)
            todo += _pairs(before, after, path)
            one, two = before.contents.get("$ref"), after.contents.get("$ref")
            if isinstance(one, str) and isinstance(two, str):
                todo.append((before.follow(one), after.follow(two), path))
            else:
                found += compare(path, "$ref", one, two)
        else:
            found += compare(path, "schema", before.contents, after.contents)
    return found


def _says_more(place: Place) -> bool:
    """True for a reference with keywords beside it that count, as they do since 2019-09."""
    contents = place.contents
    if not isinstance(contents, dict) or not isinstance(contents.get("$ref"), str):
        return False
    return place.draft not in LEGACY and bool(contents.keys() - _SKIPPED)


def _target(place: Place) -> Place:
    """What a schema that is nothing but a reference stands for."""
    seen: set[int] = set()
    while (
        isinstance(place.contents, dict)
        and isinstance(place.contents.get("$ref"), str)
        and not _says_more(place)
        and id(place.contents) not in seen
    ):
        seen.add(id(place.contents))
        place = place.follow(place.contents["$ref"])
    return place


def _pairs(before: Place, after: Place, path: str) -> Iterator[Pair]:
    olds = dict(inner(before.contents))
    for way, contents in inner(after.contents):
        if way in olds and way[0] not in _SKIPPED:
            yield before.part(olds[way]), after.part(contents), f"{path}{pointer(*way)}"


def _keywords(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Difference]:
    olds, news = dict(inner(old)), dict(inner(new))
    for way in [*news, *(way for way in olds if way not in news)]:
        if way[0] not in _SKIPPED and (way in olds) != (way in news):
            what = "property" if way[0] == "properties" else str(way[0])
            at = f"{path}{pointer(*way)}"
            action = Action.ADDED if way in news else Action.REMOVED
            yield Difference(at, action, what, olds.get(way), news.get(way))
    within = {way[0] for way in (*olds, *news)} | _SKIPPED
    for key in [*new, *(key for key in old if key not in new)]:
        if key not in within:
            yield from _keyword(key, old, new, f"{path}{pointer(key)}")


def _keyword(key: str, old: dict[str, Any], new: dict[str, Any], at: str) -> Iterator[Difference]:
    if key in ("required", "enum") and isinstance(old.get(key, []), list):
        befores = {key_of(value): value for value in old.get(key, [])}
        afters = {key_of(value): value for value in new.get(key, [])}
        for text, value in afters.items():
            if text not in befores:
                yield Difference(at, Action.ADDED, key, None, value)
        for text, value in befores.items():
            if text not in afters:
                yield Difference(at, Action.REMOVED, key, value, None)
        return
    what = "doc" if key in _DOCS else key
    if key not in old:
        yield Difference(at, Action.ADDED, what, None, new[key])
    elif key not in new:
        yield Difference(at, Action.REMOVED, what, old[key], None)
    elif key_of(old[key]) != key_of(new[key]):
        yield Difference(at, Action.CHANGED, what, old[key], new[key])
