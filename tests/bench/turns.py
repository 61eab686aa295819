"""Ways to do the same, measured in turns, so that what else the machine does meets all of them."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cpu import cpu_seconds

ROUNDS = 3


@dataclass(frozen=True)
class Result:
    """Median events per CPU-second and per second of one way."""

    name: str
    per_cpu_second: float
    per_second: float


def in_turns(ways: Mapping[str, Callable[[], None]], events: int) -> list[Result]:
    """Each way several times over so many events; CPU is that of the whole process family."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, way in ways.items() if number % 2 else reversed(list(ways.items())):
            cpu, clock = cpu_seconds(os.getpid()), time.monotonic()
            way()
            used, took = cpu_seconds(os.getpid()) - cpu, time.monotonic() - clock
            if number:  # the first round only warms up
                found[name].append((events / used, events / took))
    return [
        Result(name, *map(statistics.median, zip(*f, strict=True))) for name, f in found.items()
    ]
