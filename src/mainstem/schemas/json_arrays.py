"""Rules of JSON Schema for arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mainstem.schemas.breaks import Break
from mainstem.schemas.json_facts import Facts, get, is_flat, item_at, items_of, parts_of
from mainstem.schemas.json_parse import Place
from mainstem.schemas.json_proof import Proof, Rule


def _items(proof: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if "array" not in facts.types:
        return
    prefix, rest = items_of(part)
    longest = facts.most("maxItems")
    known = max((len(items_of(other)[0]) for other in facts.parts), default=0)
    # beyond the first items of both sides all further ones are alike
    for index in range(max(len(prefix), known) + 1):
        if longest is not None and index >= longest:
            return
        wanted = prefix[index] if index < len(prefix) else rest
        written = parts_of([other.part(item_at(other, index)) for other in facts.parts])
        name = str(index) if index < len(prefix) else "items"
        found = proof.refused_inside(written, part.part(wanted), f"{path}/{name}")
        if found and wanted is False:
            reason = f"arrays of more than {index} items may be written and are refused"
            yield Break(path, "ITEMS_REMOVED_FROM_CLOSED_CONTENT_MODEL", reason)
            return
        yield from found


def _counts(_: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if "array" not in facts.types:
        return
    least, most = get(part, "minItems", 0), get(part, "maxItems")
    if facts.least("minItems") < least:
        reason = f"arrays of fewer than {least} items may be written and are refused"
        yield Break(f"{path}/minItems", "MIN_ITEMS_NARROWED", reason)
    longest = _longest(facts)
    if most is not None and (longest is None or longest > most):
        reason = f"arrays of more than {most} items may be written and are refused"
        yield Break(f"{path}/maxItems", "MAX_ITEMS_NARROWED", reason)


def _unique(_: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    longest = _longest(facts)
    few = longest is not None and longest <= 1
    if part.contents["uniqueItems"] and "array" in facts.types and not (facts.unique or few):
        reason = "arrays that hold a value twice may be written and are refused"
        yield Break(f"{path}/uniqueItems", "UNIQUE_ITEMS_ADDED", reason)


def _contains(proof: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if "array" not in facts.types:
        return
    wanted = part.part(part.contents["contains"])
    least, most = get(part, "minContains", 1), get(part, "maxContains")
    if least > 0 and not _holds(proof, facts, wanted, least):
        reason = "arrays without such an item may be written and are refused"
        yield Break(f"{path}/contains", "CONTAINS_NARROWED", reason)
    if most is not None and not _holds_at_most(proof, facts, wanted, most):
        reason = f"arrays with more than {most} such items may be written and are refused"
        yield Break(f"{path}/maxContains", "MAX_CONTAINS_NARROWED", reason)


def _holds(proof: Proof, facts: Facts, wanted: Place, least: int) -> bool:
    for part in facts.parts:
        contained = get(part, "contains")
        if contained is not None and get(part, "minContains", 1) >= least:
            written = parts_of([part.part(contained)])
            if proof.passes_inside(written, wanted):
                return True
    if facts.least("minItems") < least:
        return False
    known = max((len(items_of(part)[0]) for part in facts.parts), default=0)
    return all(
        proof.passes_inside(
            parts_of([part.part(item_at(part, index)) for part in facts.parts]), wanted
        )
        for index in range(known + 1)
    )


def _holds_at_most(proof: Proof, facts: Facts, wanted: Place, most: int) -> bool:
    longest = _longest(facts)
    if longest is not None and longest <= most:
        return True
    for part in facts.parts:
        contained, limit = get(part, "contains"), get(part, "maxContains")
        if contained is not None and limit is not None and limit <= most:
            written = parts_of([wanted])
            if proof.passes_inside(written, part.part(contained)):
                return True
    return False


def _unevaluated(proof: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    wanted: Any = part.contents["unevaluatedItems"]
    if "array" not in facts.types or wanted is True:
        return
    if not is_flat(part):
        reason = "what other keywords leave over cannot be compared"
        yield Break(f"{path}/unevaluatedItems", "NOT_COMPARABLE", reason)
    elif not _evaluates_all(part):
        first = len(items_of(part)[0])
        known = max((len(items_of(other)[0]) for other in facts.parts), default=0)
        for index in range(first, max(first, known) + 1):
            written = parts_of([other.part(item_at(other, index)) for other in facts.parts])
            yield from proof.refused_inside(written, part.part(wanted), f"{path}/unevaluatedItems")


def _evaluates_all(part: Place) -> bool:
    """Whether there is a schema for all further items, so that none is left over."""
    if isinstance(part.contents.get("items"), list):
        return "additionalItems" in part.contents
    return "items" in part.contents


def _longest(facts: Facts) -> int | None:
    """The greatest number of items, by the limit or because no further item is allowed."""
    limits = [len(prefix) for prefix, rest in map(items_of, facts.parts) if rest is False]
    most = facts.most("maxItems")
    return min([*limits, *([most] if most is not None else [])], default=None)


ARRAY_RULES: Final[dict[str, Rule]] = {
    "items": _items,
    "prefixItems": _items,
    "minItems": _counts,
    "maxItems": _counts,
    "uniqueItems": _unique,
    "contains": _contains,
    "unevaluatedItems": _unevaluated,
}
