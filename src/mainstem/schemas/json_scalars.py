"""Rules of JSON Schema for types, numbers and strings: does what is written keep to the limit?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from mainstem.schemas.breaks import Break
from mainstem.schemas.json_facts import (
    NUMBERS,
    Facts,
    atoms,
    get,
    has,
    key_of,
    lower_bounds,
    upper_bounds,
)
from mainstem.schemas.json_parse import Place
from mainstem.schemas.json_proof import Proof, Rule


def _type(_: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    missing = facts.types - atoms(part.contents["type"])
    if missing:
        names = ["number" if name == "fraction" else name for name in sorted(missing)]
        yield Break(
            f"{path}/type", "TYPE_NARROWED", f"the type {', '.join(names)} is written and refused"
        )


def _values(_: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    keyword = "const" if has(part, "const") else "enum"
    listed = [part.contents["const"]] if keyword == "const" else part.contents["enum"]
    allowed = {key_of(value) for value in listed}
    if facts.values is not None and all(key_of(value) in allowed for value in facts.values):
        return
    yield Break(
        f"{path}/{keyword}",
        f"{keyword.upper()}_NARROWED",
        "other values are written than those that are listed",
    )


def _bounds(_: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if not facts.types & NUMBERS:
        return
    for least in lower_bounds(part):
        if facts.lower is None or facts.lower < least:
            reason = f"numbers below {_number(least[0])} may be written and are refused"
            yield Break(f"{path}/minimum", "MINIMUM_NARROWED", reason)
    for most in upper_bounds(part):
        if facts.upper is None or facts.upper > most:
            reason = f"numbers above {_number(most[0])} may be written and are refused"
            yield Break(f"{path}/maximum", "MAXIMUM_NARROWED", reason)


def _multiple(_: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    step = Fraction(str(part.contents["multipleOf"]))
    steps = list(facts.multiples)
    if facts.types & NUMBERS == {"integer"}:
        steps.append(Fraction(1))
    if facts.types & NUMBERS and not any((known / step).denominator == 1 for known in steps):
        reason = f"numbers that are no multiples of {_number(step)} may be written"
        yield Break(f"{path}/multipleOf", "MULTIPLE_OF_NARROWED", reason)


def _lengths(_: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if "string" not in facts.types:
        return
    least, most = get(part, "minLength", 0), get(part, "maxLength")
    if facts.least("minLength") < least:
        reason = f"strings shorter than {least} may be written and are refused"
        yield Break(f"{path}/minLength", "MIN_LENGTH_NARROWED", reason)
    longest = facts.most("maxLength")
    if most is not None and (longest is None or longest > most):
        reason = f"strings longer than {most} may be written and are refused"
        yield Break(f"{path}/maxLength", "MAX_LENGTH_NARROWED", reason)


def _pattern(_: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if "string" in facts.types and part.contents["pattern"] not in facts.patterns:
        reason = "strings without this pattern may be written and are refused"
        yield Break(f"{path}/pattern", "PATTERN_NARROWED", reason)


def _format(_: Proof, facts: Facts, part: Place, path: str) -> Iterator[Break]:
    if "string" in facts.types and part.contents["format"] not in facts.formats:
        reason = "strings that are no {} may be written".format(part.contents["format"])
        yield Break(f"{path}/format", "FORMAT_NARROWED", reason)


def _number(value: Fraction) -> str:
    return str(int(value)) if value.denominator == 1 else str(float(value))


SCALAR_RULES: Final[dict[str, Rule]] = {
    "type": _type,
    "enum": _values,
    "const": _values,
    "minimum": _bounds,
    "maximum": _bounds,
    "exclusiveMinimum": _bounds,
    "exclusiveMaximum": _bounds,
    "multipleOf": _multiple,
    "minLength": _lengths,
    "maxLength": _lengths,
    "pattern": _pattern,
    "format": _format,
}
