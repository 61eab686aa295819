"""The proof that a JSON Schema lets everything pass that another one does, or what speaks against.

The proof goes by cases: where the writer's schema is one of several (`anyOf`, `oneOf`, a list of
types), each is looked at by itself. Schemas that contain themselves end because a question that is
open already, about the whole of which this is a part, is taken as answered. Steps and depth are
bounded; beyond the bounds nothing is proved, which counts as a break.
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
    joined,
    key_of,
    parts_of,
    property_at,
)
from mainstem.schemas.json_parse import REFERENCES, Place

MAX_STEPS = 30_000
MAX_LEVELS = 60
MAX_COMPARISONS = 200_000
# a keyword of our own, in cases of oneOf: none of these holds
_NONE_OF: Final = "\0none of"
_TOO_COMPLEX: Final = "the schemas are too complex to be compared"

Rule = Callable[["Proof", Facts, Place, str], Iterator[Break]]
"""(proof, what is written, a part of the reader's schema, its path) -> what it refuses."""


class Proof:
    """One comparison; what has been found out stays with it."""

    def __init__(self, rules: dict[str, Rule]) -> None:
        self.rules = rules
        self.steps = 0
        # question -> how many others were open before it, and how deep in the value it is
        self.open: dict[tuple[frozenset[int], int], tuple[int, int]] = {}
        self.inside = 0
        self.known: dict[tuple[frozenset[int], int], list[Break]] = {}
        # the outermost open question that an answer leans on
        self.leans_on = MAX_LEVELS
        self.comparisons = 0
        self.facts_of: dict[frozenset[int], Facts] = {}
        self.derived: dict[Any, tuple[Place, Any]] = {}

    def refused(self, written: Parts | None, reader: Place, path: str) -> list[Break]:
        """What the reader's schema refuses of what has passed all the written parts."""
        if written is None or reader.contents is True or reader.contents == {}:
            return []
        question = (frozenset(id(part.contents) for part in written), id(reader.contents))
        if question in self.known:
            return self.known[question]
        if question in self.open and self.open[question][1] < self.inside:
            # about a part of the value now, so that the answer is due to values that are smaller
            self.leans_on = min(self.leans_on, self.open[question][0])
            return []
        self.steps += 1
        level = len(self.open)
        if self.steps > MAX_STEPS or level >= MAX_LEVELS or question in self.open:
            return [Break(path, "TOO_COMPLEX", _TOO_COMPLEX)]
        self.open[question] = (level, self.inside)
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

    def refused_inside(self, written: Parts | None, reader: Place, path: str) -> list[Break]:
        """The same for a part of the value: a property, an item."""
        self.inside += 1
        try:
            return self.refused(written, reader, path)
        finally:
            self.inside -= 1

    def passes_inside(self, written: Parts | None, reader: Place) -> bool:
        """Whether nothing is refused of a part of the value."""
        return not self.refused_inside(written, reader, "")

    def passes(self, written: Parts | None, reader: Place) -> bool:
        """Whether nothing is refused."""
        return not self.refused(written, reader, "")

    def splits(self, facts: Facts) -> bool:
        """Whether what is written is one of several, each of which will be looked at by itself."""
        return any(get(part, key) for part in facts.parts for key in ("oneOf", "anyOf"))

    def derive(self, place: Place, contents: Any, *key: Any) -> Place:
        """A place that is not in the text; the same one for the same key, that questions end."""
        full = (id(place.contents), *key)
        if full not in self.derived:
            # the original is kept as well, for its identity is in the key
            self.derived[full] = (Place(contents, place.resolver, place.draft), place)
        return self.derived[full][0]

    def facts(self, parts: Parts) -> Facts:
        """The facts of parts, found out once."""
        key = frozenset(id(part.contents) for part in parts)
        if key not in self.facts_of:
            self.facts_of[key] = Facts(parts)
        return self.facts_of[key]

    def excluded(self, written: Facts, other: Place) -> bool:
        """Whether surely nothing that is written passes another schema."""
        parts = parts_of([other])
        if parts is None or self.apart(written, self.facts(parts), 0):
            return True
        refused = (part.part(contents) for part in written.parts for contents in _refused_by(part))
        return any(self.passes(parts, place) for place in refused)

    def apart(self, one: Facts, two: Facts, level: int) -> bool:
        """Whether surely no value has both kinds of facts."""
        self.comparisons += 1
        if self.comparisons > MAX_COMPARISONS:
            return False
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
            if (
                mine is None
                or theirs is None
                or self.apart(self.facts(mine), self.facts(theirs), level + 1)
            ):
                return True
        return False

    def _answer(self, written: Parts, reader: Place, path: str) -> list[Break]:
        facts = self.facts(written)
        if facts.impossible:
            return []
        wanted = parts_of([reader])
        if wanted is None:
            return [Break(path, "NOTHING_ALLOWED", "nothing is allowed there any more")]
        found: list[Break] = []
        for part in wanted:
            found += self._part(facts, part, path)
        if found:
            # one way is enough, for each case is told apart further
            cases = next(self.cases(facts), None)
            if cases is not None:
                results = (self.refused(case, reader, path) for case in cases)
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

    def cases(self, facts: Facts) -> Iterator[list[Parts | None]]:
        """Ways to tell what is written apart into cases that together are all of it."""
        for index, part in enumerate(facts.parts):
            for keyword in ("oneOf", "anyOf"):
                branches = get(part, keyword)
                if branches:
                    # what is left over could be told only with the branch that is taken out
                    without = {keyword, "unevaluatedProperties", "unevaluatedItems"}
                    rest = {k: value for k, value in part.contents.items() if k not in without}
                    derived = self.derive(part, rest, keyword)
                    others = (*facts.parts[:index], *facts.parts[index + 1 :], derived)
                    yield [
                        joined(others, self._branch(part, keyword, place))
                        for place in range(len(branches))
                    ]
        kinds = sorted(facts.types - NUMBERS) + (["number"] if facts.types & NUMBERS else [])
        if facts.parts and len(kinds) > 1:
            first = facts.parts[0]
            yield [
                (*facts.parts, self.derive(first, {"type": kind}, "type", kind)) for kind in kinds
            ]

    def _branch(self, part: Place, keyword: str, index: int) -> Iterator[Place]:
        branches = part.contents[keyword]
        yield part.part(branches[index])
        if keyword == "oneOf" and len(branches) > 1:
            others = [*branches[:index], *branches[index + 1 :]]
            yield self.derive(part, {_NONE_OF: others}, _NONE_OF, index)


def _refused_by(part: Place) -> Iterator[Any]:
    if "not" in part.contents:
        yield part.contents["not"]
    yield from part.contents.get(_NONE_OF, ())


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
