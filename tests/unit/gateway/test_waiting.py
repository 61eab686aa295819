"""EXPLAIN says why a window has not closed."""

from __future__ import annotations

from typing import Any

from mainstem.definitions.late import window_steps
from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse_one
from mainstem.gateway.waiting import why_open

NINE = 1_767_258_000_000
"""2026-01-01T09:00:00Z."""
MINUTE = 60_000
NOW = 1_800_000_000.0


def made(text: str) -> Definition:
    definition: Definition = parse_one(text).definition  # type: ignore[union-attr]
    return definition


def stream(name: str, more: str = "") -> Definition:
    options = f"event_time = 'at', watermark = '10 minutes'{more}"
    return made(f"CREATE STREAM {name} (id INT, at TIMESTAMP) WITH ({options})")


def seen(newest: int, silent: int) -> dict[str, Any]:
    return {
        "event_time": newest,
        "watermark": newest - 10 * MINUTE,
        "arrived_at": NOW - silent,
    }


HOURLY = made(
    "CREATE TABLE t AS SELECT window.start AS x, count(*) AS n FROM a GROUP BY window(at, '1 hour')"
)


def test_one_stream() -> None:
    status = {
        "watermark": "2026-01-01T09:05:00.000Z",
        "streams": {"a": seen(NINE + 15 * MINUTE, 35)},
    }
    first, about, following = why_open(HOURLY, [stream("a")], status, NOW)
    assert "09:05:00.000Z" in first
    assert "09:15:00.000Z" in about
    assert "silent for 35 s" in about
    assert "nothing closes (no idle_timeout)" in about
    assert "holds" not in about
    assert "2026-01-01T09:00:00.000Z to 2026-01-01T10:00:00.000Z" in following
    assert "2026-01-01T10:10:00.000Z in a" in following


def test_the_idle_time_out() -> None:
    source = stream("a", ", idle_timeout = '1 minute'")
    for silent, words in ((35, "after 1 minute of silence"), (60, "goes on with the clock")):
        status = {
            "watermark": "2026-01-01T09:05:00Z",
            "streams": {"a": seen(NINE + 15 * MINUTE, silent)},
        }
        assert why_open(HOURLY, [source], status, NOW)[1].endswith(words)


def test_the_slowest_of_two_streams_holds_the_watermark() -> None:
    joined = made(
        "CREATE STREAM t AS SELECT a.id FROM a LEFT JOIN b"
        " ON a.id = b.id AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR"
    )
    inputs = [stream("a"), stream("b")]
    status = {
        "watermark": "2026-01-01T09:00:00Z",
        "streams": {"a": seen(NINE + 10 * MINUTE, 500), "b": seen(NINE + 90 * MINUTE, 1)},
    }
    told = why_open(joined, inputs, status, NOW)
    assert [("holds" in line) for line in told] == [False, True, False]
    del status["streams"]["b"]  # type: ignore[attr-defined]
    assert [("holds" in line) for line in why_open(joined, inputs, status, NOW)] == [
        False,
        False,
        True,
    ]


def test_before_the_first_record_and_without_windows() -> None:
    told = why_open(HOURLY, [stream("a")], {"watermark": "1970-01-01T00:00:00.000Z"}, NOW)
    assert told[0].startswith("no watermark yet")
    assert "no record" in told[1]
    plain = made("CREATE STREAM t AS SELECT id FROM a")
    assert why_open(plain, [stream("a")], {}, NOW) == []
    untimed = made("CREATE STREAM a (id INT, at TIMESTAMP)")
    assert why_open(HOURLY, [untimed], {}, NOW) == []


def test_the_steps_of_windows() -> None:
    sliding = made(
        "CREATE TABLE t AS SELECT window.start AS x, count(*) AS n FROM a"
        " GROUP BY window(at, '10 minutes', '5 minutes', '1 minute')"
    )
    steps = window_steps(sliding, [stream("a")])
    assert steps is not None
    assert (steps.size, steps.slide, steps.offset) == (10 * MINUTE, 5 * MINUTE, MINUTE)
    assert steps.next_end(NINE) == NINE + MINUTE
    assert steps.next_end(NINE + MINUTE) == NINE + 6 * MINUTE
    monthly = made(
        "CREATE TABLE t AS SELECT window.start AS x, count(*) AS n FROM a"
        " GROUP BY window(at, '2 weeks')"
    )
    assert window_steps(monthly, [stream("a")]) is None
