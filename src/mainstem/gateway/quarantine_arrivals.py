"""How many records were put into quarantine in each minute of the last day, by object.

Only counts are kept: at most so many as a day has minutes, for each object that refused something.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

MINUTES = 24 * 60
"""So many minutes are remembered, the one that is on its way among them."""


class Arrived(NamedTuple):
    """Records of one object within one step of time."""

    at: int
    """When the step begins, in seconds since the epoch."""
    object: str
    records: int


class Arrivals:
    """Counts records as they come. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._minutes: dict[int, Counter[str]] = {}
        self._lock = threading.Lock()

    def add(self, name: str, timestamp: int) -> None:
        """A record that an object refused, at that time in milliseconds since the epoch."""
        now = int(self._clock()) // 60
        minute = min(timestamp // 60_000, now)  # other clocks may be fast
        if minute <= now - MINUTES:
            return
        with self._lock:
            self._minutes.setdefault(minute, Counter())[name] += 1
            if len(self._minutes) > MINUTES:
                for old in [m for m in self._minutes if m <= now - MINUTES]:
                    del self._minutes[old]

    def counts(self, minutes: int, name: str | None = None) -> list[Arrived]:
        """The last day in steps of so many minutes, oldest first; empty steps are left out."""
        first = int(self._clock()) // 60 - MINUTES + 1
        found: Counter[tuple[int, str]] = Counter()
        with self._lock:
            for minute, counts in self._minutes.items():
                if minute >= first:
                    for object_, count in counts.items():
                        if name is None or object_.lower() == name.lower():
                            found[minute // minutes * minutes * 60, object_] += count
        return [Arrived(at, object_, count) for (at, object_), count in sorted(found.items())]
