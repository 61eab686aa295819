"""How fresh an answer is: when it was asked for, and per table how far in its topic it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from mainstem.views.observe import lag
from mainstem.views.times import iso_utc
from mainstem.vocabulary import Clock, Offsets, SystemClock

EndsOf = Callable[[str], Offsets | None]
"""The last known ends of a view's topic, by the view's name; None when not known."""


class Freshness:
    """Says it of every answer."""

    def __init__(self, ends_of: EndsOf, clock: Clock | None = None) -> None:
        self._ends_of = ends_of
        self._clock = clock or SystemClock()

    def now(self) -> str:
        """The time of an answer: to be taken before PostgreSQL is asked."""
        return iso_utc(self._clock.now())

    def say(self, as_of: str, positions: Mapping[str, Mapping[str, int]]) -> str:
        """JSON object: the time, and per table its offsets (the next to be read) and its lag."""
        tables = {}
        for name, offsets in positions.items():
            ends = self._ends_of(name)
            at = {int(p): o for p, o in offsets.items()}
            behind = None if ends is None else lag(at, ends)
            tables[name] = {"offsets": offsets, "lag_records": behind}
        return json.dumps({"as_of": as_of, "tables": tables}, separators=(",", ":"))
