"""Exactly once, while backfills are on their way: the engine dies at each step, to the last one.

Both begin behind a part of the load and are backfilled under it: a table, whose new result is
handed over, and a stream, which gets its older part. In the end, both are made of every record,
once. Run by `make soak`: `make test` ends engines at these steps in tests/system.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

import pytest
from tests.faults.flows import row_of, totals_of
from tests.faults.small import NUMBERS, SECONDS, SmallWorld, small_world

from mainstem.errors import MainstemError
from mainstem.testing.checker import (
    CommittedTopic,
    change,
    check_input,
    check_rows,
    fold,
    numbered,
)
from mainstem.testing.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

COPIED = "CREATE STREAM copied WITH (start = 'latest') AS SELECT k, seq, id FROM numbers"
TOTALS = """CREATE TABLE totals WITH (start = 'latest') AS
  SELECT k, count(*) AS n, sum(seq) AS total, max(seq) AS last FROM numbers GROUP BY k"""
HISTORY = 30_000
RATE = 5_000
HANDED_OVER = ("backfill-held", "backfill-switched")
TAKEN_OVER = ("take-over-begin", "take-over-written", "take-over-end")
WRITES = ("before_write", "after_token_read", "after_produce", "after_commit", "after_write")
STEPS = {
    "copied": (*WRITES, *HANDED_OVER),
    # a backfill writes as every flow of its kind does, and those are struck elsewhere
    "totals": ("after_produce", "after_commit", *HANDED_OVER, *TAKEN_OVER),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallWorld]:
    with small_world(tmp_path_factory.mktemp("backfills"), {"all.sql": NUMBERS}) as world:
        yield world


@pytest.mark.parametrize(("name", "sql"), [("copied", COPIED), ("totals", TOTALS)])
def test_the_engine_dies_at_each_step_of_a_backfill(
    world: SmallWorld, summary: list[str], name: str, sql: str
) -> None:
    world.load.burst(HISTORY)
    client, faults = world.client, world.faults
    client.sql(sql)
    with world.load.running():
        made = CommittedTopic(world.connection, name, numbered if name == "copied" else change)
        eventually(lambda: any(made.look().values()), SECONDS, what="the live flow has begun")
        flow = f"{name}.{client.object(name)['generation'] + 1}"
        steps = STEPS[name]
        faults.arm(steps[0], flow)
        told = eventually(lambda: begin(world, name), SECONDS, what="the backfill begins")
        assert told["records"] >= HISTORY
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            death = faults.await_crash("engine")
            if following is not None:
                faults.arm(following, flow)
            print(f"engine: died at {step} of {flow}")
            faults.await_restarting(death)
        eventually(lambda: state(world, name) == "done", SECONDS, what="the backfill is done")
    eventually(lambda: world.has_read_all(name), SECONDS, what="everything is through")
    sent = world.load.sent()
    source = CommittedTopic(world.connection, "numbers", numbered).look()
    problems = check_input(sent, source)
    if name == "copied":
        ids = Counter(record.id for record in chain.from_iterable(made.look().values()))
        expected = {record.id: 1 for record in chain.from_iterable(source.values())}
        problems += check_rows("copied", expected, ids)
    else:
        rows = {row["k"]: row_of(row) for row in fold(made.look()).values()}
        problems += check_rows("the topic of totals", totals_of(source), rows)
    assert not problems, "\n".join(problems)
    summary.append(
        f"backfill of {name}: {len(steps)} engine kills, {len(sent.acknowledged):,} records"
        " acknowledged; none lost, none doubled"
    )


def begin(world: SmallWorld, name: str) -> dict[str, object] | None:
    """Starts the backfill; not before the flow has said where it began."""
    try:
        return world.client.start_backfill(name, {"since": "beginning", "rate": RATE})
    except MainstemError as error:
        if error.code != "BACKFILL_NOT_POSSIBLE":
            raise
        return None


def state(world: SmallWorld, name: str) -> str | None:
    """How far the backfill is; None while the gateway cannot be asked."""
    try:
        return str(world.client.backfill(name)["state"])
    except MainstemError:
        return None
