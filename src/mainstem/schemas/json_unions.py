"""Rules of JSON Schema for `anyOf`, `oneOf`, `not` and `if`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mainstem.schemas.breaks import Break
from mainstem.schemas.json_facts import Facts, get, joined, key_of
from mainstem.schemas.json_parse import Place
from mainstem.schemas.json_proof import Proof, Rule, is_checkable


def _any(proof: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    nearest: list[Break] = []
    for index, branch in enumerate(() if proof.splits(facts) else part.contents["anyOf"]):
        found = proof.refused(facts.parts, part.part(branch), f"{path}/anyOf/{index}")
        if not found:
            return
        nearest = min(nearest or found, found, key=len)
    yield Break(f"{path}/anyOf", "ANY_OF_NARROWED", _nearest(nearest))


def _one(proof: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    branches = [part.part(branch) for branch in part.contents["oneOf"]]
    reason = _nearest([])
    if not proof.splits(facts):
        # all but one must be out of the question
        able = [i for i, branch in enumerate(branches) if not proof.excluded(facts, branch)]
        found = [proof.refused(facts.parts, branches[i], f"{path}/oneOf/{i}") for i in able[:2]]
        if len(able) == 1 and not found[0]:
            return
        if len(able) > 1 and not found[0]:
            reason = f"what is written may fit the alternatives {able[0]} and {able[1]} at once"
        elif found:
            reason = _nearest(min(found, key=len))
    yield Break(f"{path}/oneOf", "ONE_OF_NARROWED", reason)


def _not(proof: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if not proof.excluded(facts, part.part(part.contents["not"])):
        reason = "what is written may be what is refused here"
        yield Break(f"{path}/not", "NOT_EXTENDED", reason)


def _if(proof: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    condition = part.part(part.contents["if"])
    # what is written may have the same condition, and then its consequences hold, too
    same = [other for other in facts.parts if _same_condition(part, other)]
    if "then" in part.contents:
        known = [other.part(other.contents["then"]) for other in same if "then" in other.contents]
        written = joined(facts.parts, [condition, *known])
        yield from proof.refused(written, part.part(part.contents["then"]), f"{path}/then")
    if "else" in part.contents:
        known = [other.part(other.contents["else"]) for other in same if "else" in other.contents]
        unmet = proof.derive(part, {"not": part.contents["if"]}, "else")
        written = joined(facts.parts, [unmet, *known])
        yield from proof.refused(written, part.part(part.contents["else"]), f"{path}/else")


def _same_condition(part: Place, other: Place) -> bool:
    one, two = part.contents["if"], get(other, "if")
    return two is not None and is_checkable(one) and key_of(one) == key_of(two)


def _nearest(found: list[Break]) -> str:
    reason = "what is written fits none of the alternatives for certain"
    return f"{reason}; to the nearest: {found[0].path}: {found[0].reason}" if found else reason


UNION_RULES: Final[dict[str, Rule]] = {"anyOf": _any, "oneOf": _one, "not": _not, "if": _if}
