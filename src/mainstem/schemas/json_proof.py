"""The proof that a JSON Schema lets everything pass that another one does, or what speaks against.

The proof goes by cases: where the writer's schema is one of several (`anyOf`, `oneOf`, a list of
types), each is looked at by itself. Schemas that contain themselves end because a question that is
being answered already is taken as answered. Steps and depth are bounded; beyond the bounds nothing
is proved, which counts as a break.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from mainstem.schemas.breaks import Break
from mainstem.schemas.json_facts import (
    NUMBERS,
    Facts,
    Parts,
    get,
    has,
    is_quick,
    key_of,
    parts_of,
    property_at,
)
from mainstem.schemas.json_parse import REFERENCES, Place

MAX_STEPS = 30_000
MAX_LEVELS = 60
_TOO_COMPLEX: Final = "the schemas are too complex to be compared"

Rule = Callable[["Proof", Facts, Place, str], Iterator[Break]]
"""(proof, what is written, a part of the reader's schema, its path) -> what it refuses."""


class Proof:
    """One comparison; what has been found out stays with it."""

    def __init__(self, rules: dict[str, Rule]) -> None:
        self.rules = rules
        self.steps = 0
        self.open: dict[tuple[frozenset[int], int], int] = {}
        self.known: dict[tuple[frozenset[int], int], list[Break]] = {}
        # the outermost open question that an answer leans on
        self.leans_on = MAX_LEVELS
        self.derived: dict[Any, tuple[Place, Any]] = {}

    def refused(self, written: Parts | None, reader: Place, path: str) -> list[Break]:
        """What the reader's schema refuses of what has passed all the written parts."""
        if written is None or reader.contents is True or reader.contents == {}:
            return []
        question = (frozenset(id(part.contents) for part in written), id(reader.contents))
        if question in self.known:
            return self.known[question]
        if question in self.open:
            self.leans_on = min(self.leans_on, self.open[question])
            return []
        self.steps += 1
        level = len(self.open)
        if self.steps > MAX_STEPS or level >= MAX_LEVELS:
            return [Break(path, "TOO_COMPLEX", _TOO_COMPLEX)]
        self.open[question] = level
        outer, self.leans_on = self.leans_on, MAX_LEVELS
        try:
            answer = self._answer(written, reader, path)
        finally:
            del self.open[question]
        if self.leans_on >= level:
            # leans on nothing outside of itself, so it holds in every context
            self.known[question] = answer
            self.leans_on = outer
        else:
            self.leans_on = min(outer, self.leans_on)
        return answer

    def passes(self, written: Parts | None, reader: Place) -> bool:
        """Whether nothing is refused."""
        return not self.refused(written, reader, "")

    def derive(self, place: Place, contents: Any, *key: Any) -> Place:
        """A place that is not in the text; the same one for the same key, that questions end."""
        full = (id(place.contents), *key)
        if full not in self.derived:
            # the original is kept as well, for its identity is in the key
            self.derived[full] = (Place(contents, place.resolver, place.draft), place)
        return self.derived[full][0]

    def excluded(self, written: Facts, other: Place) -> bool:
        """Whether surely nothing that is written passes another schema."""
        parts = parts_of([other])
        if parts is None or written.impossible:
            return True
        for part in written.parts:
            if "not" in part.contents and self.passes(parts, part.part(part.contents["not"])):
                return True
        return self.apart(written, Facts(parts), 0)

    def apart(self, one: Facts, two: Facts, level: int) -> bool:
        """Whether surely no value has both kinds of facts."""
        if one.impossible or two.impossible or not one.types & two.types:
            return True
        if one.values is not None and two.values is not None:
            return not {*map(key_of, one.values)} & {*map(key_of, two.values)}
        if one.types & two.types <= NUMBERS:
            return _out_of_range(one, two) or _out_of_range(two, one)
        if one.types & two.types != {"object"} or level > 3:
            return False
        for name in sorted(one.required | two.required):
            mine, theirs = (parts_of(property_at(facts.parts, name)) for facts in (one, two))
            if mine is None or theirs is None or self.apart(Facts(mine), Facts(theirs), level + 1):
                return True
        return False

    def _answer(self, written: Parts, reader: Place, path: str) -> list[Break]:
        facts = Facts(written)
        if facts.impossible:
            return []
        wanted = parts_of([reader])
        if wanted is None:
            return [Break(path, "NOTHING_ALLOWED", "nothing is allowed there any more")]
        found: list[Break] = []
        for part in wanted:
            found += self._part(facts, part, path)
        if found:
            for cases in self._cases(facts):
                results = (self.refused(parts_of(case), reader, path) for case in cases)
                failed = next(filter(None, results), None)
                if failed is None:
                    return []
                # what one case breaks says more than what all of them together might
                found = min(failed, found, key=len)
        return list(dict.fromkeys(found))

    def _part(self, facts: Facts, part: Place, path: str) -> Iterator[Break]:
        if facts.values is not None and is_checkable(part.contents):
            validator = part.draft(part.contents, format_checker=part.draft.FORMAT_CHECKER)
            for value in facts.values:
                error = next(iter(validator.iter_errors(value)), None)
                if error is not None:
                    keyword = str(
                        error.absolute_schema_path[0] if error.absolute_schema_path else ""
                    )
                    kind = f"{_upper(keyword)}_NARROWED"
                    shown = json.dumps(value, ensure_ascii=False)[:80]
                    yield Break(f"{path}/{keyword}", kind, f"the value {shown} is refused")
            return
        for keyword, rule in self.rules.items():
            if has(part, keyword):
                yield from rule(self, facts, part, path)

    def _cases(self, facts: Facts) -> Iterator[list[list[Place]]]:
        """Ways to tell what is written apart into cases that together are all of it."""
        for index, part in enumerate(facts.parts):
            for keyword in ("oneOf", "anyOf"):
                branches = get(part, keyword)
                if branches:
                    rest = {key: value for key, value in part.contents.items() if key != keyword}
                    others = [*facts.parts[:index], *facts.parts[index + 1 :]]
                    others.append(self.derive(part, rest, keyword))
                    yield [
                        [*others, *self._branch(part, keyword, place)]
                        for place in range(len(branches))
                    ]
        kinds = sorted(facts.types - NUMBERS) + (["number"] if facts.types & NUMBERS else [])
        if facts.parts and len(kinds) > 1:
            first = facts.parts[0]
            yield [
                [*facts.parts, self.derive(first, {"type": kind}, "type", kind)] for kind in kinds
            ]

    def _branch(self, part: Place, keyword: str, index: int) -> Iterator[Place]:
        branches = part.contents[keyword]
        yield part.part(branches[index])
        if keyword == "oneOf":
            for other, branch in enumerate(branches):
                if other != index:
                    yield self.derive(part, {"not": branch}, "not", other)


def is_checkable(contents: Any) -> bool:
    """Whether values can be checked by the schema alone, and in little time."""
    todo = [contents]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if any(keyword in node for keyword in REFERENCES):
                return False
            patterns = [node.get("pattern"), *_keys(node.get("patternProperties"))]
            if not all(is_quick(item) for item in patterns if isinstance(item, str)):
                return False
            todo += node.values()
        elif isinstance(node, list):
            todo += node
    return True


def _keys(node: Any) -> list[str]:
    return list(node) if isinstance(node, dict) else []


def _out_of_range(one: Facts, two: Facts) -> bool:
    if one.lower is None or two.upper is None:
        return False
    (least, out), (most, within) = one.lower, two.upper
    return least > most or (least == most and (out or not within))


def _upper(keyword: str) -> str:
    """`minLength` as `MIN_LENGTH`."""
    return "".join(f"_{char}" if char.isupper() else char for char in keyword).upper().strip("$")
