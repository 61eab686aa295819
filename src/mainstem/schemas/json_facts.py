"""What a JSON Schema says for certain about the values that it lets pass.

A schema is taken as a list of parts that all hold (`allOf` and references followed). Where a part
cannot be understood it counts as no limit, so that what is concluded from the facts stays true.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from mainstem.schemas.json_drafts import LEGACY
from mainstem.schemas.json_parse import REFERENCES, Place

# "number" is two of these, so that sets can be compared
ATOMS: Final = frozenset({"null", "boolean", "object", "array", "string", "integer", "fraction"})
NUMBERS: Final = frozenset({"integer", "fraction"})
# keywords that a draft honours beside those it has a validator for
_BESIDE: Final = {
    "else": {"if"},
    "maxContains": {"dependentSchemas"},
    "minContains": {"dependentSchemas"},
    "then": {"if"},
}

Parts = tuple[Place, ...]


def has(place: Place, keyword: str) -> bool:
    """Whether a keyword is there and the draft honours it."""
    known = place.draft.VALIDATORS
    honoured = keyword in known or any(other in known for other in _BESIDE.get(keyword, ()))
    return honoured and keyword in place.contents


def get(place: Place, keyword: str, default: Any = None) -> Any:
    """The value of a keyword that the draft honours."""
    return place.contents[keyword] if has(place, keyword) else default


def parts_of(places: Iterable[Place]) -> Parts | None:
    """All that must hold, as schemas with keywords; None if nothing can hold."""
    found: list[Place] = []
    seen: set[int] = set()
    todo = list(places)[::-1]
    while todo:
        place = todo.pop()
        if place.contents is False:
            return None
        # a reference that leads to itself says nothing
        if place.contents is True or id(place.contents) in seen:
            continue
        seen.add(id(place.contents))
        if place.draft in LEGACY and "$ref" in place.contents:
            # what stands beside a reference does not count in these drafts
            todo.append(place.follow(place.contents["$ref"]))
            continue
        found.append(place)
        for keyword in REFERENCES:
            reference = get(place, keyword)
            if isinstance(reference, str):
                todo.append(place.follow(reference))
        todo += [place.part(item) for item in get(place, "allOf", ())]
    return tuple(found)


def joined(parts: Parts, places: Iterable[Place]) -> Parts | None:
    """Parts, and what is in further places; None if nothing can hold."""
    more = parts_of(places)
    if more is None:
        return None
    return tuple({id(part.contents): part for part in (*parts, *more)}.values())


def atoms(types: str | list[str]) -> set[str]:
    """Types by name as a set without overlap."""
    found: set[str] = set()
    for name in [types] if isinstance(types, str) else types:
        found |= NUMBERS if name == "number" else {name}
    return found


class Facts:
    """The limits of all parts together."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.types = set(ATOMS)
        for types in self.each("type"):
            self.types &= atoms(types)
        self.values = self._values()
        if self.values is not None:
            self.types &= {_atom(value) for value in self.values}
        self.patterns = set(self.each("pattern"))
        self.formats = set(self.each("format"))
        self.multiples = [Fraction(str(step)) for step in self.each("multipleOf")]
        self.required = {name for names in self.each("required") for name in names}
        self.unique = any(self.each("uniqueItems"))
        self.lower = max((bound for part in parts for bound in lower_bounds(part)), default=None)
        upper = [bound for part in parts for bound in upper_bounds(part)]
        self.upper = min(upper, default=None)

    def each(self, keyword: str) -> list[Any]:
        """The values of a keyword in all parts that have it."""
        return [part.contents[keyword] for part in self.parts if has(part, keyword)]

    def least(self, keyword: str) -> int:
        """The highest of the lower limits."""
        return max(self.each(keyword), default=0)

    def most(self, keyword: str) -> int | None:
        """The lowest of the upper limits."""
        return min(self.each(keyword), default=None)

    @property
    def impossible(self) -> bool:
        """Whether surely no value passes."""
        return not self.types or self.values == []

    def _values(self) -> list[Any] | None:
        """All values that can pass, where they can be counted."""
        sets = self.each("enum") + [[value] for value in self.each("const")]
        if not sets:
            if self.types <= {"null", "boolean"}:
                return [v for v in (None, True, False) if _atom(v) in self.types]
            return None
        keys = set.intersection(*({key_of(value) for value in values} for values in sets))
        return [v for v in sets[0] if key_of(v) in keys and _atom(v) in self.types]


