"""Records in quarantine, counted over time."""

from __future__ import annotations

from mainstem.gateway.quarantine_arrivals import MINUTES, Arrivals, Arrived

HOUR = 1_794_733_200
"""The beginning of one."""


class Clock:
    now = float(HOUR)

    def __call__(self) -> float:
        return self.now


def test_by_minute_and_by_hour() -> None:
    clock = Clock()
    arrivals = Arrivals(clock)
    clock.now = HOUR + 130.0
    for name, second in (("orders", -1), ("orders", 0), ("Clicks", 59), ("orders", 61)):
        arrivals.add(name, (HOUR + second) * 1000)
    assert arrivals.counts(1) == [
        Arrived(HOUR - 60, "orders", 1),
        Arrived(HOUR, "Clicks", 1),
        Arrived(HOUR, "orders", 1),
        Arrived(HOUR + 60, "orders", 1),
    ]
    assert arrivals.counts(60, "ORDERS") == [
        Arrived(HOUR - 3600, "orders", 1),
        Arrived(HOUR, "orders", 2),
    ]


def test_a_day_and_no_more_is_remembered() -> None:
    clock = Clock()
    arrivals = Arrivals(clock)
    arrivals.add("orders", (HOUR - MINUTES * 60) * 1000)
    assert arrivals.counts(1) == []
    for minute in range(3 * MINUTES):
        clock.now = HOUR + minute * 60.0
        arrivals.add("orders", int(clock.now) * 1000)
    assert len(arrivals.counts(1)) == len(arrivals._minutes) == MINUTES
    clock.now += 60 * MINUTES
    assert arrivals.counts(1) == []


def test_a_clock_that_is_fast_counts_as_now() -> None:
    clock = Clock()
    arrivals = Arrivals(clock)
    arrivals.add("orders", (HOUR + 10**9) * 1000)
    assert arrivals.counts(1) == [Arrived(HOUR, "orders", 1)]
