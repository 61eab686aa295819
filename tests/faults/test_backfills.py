"""Exactly once, while backfills are on their way: the engine dies at each step, to the last one.

Both begin behind a part of the load and are backfilled under it: a table, whose new result is
handed over, and a stream, which gets its older part. In the end, both are made of every record,
once. Run by `make soak`: `make test` ends engines at these steps in tests/system.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import pytest
from tests.faults.flows import row_of, totals_of

from mainstem.cli.client import Client
from mainstem.config import load_project
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.testing.checker import (
    CommittedTopic,
    change,
    check_input,
    check_rows,
    fold,
    numbered,
)
from mainstem.testing.faults import Faults, faulty_stack
from mainstem.testing.load import Load
from mainstem.testing.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

SECONDS = 240
NUMBERS = "CREATE STREAM numbers (k STRING, seq BIGINT, id STRING) WITH (key = 'k')"
COPIED = "CREATE STREAM copied WITH (start = 'latest') AS SELECT k, seq, id FROM numbers"
TOTALS = """CREATE TABLE totals WITH (start = 'latest') AS
  SELECT k, count(*) AS n, sum(seq) AS total, max(seq) AS last FROM numbers GROUP BY k"""
HISTORY = 30_000
RATE = 5_000
WRITES = ("before_write", "after_token_read", "after_produce", "after_commit", "after_write")
STEPS = {
    "copied": (*WRITES, "backfill-held", "backfill-switched"),
    "totals": (
        *WRITES, "backfill-held", "backfill-switched", "take-over-begin", "take-over-written",
        "take-over-end",
    ),
}  # fmt: skip


@dataclass
class World:
    """A stack with a stream of numbers, and a load on it."""

    faults: Faults
    client: Client
    connection: Connection
    admin: Admin
    load: Load

    def backfilled_flow(self, name: str) -> str:
        """The flow of the next backfill of an object."""
        return f"{name}.{self.client.object(name)['generation'] + 1}"

    def has_read_all(self, name: str) -> bool:
        """True when the live flow has finished all input, and nothing is open behind it."""
        try:
            flow = next(f for f in self.client.status()["flows"] if f["flow"] == name)
            ends = [self.admin.end_offsets("numbers", committed=c) for c in (True, False)]
            made = [self.admin.end_offsets(name, committed=c) for c in (True, False)]
        except MainstemError:
            return False
        at = {int(p): offset for p, offset in flow.get("positions", {}).get("numbers", {}).items()}
        return ends == [at, at] and made[0] == made[1]

    def state(self, name: str) -> str | None:
        try:
            return str(self.client.backfill(name)["state"])
        except MainstemError:
            return None


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("backfills")
    (folder / "mainstem.toml").write_text('name = "backfills"\n[kafka]\npartitions = 4\n')
    with faulty_stack(load_project(folder)) as faults:
        endpoints = faults.stack.endpoints
        connection = Connection(endpoints.bootstrap_servers)
        client = Client(endpoints.gateway_url)
        client.sql(NUMBERS)
        world = World(faults, client, connection, Admin(connection), Load(connection, "numbers"))
        yield world
        world.load.close()
        world.admin.close()
        client.close()


@pytest.mark.parametrize(("name", "sql"), [("copied", COPIED), ("totals", TOTALS)])
def test_the_engine_dies_at_each_step_of_a_backfill(
    world: World, seed: int, summary: list[str], name: str, sql: str
) -> None:
    chance = random.Random(seed)
    world.load.burst(HISTORY)
    client, faults = world.client, world.faults
    client.sql(sql)
    with world.load.running():
        made = CommittedTopic(world.connection, name, numbered if name == "copied" else change)
        eventually(lambda: any(made.look().values()), SECONDS, what="the live flow has begun")
        flow = world.backfilled_flow(name)
        writes = [*WRITES]
        chance.shuffle(writes)
        steps = [*writes, *STEPS[name][len(WRITES) :]]
        faults.arm(steps[0], flow)
        told = eventually(lambda: begin(world, name), SECONDS, what="the backfill begins")
        assert told["records"] >= HISTORY
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            death = faults.await_crash("engine")
            if following is not None:
                faults.arm(following, flow)
            print(f"engine: died at {step} of {flow}")
            faults.await_restarting(death)
        eventually(lambda: world.state(name) == "done", SECONDS, what="the backfill is done")
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


def begin(world: World, name: str) -> dict[str, object] | None:
    """Starts the backfill; not before the flow has said where it began."""
    try:
        return world.client.start_backfill(name, {"since": "beginning", "rate": RATE})
    except MainstemError as error:
        if error.code != "BACKFILL_NOT_POSSIBLE":
            raise
        return None