def key_of(value: Any) -> str:
    """The same text for values that JSON Schema takes for equal: 1 and 1.0, but not 1 and true."""
    return json.dumps(_plain(value), sort_keys=True)


def lower_bounds(part: Place) -> list[tuple[Fraction, bool]]:
    """Bounds as (number, whether the number itself is out); greater means stricter."""
    found = []
    minimum, exclusive = get(part, "minimum"), part.contents.get("exclusiveMinimum")
    if minimum is not None:
        found.append((Fraction(str(minimum)), exclusive is True))
    if exclusive is not None and not isinstance(exclusive, bool):
        found.append((Fraction(str(exclusive)), True))
    return found


def upper_bounds(part: Place) -> list[tuple[Fraction, bool]]:
    """Bounds as (number, whether the number itself passes); less means stricter."""
    found = []
    maximum, exclusive = get(part, "maximum"), part.contents.get("exclusiveMaximum")
    if maximum is not None:
        found.append((Fraction(str(maximum)), exclusive is not True))
    if exclusive is not None and not isinstance(exclusive, bool):
        found.append((Fraction(str(exclusive)), False))
    return found


@lru_cache(maxsize=4096)
def is_quick(pattern: str) -> bool:
    """Whether a search for a pattern surely takes little time."""
    repeats = len(re.findall(r"[*+]|\{\d*,\d*\}", pattern))
    nested = re.search(r"\)(?:[*+]|\{)|\\[1-9]|\(\?P=", pattern)
    return len(pattern) <= 300 and repeats <= 2 and nested is None


def matches(pattern: str, name: str) -> bool | None:
    """Whether a name has the pattern; None where that is not worth the time."""
    if not is_quick(pattern) or len(name) > 300:
        return None
    return re.search(pattern, name) is not None


def item_at(part: Place, index: int) -> Any:
    """The schema of the item at an index."""
    prefix, rest = items_of(part)
    return prefix[index] if index < len(prefix) else rest


def items_of(part: Place) -> tuple[list[Any], Any]:
    """The schemas of the first items, and of all further ones."""
    items = get(part, "items", True)
    if "prefixItems" in part.draft.VALIDATORS:
        return part.contents.get("prefixItems", []), items
    if isinstance(items, list):
        return items, get(part, "additionalItems", True)
    return [], items


def additional(part: Place) -> Any:
    """The schema of properties that are not named; `unevaluated` is the same if nothing nests."""
    if "additionalProperties" in part.contents:
        return part.contents["additionalProperties"]
    if is_flat(part):
        return get(part, "unevaluatedProperties", True)
    return True


def is_flat(part: Place) -> bool:
    """Whether no other schema applies to the same value, so that nothing else is evaluated."""
    applying = {"allOf", "anyOf", "oneOf", "if", "not", "dependentSchemas", "contains", *REFERENCES}
    return not applying & part.contents.keys()


def property_at(parts: Parts, name: str) -> list[Place]:
    """All schemas that surely apply to a property."""
    found = []
    for part in parts:
        named = get(part, "properties", {})
        hits = {p: matches(p, name) for p in get(part, "patternProperties", {})}
        if name in named:
            found.append(part.part(named[name]))
        found += [part.part(part.contents["patternProperties"][p]) for p in hits if hits[p]]
        if name not in named and not any(hit is not False for hit in hits.values()):
            found.append(part.part(additional(part)))
    return found


def _atom(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "integer" if value == int(value) else "fraction"


def _plain(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case _:
            return value
