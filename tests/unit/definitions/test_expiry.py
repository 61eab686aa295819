"""Which tables of windows have rows that expire, and by which column."""

from __future__ import annotations

import pytest

from mainstem.definitions.expiry import Expiry, expiry_of
from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse_one

HOUR = 3_600_000
STREAM = "CREATE STREAM s (k STRING, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 d')"


def made(text: str) -> Definition:
    definition: Definition = parse_one(text).definition  # type: ignore[union-attr]
    return definition


def expiry(text: str, stream: str = STREAM) -> Expiry | None:
    return expiry_of(made(text), [made(stream)])


@pytest.mark.parametrize(
    ("select", "column", "part"),
    [
        ("k, window.start AS x, count(*) AS n", "x", "start"),
        ("k, window.end, count(*) AS n", "end", "end"),
        ("k, window, count(*) AS n", "window", "window"),
        ("k, window(at, '1 hour') AS w, count(*) AS n", "w", "window"),
    ],
)
def test_the_column_that_says_when(select: str, column: str, part: str) -> None:
    text = f"SELECT {select} FROM s GROUP BY k, window(at, '1 hour')"
    found = expiry(f"CREATE TABLE t WITH (retention = '2 hours') AS {text}")
    assert found == Expiry(2 * HOUR, column, part, HOUR, HOUR)


def test_small_windows_are_not_looked_for_all_the_time() -> None:
    text = "SELECT window.start AS x, count(*) AS n FROM s GROUP BY window(at, '1 minute')"
    found = expiry(f"CREATE TABLE t WITH (retention = '1000 hours') AS {text}")
    assert found is not None
    assert found.step == 10 * HOUR


WINDOWED = "SELECT window.start AS x, count(*) AS n FROM s GROUP BY window(at, '1 hour')"


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        (f"CREATE TABLE t AS {WINDOWED}", STREAM),
        (f"CREATE TABLE t WITH (retention = 'forever') AS {WINDOWED}", STREAM),
        (
            f"CREATE TABLE t WITH (retention = '1 d') AS {WINDOWED}",
            "CREATE STREAM s (at TIMESTAMP)",
        ),
        (f"CREATE STREAM t WITH (retention = '1 d') AS {WINDOWED} EMIT FINAL", STREAM),
        (f"CREATE TABLE t WITH (retention = '1 d', latency = 'realtime') AS {WINDOWED}", STREAM),
        (
            "CREATE TABLE t WITH (retention = '1 d') AS SELECT k, count(*) AS n FROM s GROUP BY k",
            STREAM,
        ),
        (
            "CREATE TABLE t WITH (retention = '1 d') AS SELECT session_window.end AS x,"
            " count(*) AS n FROM s GROUP BY session_window(at, '1 hour') EMIT FINAL",
            STREAM,
        ),
        ("CREATE TABLE t (k STRING PRIMARY KEY) WITH (retention = '1 d')", STREAM),
    ],
)
def test_others_keep_their_rows(text: str, stream: str) -> None:
    assert expiry(text, stream) is None
