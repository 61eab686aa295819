"""As few records as give a row, found by leaving some out and asking again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

P = TypeVar("P")

_DIGITS = 17
"""Of a floating point number; one with more is a decimal."""


def least(
    places: Sequence[P],
    gives: Callable[[Sequence[P]], bool],
    may_try: Callable[[], bool],
) -> tuple[list[P], bool]:
    """Those that cannot be left out, and whether there was time to try all."""
    kept = list(places)
    size = max(1, len(kept) // 2)
    while True:
        before = len(kept)
        at = 0
        while at < len(kept):
            if not may_try():
                return kept, False
            fewer = kept[:at] + kept[at + size :]
            if gives(fewer):
                kept = fewer
            else:
                at += size
        if size > 1:
            size = max(1, min(size, len(kept)) // 2)
        elif len(kept) == before:
            return kept, True


def same_row(one: str, other: str) -> bool:
    """True for JSON with the same values; sums of floating point depend on their order."""
    return one == other or _same(_read(one), _read(other))


def _read(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def _same(one: Any, other: Any) -> bool:
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
        case list(), list():
            return len(one) == len(other) and all(map(_same, one, other))
        case Decimal(), Decimal() if max(map(_digits, (one, other))) <= _DIGITS:
            return math.isclose(one, other, rel_tol=1e-13)
        case _:
            return bool(one == other)


def _digits(number: Decimal) -> int:
    return len(number.as_tuple().digits)
