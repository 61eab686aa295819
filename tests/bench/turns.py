"""Ways to do the same, measured in turns: what each costs when it has been running for a while.

Java interprets code until it has run often, so the first millions of events cost several times what
later ones do, and whoever comes first pays for what all share. So each way warms up alike before
anything is measured. After that all take turns, so that what else the machine does meets all of
them, and of each run only what follows its first batch is counted: not how a query starts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cpu import Busy
from pyspark.sql.streaming.query import StreamingQuery

WARM_UPS = 2
ROUNDS = 5


@dataclass(frozen=True)
class Used:
    """What a run used for so many events."""

    events: int
    cpu: float
    seconds: float


@dataclass(frozen=True)
class Result:
    """The rounds of one way."""

    name: str
    rounds: Sequence[Used]

    @property
    def per_cpu_second(self) -> float:
        """Events; the median."""
        return statistics.median(used.events / used.cpu for used in self.rounds)

    @property
    def per_second(self) -> float:
        """Events; the median."""
        return statistics.median(used.events / used.seconds for used in self.rounds)

    def shares(self, base: Result) -> list[float]:
        """Events per CPU-second of each round, as a share of another way's in the same round."""
        pairs = zip(self.rounds, base.rounds, strict=True)
        return [(one.events / one.cpu) / (other.events / other.cpu) for one, other in pairs]


def in_turns(ways: Mapping[str, Callable[[], Used]]) -> list[Result]:
    """Each way several times; the rounds that only warm up are left out."""
    found: dict[str, list[Used]] = {name: [] for name in ways}
    for number in range(WARM_UPS + ROUNDS):
        for name, way in ways.items() if number % 2 else reversed(list(ways.items())):
            used = way()
            if number >= WARM_UPS:
                found[name].append(used)
    return [Result(name, rounds) for name, rounds in found.items()]


def used_by(query: StreamingQuery) -> Used:
    """What the process family uses from the end of the query's first batch to that of its last."""
    while query.isActive and query.lastProgress is None:
        time.sleep(0.02)
    busy, clock = Busy(), time.monotonic()
    query.awaitTermination()
    used, took = busy.own(), time.monotonic() - clock
    return Used(sum(batch["numInputRows"] for batch in query.recentProgress[1:]), used, took)
