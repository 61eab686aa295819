"""Backfills as steps of the catalog: generations, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mainstem.catalog.backfill import (
    appended,
    begun,
    beside,
    handed_over,
    topic_beside,
    turned,
    unread,
)
from mainstem.catalog.entry import BackfillState, Entry
from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError


def made(text: str) -> Definition:
    definition: Definition = parse_one(text).definition  # type: ignore[union-attr]
    return definition


STREAM = made("CREATE STREAM s (k STRING, n INT)")
WILD = made("CREATE STREAM w FROM TOPICS 'a.*' (k STRING)")
TABLE = Entry(made("CREATE TABLE t AS SELECT k, count(*) AS n FROM s GROUP BY k"), "f", 5)


def test_a_backfill_becomes_the_next_generation_and_goes_on_with_the_view() -> None:
    entry = begun(TABLE, [STREAM], rate=100)
    assert (entry.generation, entry.served_generation, entry.newest_generation) == (5, 5, 6)
    assert entry.backfill is not None
    assert (entry.backfill.since, entry.backfill.start) == ("beginning", "earliest")
    done = handed_over(entry)
    assert (done.generation, done.served_generation) == (6, 5)
    assert done.backfill is not None and done.backfill.state is BackfillState.DONE
    again = handed_over(begun(done, [STREAM]))
    assert (again.generation, again.served_generation) == (7, 5)


def test_the_generation_of_a_cancelled_one_is_never_used_again() -> None:
    cancelled = turned(begun(TABLE, [STREAM]), BackfillState.CANCELLED)
    second = begun(cancelled, [STREAM])
    assert second.backfill is not None and second.backfill.generation == 7


def test_it_runs_beside_the_table_with_the_same_text() -> None:
    entry = begun(TABLE, [STREAM], since="offsets", start='{"s": {"0": 3}}')
    staged = beside(entry, partitions=4)
    assert staged.flow_id == "t.6"
    assert staged.definition.topic == topic_beside("t", 6) == "_mainstem.backfill.t.6"
    assert staged.definition.start == '{"s": {"0": 3}}'
    assert staged.definition.partitions == 4
    assert staged.definition.query == entry.definition.query
    assert not staged.paused
    assert beside(turned(entry, BackfillState.PAUSED), 4).paused


def test_a_stream_is_given_what_lies_before_its_own() -> None:
    stream = replace(TABLE, definition=made("CREATE STREAM x AS SELECT n FROM s"))
    start, end = '{"s": {"0": 3}}', '{"s": {"0": 9}}'
    entry = begun(stream, [STREAM], since="offsets", start=start, end=end)
    assert entry.reaches == start
    staged = beside(entry, partitions=2)
    assert (staged.flow_id, staged.definition.topic) == ("x.6", "x")
    assert (staged.definition.start, staged.definition.until) == (start, end)
    done = appended(entry)
    assert (done.generation, done.served_generation, done.reaches) == (5, 5, start)
    assert done.backfill is not None and done.backfill.state is BackfillState.DONE
    # what was taken once is never taken again, however it ended
    assert turned(entry, BackfillState.CANCELLED).reaches == start


@pytest.mark.parametrize(
    ("wanted", "begin", "taken", "expected"),
    [
        (0, 0, 9, (0, 9)),
        (5, 0, 9, (5, 9)),
        (9, 0, 9, (9, 9)),
        (12, 0, 9, (9, 9)),
        (0, 4, 9, (4, 9)),
        (0, 10, 9, (10, 10)),  # what was not read is not in the log any more
        (0, 0, None, (0, 0)),  # a partition that came later was read from its beginning
    ],
)
def test_what_a_stream_has_not_read(
    wanted: int, begin: int, taken: int | None, expected: tuple[int, int]
) -> None:
    known = {} if taken is None else {"s": {1: taken}}
    start, end = unread({"s": {1: wanted}}, {"s": {1: begin}}, known)
    assert (start, end) == ({"s": {1: expected[0]}}, {"s": {1: expected[1]}})


def test_one_at_a_time() -> None:
    with pytest.raises(MainstemError, match="is on its way"):
        begun(begun(TABLE, [STREAM]), [STREAM])


def test_what_has_ended_cannot_be_turned() -> None:
    for entry in (TABLE, handed_over(begun(TABLE, [STREAM]))):
        with pytest.raises(MainstemError, match="no backfill of t"):
            turned(entry, BackfillState.PAUSED)


def test_a_rate_is_kept_unless_another_is_given() -> None:
    entry = begun(TABLE, [STREAM], rate=100)
    for rate, expected in ((None, 100), (7, 7)):
        resumed = turned(entry, BackfillState.RUNNING, rate)
        assert resumed.backfill is not None and resumed.backfill.rate == expected


@pytest.mark.parametrize(
    ("text", "source", "start", "reason"),
    [
        (
            "CREATE STREAM x AS SELECT k, count(*) AS n FROM s"
            " GROUP BY k, window(_timestamp, '1 minute') EMIT FINAL",
            STREAM,
            "earliest",
            "rows come of several records",
        ),
        ("CREATE STREAM x AS SELECT DISTINCT k FROM s", STREAM, "earliest", "several records"),
        ("CREATE STREAM x AS SELECT k FROM w", WILD, "earliest", "topics come and go"),
        (
            "CREATE STREAM x AS SELECT k FROM s UNION ALL SELECT k FROM s",
            STREAM,
            "earliest",
            "reads s twice",
        ),
        ("CREATE STREAM x AS SELECT k FROM t", TABLE.definition, "earliest", "changes to tables"),
        ("CREATE TABLE x (k STRING, PRIMARY KEY (k))", None, "earliest", "no flow"),
        (
            "CREATE TABLE x AS SELECT k, n + 1 AS n FROM t",
            TABLE.definition,
            "earliest",
            "reads tables only",
        ),
        (
            "CREATE TABLE x WITH (latency = 'realtime') AS SELECT k, max(n) AS n FROM s GROUP BY k",
            STREAM,
            "earliest",
            "real time",
        ),
        (
            "CREATE TABLE x AS SELECT k, count(*) AS n FROM w GROUP BY k",
            WILD,
            '{"a.b": {"0": 1}}',
            "wildcard",
        ),
    ],
)
def test_what_cannot_be_backfilled(
    text: str, source: Definition | None, start: str, reason: str
) -> None:
    entry = replace(TABLE, definition=made(text))
    with pytest.raises(MainstemError, match=f"x cannot be backfilled: .*{reason}"):
        begun(entry, [] if source is None else [source], start=start)
