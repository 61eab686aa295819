"""A clock that a test moves by hand."""

from __future__ import annotations


class ManualClock:
    """Stands still until `advance` is called."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Moves the clock forward."""
        self._now += seconds
