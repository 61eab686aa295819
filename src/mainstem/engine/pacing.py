"""How long flows rest between batches, so that many small ones do not take the whole machine.

A batch costs about the same however few records it holds. So when the flows together would keep
more batches running than there are cores, each of them rests a little, and its next batch holds
more. A flow that is behind does not rest, nor does one whose batches are long already, nor one that
says its own `trigger`: how fresh that one is was asked for.

Cores are those of the driver's machine: what a small batch costs, it costs there, however many
slots Spark has. A batch waits for others as well as it works, so flows that rest keep about half of
the cores busy.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_AROUND_SECONDS = 0.1
"""What Spark does for a batch before and behind our part of it."""
_LONGEST_SECONDS = 4.0
"""The longest time from batch to batch: what comes is seen within five seconds."""
_STEADY_SECONDS = 10.0
"""A flow with two batches in this time counts; one that has a batch now and then costs little."""
_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class _Seen:
    seconds: float
    at: float
    previous: float


class Pacer:
    """Of all flows of an engine. Safe to use from several threads."""

    def __init__(self, cores: int, now: Callable[[], float] = time.monotonic) -> None:
        self._cores = cores
        self._now = now
        self._seen: dict[str, _Seen] = {}
        self._lock = threading.Lock()

    def rest(self, flow: str, seconds: float, *, behind: bool, asked: bool = False) -> float:
        """How long a flow rests after a batch that took so long.

        `asked`: the flow says itself how often it has a batch.
        """
        with self._lock:
            now = self._now()
            took = seconds + _AROUND_SECONDS
            before = self._seen.get(flow)
            usual = took if before is None else before.seconds * (1 - _WEIGHT) + took * _WEIGHT
            self._seen[flow] = _Seen(usual, now, float("-inf") if before is None else before.at)
            self._seen = {f: s for f, s in self._seen.items() if now - s.at < _STEADY_SECONDS}
            steady = [s for s in self._seen.values() if now - s.previous < _STEADY_SECONDS]
            interval = _interval([seen.seconds for seen in steady], self._cores)
        if behind or asked or interval <= usual:
            return 0.0
        return max(0.0, min(interval, _LONGEST_SECONDS) - took)


def _interval(seconds: Sequence[float], cores: int) -> float:
    """The time from batch to batch with which as many run at once as there are cores.

    Flows whose batches take longer than that run without a rest: each has a core for itself.
    """
    longest_first = sorted(seconds, reverse=True)
    for alone in range(cores):
        others = longest_first[alone:]
        interval = sum(others) / (cores - alone)
        if not others or others[0] <= interval:
            return interval
    return _LONGEST_SECONDS
