"""Exactly once for count windows and pipelines in Python, at each step of the writer.

Run by `make soak`; the large pipeline has the kinds of flow that `make test` strikes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pytest
from tests.faults.flows import ROWS, row_of, totals_of
from tests.faults.small import NUMBERS, SECONDS, SmallWorld, small_world

from mainstem.testing.checker import (
    CommittedTopic,
    change,
    check_copy,
    check_input,
    check_rows,
    fold,
    numbered,
)
from mainstem.testing.load import Numbered
from mainstem.testing.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

WINDOWS = """
CREATE STREAM tens AS
  SELECT k, count_window.start AS first, count(*) AS n, sum(seq) AS total, max(seq) AS last
  FROM numbers GROUP BY k, count_window(10) EMIT FINAL;
"""
FRAMES = """
from mainstem import stream, table
from pyspark.sql import DataFrame, functions as F

@stream(key="k")
def mirrored(numbers: DataFrame) -> DataFrame:
    return numbers.select("k", "seq", "id")

@table(primary_key="k")
def tally(numbers: DataFrame) -> DataFrame:
    sums = (F.count("*").alias("n"), F.sum("seq").alias("total"), F.max("seq").alias("last"))
    return numbers.groupBy("k").agg(*sums)
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallWorld]:
    files = {"all.sql": NUMBERS + WINDOWS, "frames.py": FRAMES}
    with small_world(tmp_path_factory.mktemp("flows"), files) as world:
        yield world


@pytest.mark.parametrize(
    ("flow", "rows"), [("tens", ROWS[0]), ("tally", ROWS[1]), ("mirrored", ROWS[0][1:])]
)
def test_the_engine_dies_at_each_step(
    world: SmallWorld, summary: list[str], flow: str, rows: tuple[tuple[str, ...], ...]
) -> None:
    with world.load.running():
        for steps in rows:
            world.strike(f"{flow}.1", steps)
    for name in ("tens", "tally", "mirrored"):
        eventually(lambda name=name: world.has_read_all(name), SECONDS, what=f"{name} has read all")
    sent = world.load.sent()
    look = CommittedTopic(world.connection, "numbers", numbered).look
    source = look()
    problems = check_input(sent, source)
    problems += check_copy(
        sent, source, CommittedTopic(world.connection, "mirrored", numbered).look()
    )
    changes = CommittedTopic(world.connection, "tally", change).look()
    tally = {row["k"]: row_of(row) for row in fold(changes).values()}
    problems += check_rows("the topic of tally", totals_of(source), tally)
    found = CommittedTopic(world.connection, "tens", change).look()
    windows = [row for _, row in chain.from_iterable(found.values()) if row is not None]
    tens = {(row["k"], row["first"]): row_of(row) for row in windows}
    problems += check_rows("the topic of tens", tens_of(source), tens)
    if len(windows) != len(tens):
        problems.append(f"{len(windows) - len(tens)} windows twice in tens")
    assert not problems, "\n".join(problems)
    summary.append(
        f"{flow}: {sum(map(len, rows))} engine kills, {len(sent.acknowledged):,} records"
        " acknowledged; none lost, none doubled"
    )


def tens_of(source: dict[int, list[Numbered]]) -> dict[tuple[str, int], tuple[int, int, int]]:
    """The full windows of ten records of a key, in the order of the log, once each."""
    keys: dict[str, list[int]] = {}
    for record in chain.from_iterable(source.values()):
        keys.setdefault(record.k, []).append(record.seq)
    return {
        (k, first + 1): (10, sum(numbers[first : first + 10]), numbers[first + 9])
        for k, numbers in keys.items()
        for first in range(0, len(numbers) - 9, 10)
    }
