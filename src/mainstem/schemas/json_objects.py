"""Rules of JSON Schema for objects: open and closed content, required properties, dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mainstem.schemas.breaks import Break
from mainstem.schemas.json_facts import (
    Facts,
    additional,
    get,
    has,
    is_flat,
    joined,
    matches,
    parts_of,
    property_at,
)
from mainstem.schemas.json_parse import Place
from mainstem.schemas.json_proof import Proof, Rule
from mainstem.schemas.text import pointer


def _properties(proof: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if "object" not in facts.types:
        return
    for name, wanted in part.contents["properties"].items():
        written = parts_of(property_at(facts.parts, name))
        at = f"{path}/properties{pointer(name)}"
        found = proof.refused_inside(written, part.part(wanted), at)
        if found and not written:
            reason = f'"{name}" could have any value before, for the content was open'
            yield Break(at, "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", reason)
        else:
            yield from found


def _patterns(proof: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if "object" not in facts.types:
        return
    for pattern, contents in part.contents["patternProperties"].items():
        wanted, at = part.part(contents), f"{path}/patternProperties{pointer(pattern)}"
        for name in _names(facts):
            if matches(pattern, name) is not False:
                written = parts_of(property_at(facts.parts, name))
                yield from proof.refused_inside(written, wanted, at)
        if not proof.passes_inside((), wanted) and not any(
            _unnamed_pass(proof, other, wanted, pattern) for other in facts.parts
        ):
            reason = "properties with such names could have other values before"
            yield Break(at, "PATTERN_PROPERTY_NARROWED", reason)


def _unnamed_pass(proof: Proof, part: Place, wanted: Place, pattern: str) -> bool:
    """Whether what one part allows under names with a pattern, apart from named ones, passes."""
    patterns: dict[str, Any] = get(part, "patternProperties", {})
    cases = [patterns[pattern]] if pattern in patterns else [*patterns.values(), additional(part)]
    return all(proof.passes_inside(parts_of([part.part(case)]), wanted) for case in cases)


def _additional(proof: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    contents = part.contents["additionalProperties"]
    yield from _others(proof, facts, part, contents, f"{path}/additionalProperties")


def _unevaluated(proof: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    contents = part.contents["unevaluatedProperties"]
    if "object" not in facts.types or contents is True or "additionalProperties" in part.contents:
        return
    if is_flat(part):
        yield from _others(proof, facts, part, contents, f"{path}/unevaluatedProperties")
    else:
        reason = "what other keywords leave over cannot be compared"
        yield Break(f"{path}/unevaluatedProperties", "NOT_COMPARABLE", reason)


def _others(proof: Proof, facts: Facts, part: Place, contents: Any, path: str) -> Iterator[Break]:
    """Properties that the reader's part does not name must pass one schema."""
    if "object" not in facts.types or contents is True:
        return
    wanted = part.part(contents)
    patterns = get(part, "patternProperties", {})
    for name in _names(facts):
        named = name in get(part, "properties", {})
        if named or any(matches(pattern, name) for pattern in patterns):
            continue
        found = proof.refused_inside(parts_of(property_at(facts.parts, name)), wanted, path)
        if found and contents is False:
            reason = f'"{name}" may be written and is refused, for the content is closed'
            yield Break(path, "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", reason)
        else:
            yield from found
    for other in facts.parts:
        theirs = get(other, "patternProperties", {})
        cases = [schema for pattern, schema in theirs.items() if pattern not in patterns]
        cases.append(additional(other))
        if all(proof.passes_inside(parts_of([other.part(case)]), wanted) for case in cases):
            return
    kind = (
        "ADDITIONAL_PROPERTIES_REMOVED" if contents is False else "ADDITIONAL_PROPERTIES_NARROWED"
    )
    yield Break(path, kind, "properties that are not named may be written and are refused")


def _required(_: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if "object" not in facts.types or not isinstance(part.contents["required"], list):
        return
    for name in part.contents["required"]:
        if name not in facts.required:
            reason = f'"{name}" is required and may not be written'
            yield Break(f"{path}/required", "REQUIRED_ATTRIBUTE_ADDED", reason)


def _counts(_: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if "object" not in facts.types:
        return
    least, most = get(part, "minProperties", 0), get(part, "maxProperties")
    if max(facts.least("minProperties"), len(facts.required)) < least:
        reason = f"objects of fewer than {least} properties may be written and are refused"
        yield Break(f"{path}/minProperties", "MIN_PROPERTIES_NARROWED", reason)
    if most is None:
        return
    closed = [names for names in (_closed(other) for other in facts.parts) if names is not None]
    limits = [*map(len, closed), *facts.each("maxProperties")]
    if min(limits, default=most + 1) > most:
        reason = f"objects of more than {most} properties may be written and are refused"
        yield Break(f"{path}/maxProperties", "MAX_PROPERTIES_NARROWED", reason)


def _property_names(proof: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if "object" not in facts.types:
        return
    written = [proof.derive(part, {"type": "string"}, "names")]
    for other in facts.parts:
        if has(other, "propertyNames"):
            written.append(other.part(other.contents["propertyNames"]))
        if (names := _closed(other)) is not None:
            written.append(proof.derive(other, {"enum": sorted(names)}, "closed"))
    wanted = part.part(part.contents["propertyNames"])
    yield from proof.refused_inside(parts_of(written), wanted, f"{path}/propertyNames")


def _dependencies(proof: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if "object" not in facts.types:
        return
    for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
        for name, wanted in get(part, keyword, {}).items():
            if parts_of(property_at(facts.parts, name)) is None:
                continue
            at = f"{path}/{keyword}{pointer(name)}"
            present = proof.derive(part, {"required": [name]}, "present", name)
            written = joined(facts.parts, [present, *_follow_from(facts, name)])
            if not isinstance(wanted, list):
                yield from proof.refused(written, part.part(wanted), at)
            elif written is not None:
                listed = {item for names in _lists(facts, name) for item in names}
                missing = [n for n in wanted if n not in Facts(written).required | listed]
                if missing:
                    reason = f'"{name}" may be written without {", ".join(missing)}'
                    yield Break(at, "DEPENDENCY_NARROWED", reason)


def _follow_from(facts: Facts, name: str) -> Iterator[Place]:
    """What else holds of what is written if it has a property."""
    for part in facts.parts:
        for keyword in ("dependencies", "dependentSchemas"):
            contents = get(part, keyword, {}).get(name)
            if isinstance(contents, dict | bool):
                yield part.part(contents)


def _lists(facts: Facts, name: str) -> Iterator[list[str]]:
    for keyword in ("dependencies", "dependentRequired"):
        for lists in facts.each(keyword):
            if isinstance(lists.get(name), list):
                yield lists[name]


def _names(facts: Facts) -> list[str]:
    """Names that what is written may have and that are spelt out, in one order."""
    named = {name for names in facts.each("properties") for name in names}
    return sorted(named | facts.required)


def _closed(part: Place) -> set[str] | None:
    """All names that can be there, if only named ones can."""
    if additional(part) is not False or get(part, "patternProperties"):
        return None
    return {name for name, schema in get(part, "properties", {}).items() if schema is not False}


OBJECT_RULES: Final[dict[str, Rule]] = {
    "properties": _properties,
    "patternProperties": _patterns,
    "additionalProperties": _additional,
    "unevaluatedProperties": _unevaluated,
    "required": _required,
    "minProperties": _counts,
    "maxProperties": _counts,
    "propertyNames": _property_names,
    "dependencies": _dependencies,
    "dependentRequired": _dependencies,
    "dependentSchemas": _dependencies,
}
