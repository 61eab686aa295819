"""Which flows can say what windows a late record missed."""

from __future__ import annotations

import pytest

from mainstem.definitions.late import late_queries
from mainstem.definitions.model import ApplyLate, Definition
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError

COLUMNS = "CREATE STREAM s (k STRING, at TIMESTAMP, n INT)"
STREAM = f"{COLUMNS} WITH (event_time = 'at', watermark = '1 d')"


def made(text: str) -> Definition:
    definition: Definition = parse_one(text).definition  # type: ignore[union-attr]
    return definition


def asked(flow: str, stream: str = STREAM) -> tuple[str, str] | None:
    found = late_queries(made(flow), [made(stream)])
    return None if found is None else (found.belongs.text, found.groups.text)


def test_the_queries_keep_the_text() -> None:
    flow = """CREATE TABLE t AS SELECT k, window.start AS x, sum(n) AS n FROM s AS q
      WHERE n > 0 GROUP BY k, window(q.at, '1 hour', '5 minutes') HAVING sum(n) > 3"""
    assert asked(flow) == (
        "SELECT window(q.at, '1 hour', '5 minutes') AS _mainstem_window, _mainstem_record "
        "FROM s AS q\n      WHERE n > 0 ",
        "SELECT k, window.start AS x, sum(n) AS n , (sum(n) > 3) AS _mainstem_kept_0 "
        ", window(q.at, '1 hour', '5 minutes') AS _mainstem_window FROM s AS q\n"
        "      WHERE n > 0 GROUP BY k, window(q.at, '1 hour', '5 minutes')",
    )


@pytest.mark.parametrize(
    "select",
    [
        "window.start AS x, count(*) AS n FROM s GROUP BY window(at, '1 hour')",
        "window.start AS x, count(*) AS n FROM s GROUP BY window(_event_time, '1 hour')",
        "window(at, '1 hour') AS w, count(*) AS n FROM s GROUP BY w",
        "WINDOW(`AT`, '1 hour') AS w, count(*) AS n FROM s GROUP BY WINDOW(`AT`, '1 hour')",
    ],
)
def test_windows_over_the_event_time(select: str) -> None:
    assert asked(f"CREATE TABLE t AS SELECT {select}")


@pytest.mark.parametrize(
    "flow",
    [
        "CREATE STREAM t AS SELECT k FROM s",
        "CREATE TABLE t AS SELECT k, count(*) AS n FROM s GROUP BY k",
        "CREATE TABLE t AS SELECT at, window.start AS x, count(*) AS n FROM s"
        " GROUP BY at, window(at, '1 hour')",
        "CREATE TABLE t AS SELECT window.start AS x, count(*) AS n FROM s"
        " GROUP BY window(at + INTERVAL 1 DAY, '1 hour')",
        "CREATE TABLE t AS SELECT session_window.start AS x, count(*) AS n FROM s"
        " GROUP BY session_window(at, '1 hour') EMIT FINAL",
        "CREATE TABLE t AS SELECT window.start AS x, max(n) AS n FROM"
        " (SELECT window AS w, count(*) AS n FROM s GROUP BY window(at, '1 hour'))"
        " GROUP BY window(w, '1 day') EMIT FINAL",
        "CREATE TABLE t AS SELECT window.start AS x, count(*) AS n FROM"
        " (SELECT at FROM s UNION ALL SELECT at FROM s) GROUP BY window(at, '1 hour')",
        "CREATE TABLE t WITH (latency = 'realtime') AS SELECT window.start AS x, count(*) AS n"
        " FROM s GROUP BY window(at, '1 hour')",
    ],
)
def test_others_cannot_say(flow: str) -> None:
    assert asked(flow) is None


@pytest.mark.parametrize(
    "stream",
    [
        f"{COLUMNS} WITH (event_time = 'at')",
        f"{COLUMNS} WITH (watermark = '1 d')",
        f"{COLUMNS} WITH (event_time = 'current_timestamp()', watermark = '1 d')",
    ],
)
def test_streams_without_such_a_time_have_nothing_late(stream: str) -> None:
    select = "SELECT window.start AS x, count(*) AS n FROM s GROUP BY window(at, '1 hour')"
    assert asked(f"CREATE TABLE t AS {select}", stream) is None


def test_the_statement() -> None:
    statement = parse_one("apply late shop.visits;")
    assert isinstance(statement, ApplyLate)
    assert (statement.name, str(statement.location)) == ("shop.visits", "<sql>:1:1")
    for text in ("APPLY t", "APPLY LATE", "APPLY LATE t u"):
        with pytest.raises(MainstemError) as caught:
            parse_one(text)
        assert caught.value.code == "SQL_SYNTAX"
