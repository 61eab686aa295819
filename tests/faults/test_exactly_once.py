"""Exactly once, proven on the whole stack: processes die under load, nothing is lost or doubled.

One pipeline, one check, many disasters. MAINSTEM_SEED repeats a run's random choices.
MAINSTEM_KILLS says how often the engine dies at least (30 in `make soak`); fewer leave out some of
the rows of steps below, never a whole step.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pytest
from tests.faults.flows import (
    COPIED,
    FLOWS,
    FULL,
    KILLS,
    RATE,
    READS,
    ROWS,
    SUMMARY,
    TOTALS,
    make_project,
    minutes_of,
    pairs_of,
    row_of,
    summary_of,
    totals_of,
)

from mainstem.cli.pipeline import definition_files, wait_for_flows
from mainstem.client import Client
from mainstem.config import Project
from mainstem.engine.writer import SMALL_BATCH
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.testing.checker import (
    CommittedTopic,
    change,
    check_copy,
    check_input,
    check_rows,
    fold,
    numbered,
)
from mainstem.testing.faults import Arrivals, BatchLog, Death, Faults, faulty_stack
from mainstem.testing.load import Load, Numbered, Sent
from mainstem.testing.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

# A table flow finds no difference in the replay of a committed batch, so it asks for no token.
ROWS_SUMMARY = (
    ("after_produce", "after_token_read", "after_init", "before_write", "after_token"),
    ("after_commit", "after_write"),
)
VIEW_STEPS = ("view-poll", "view-write", "view-offsets", "view-commit")


@dataclass
class World:
    """The running pipeline under test."""

    project: Project
    faults: Faults
    client: Client
    connection: Connection
    admin: Admin
    load: Load
    arrivals: Arrivals
    chance: random.Random
    numbers: CommittedTopic[Numbered]
    copied: CommittedTopic[Numbered]
    joined: CommittedTopic[Numbered]
    counted: CommittedTopic[Numbered]
    paired: CommittedTopic[Numbered]
    minutes: CommittedTopic[Any]
    totals: CommittedTopic[Any]
    summary: CommittedTopic[Any]
    sums: CommittedTopic[Any]
    kills: dict[str, int] = field(default_factory=dict)
    recoveries: dict[str, list[float]] = field(default_factory=dict)
    checks: list[str] = field(default_factory=list)

    def batches(self, flow: str) -> BatchLog:
        return BatchLog(self.project, flow)

    def count(self, what: str) -> None:
        self.kills[what] = self.kills.get(what, 0) + 1

    def wait_for_batches(self, flow: str, count: int) -> None:
        """Until so many more batches are done."""
        log = self.batches(flow)
        goal = log.begun() + count
        eventually(lambda: log.finished() >= goal, 300, what=f"batch {goal} of {flow}")

    def wait_for_small_batches(self, flow: str) -> None:
        """Until the flow keeps up with the load, so that its next batch is small, too."""
        self.wait_for_batches(flow, 1)
        log = self.batches(flow)
        eventually(lambda: log.size(log.begun()) < SMALL_BATCH / 4, 300, what=f"{flow} keeps up")

    def a_moment(self, longest: float = 1.2) -> None:
        """Some time, so that what follows hits whatever is under way: here, time is the input."""
        time.sleep(self.chance.uniform(0, longest))

    def await_output(self, death: Death) -> None:
        """Until records come out of the flows again; notes how long that took."""
        began = self.faults.await_restarting(death)
        what = f"output after the death of {death.part}"
        arrived = eventually(lambda: self.arrivals.first_made_after(began), 300, what=what)
        self.recoveries.setdefault(death.part, []).append(arrived - death.at)

    def await_served(self, death: Death, before: int) -> None:
        """Until the served table has moved on; notes how long that took."""
        self.faults.await_ready(death)
        eventually(lambda: (self.served() or 0) > before, 300, what="the served table moves on")
        self.recoveries.setdefault(death.part, []).append(time.time() - death.at)

    def served(self) -> int | None:
        """Records counted in the served table; None while it cannot be asked."""
        rows = self.query("SELECT sum(n) AS n FROM totals")
        return int(rows[0][0] or 0) if rows else None

    def query(self, sql: str) -> list[list[Any]] | None:
        try:
            return list(self.client.sql(sql)["rows"])
        except MainstemError:
            return None


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, seed: int, summary: list[str]
) -> Iterator[World]:
    print(f"MAINSTEM_SEED={seed}")
    project = make_project(tmp_path_factory.mktemp("faults"))
    with faulty_stack(project) as faults:
        endpoints = faults.stack.endpoints
        connection = Connection(endpoints.bootstrap_servers)
        client = Client(endpoints.gateway_url)
        files = definition_files(project)
        plan = client.plan(files)
        client.apply(files, plan["digest"], plan["revision"])
        wait_for_flows(client, {name: {"generation": 1} for name in READS}, 180)
        if FULL:
            client.sql("INSERT INTO labels VALUES ('k1', 'one'), ('k2', 'two')")
        world = World(
            project,
            faults,
            client,
            connection,
            Admin(connection),
            Load(connection, "numbers", per_second=RATE),
            Arrivals(connection, "copied"),
            random.Random(seed),
            CommittedTopic(connection, "numbers", numbered),
            CommittedTopic(connection, "copied", numbered),
            CommittedTopic(connection, "joined", numbered),
            CommittedTopic(connection, "counted", numbered),
            CommittedTopic(connection, "paired", numbered),
            CommittedTopic(connection, "minutes", change),
            CommittedTopic(connection, "totals", change),
            CommittedTopic(connection, "summary", change),
            CommittedTopic(connection, "counted", change),
        )
        yield world
        world.arrivals.close()
        world.load.close()
        world.admin.close()
        client.close()
    summary.append(f"MAINSTEM_SEED={seed}")
    summary.extend(world.checks)
    summary.append("kills: " + ", ".join(f"{n} {what}" for what, n in sorted(world.kills.items())))
    for part, seconds in sorted(world.recoveries.items()):
        summary.append(
            f"{part}: from kill to new output {statistics.median(seconds):.1f} s (median), "
            f"{max(seconds):.1f} s (longest), {len(seconds)} times"
        )


# -- the check


def check(world: World, scenario: str) -> None:
    """Everything that was sent has come out, once, in the log and in the served table."""
    eventually(lambda: drained(world), 300, every=0.3, what="everything is through")
    sent = world.load.sent()
    source = world.numbers.look()
    totals = totals_of(source)
    summary = summary_of(totals)
    problems = check_input(sent, source)
    problems += check_copy(sent, source, world.copied.look())
    for name, key, topic, expected in (
        ("totals", "k", world.totals, totals),
        ("summary", "digit", world.summary, summary),
    ):
        folded = {row[key]: row_of(row) for row in fold(topic.look()).values()}
        rows = world.query(f"SELECT {key}, n, total, last FROM {name}") or []
        served = {k: (n, int(total), last) for k, n, total, last in rows}
        problems += check_rows(f"the topic of {name}", expected, folded)
        problems += check_rows(f"the served {name}", expected, served)
    if FULL:
        problems += check_more(world, sent, source)
    status = world.client.status()
    if status["quarantine"]["records"]:
        problems.append(f"quarantined: {status['quarantine']}")
    assert not problems, "\n".join(problems)
    world.checks.append(
        f"{scenario}: {len(sent.acknowledged):,} records acknowledged, "
        f"{len(sent.uncertain):,} uncertain; none lost, none doubled"
    )


def check_more(world: World, sent: Sent, source: dict[int, list[Numbered]]) -> list[str]:
    """The same for the kinds of flow that only the long run has."""
    totals = totals_of(source)
    problems = []
    for copy in (world.joined, world.counted):
        problems += check_copy(sent, source, copy.look())
    minutes = {(r["k"], r["minute"]): row_of(r) for r in fold(world.minutes.look()).values()}
    problems += check_rows("the topic of minutes", minutes_of(source), minutes)
    paired = Counter(record.id for record in chain.from_iterable(world.paired.look().values()))
    problems += check_rows("paired", pairs_of(source), paired)
    # what the function kept went on from record to record: the last row of a key knows of all
    sums = {row["k"]: (row["n"], row["total"]) for row in fold(world.sums.look()).values()}
    expected_sums = {k: (n, total) for k, (n, total, _) in totals.items()}
    problems += check_rows("the state of counted", expected_sums, sums)
    return problems


def drained(world: World) -> bool:
    """All flows have finished all input, and the views all of the tables' topics."""
    try:
        status = world.client.status()
        flows = {f["flow"]: f.get("positions", {}) for f in status["flows"]}
        views = {v["name"]: v.get("offsets") or {} for v in status["views"]}
        end = {
            topic: world.admin.end_offsets(topic, committed=False) for topic in ("numbers", *READS)
        }
        if any(world.admin.end_offsets(topic) != offsets for topic, offsets in end.items()):
            return False  # a transaction is open
    except MainstemError:
        return False
    return all(
        by_partition(flows[flow].get(topic, {})) == end[topic] for flow, topic in READS.items()
    ) and all(by_partition(views[name]) == end[name] for name in ("totals", "summary"))


def by_partition(offsets: dict[Any, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in offsets.items()}


# -- the disasters


def kill_at_random(world: World, longest: float) -> Death:
    """The engine dies, in its work or while it comes back from its last death."""
    world.a_moment(longest)
    while world.faults.stack.pid("engine") is None:  # between two lives
        world.a_moment()
    death = world.faults.kill("engine")
    world.count("engine")
    print("engine: killed at random")
    world.faults.await_restarting(death)
    return death


def strike_in_a_row(
    world: World, flow: str, steps: tuple[str, ...], batch: int | str, *, large: bool
) -> Death:
    """The engine dies at the first step in a fresh batch, then at each other in its replay."""
    faults, log = world.faults, world.batches(flow)
    for step in steps:
        faults.arm(step, flow, batch)
        death = faults.await_crash("engine")
        world.count("engine")
        faults.await_restarting(death)
        batch = log.begun()
        assert log.finished() == batch - 1, f"{step} of {flow}: Spark had noted the batch as done"
        if flow == COPIED:
            assert (log.size(batch) > SMALL_BATCH) == large, "the batch has the other layout"
        print(f"engine: died at {step} in batch {batch} of {flow}, {log.size(batch)} records")
    return death


def strike_small_batch(world: World, flow: str, steps: tuple[str, ...]) -> Death:
    if FULL:
        world.await_output(kill_at_random(world, 8))
    world.wait_for_small_batches(flow)
    return strike_in_a_row(world, flow, steps, "*", large=False)


def strike_large_batch(world: World, flow: str, steps: tuple[str, ...]) -> Death:
    """What piles up while the engine is down becomes one batch, written by a task per partition."""
    kill_at_random(world, 8)
    world.load.burst(SMALL_BATCH + world.chance.randrange(5_000, 15_000))
    fresh = world.batches(flow).begun() + 1
    return strike_in_a_row(world, flow, steps, fresh, large=True)


def test_the_engine_dies_at_each_step(world: World) -> None:
    strikes = [(strike_small_batch, flow) for flow in FLOWS]
    strikes.append((strike_large_batch, COPIED))
    if FULL:
        rows = [(*strike, steps) for strike in strikes for steps in world.chance.choice(ROWS)]
        rows += [(strike_small_batch, SUMMARY, steps) for steps in ROWS_SUMMARY]
    else:  # all steps, in two strikes
        chosen = zip(world.chance.sample(strikes, 2), world.chance.choice(ROWS), strict=True)
        rows = [(*strike, steps) for strike, steps in chosen]
    world.chance.shuffle(rows)
    with world.load.running():
        world.wait_for_batches(COPIED, 1)
        for strike, flow, steps in rows:
            death = strike(world, flow, steps)
        while world.kills["engine"] < KILLS:
            death = kill_at_random(world, 8)
        world.await_output(death)
    check(world, "engine")


def test_a_flow_is_stopped_within_its_batches(world: World) -> None:
    """Spark cancels the tasks of a paused flow wherever they are in their input."""
    log = world.batches(COPIED)
    with world.load.running():
        for _ in range(4 if FULL else 2):
            begun = log.begun()
            world.load.burst(2 * SMALL_BATCH)
            eventually(lambda begun=begun: log.begun() > begun, every=0.01)
            world.a_moment(0.8)
            world.client.sql("PAUSE copied")
            world.count("pause")
            world.client.sql("RESUME copied")
        world.wait_for_batches(COPIED, 1)
    check(world, "pauses")


def test_workers_of_the_engine_die(world: World) -> None:
    engine = world.faults.stack.pid("engine")
    with world.load.running():
        for flow in (COPIED, TOTALS, COPIED):
            log = world.batches(flow)
            world.wait_for_batches(flow, 1)
            begun = log.begun()
            world.load.burst(SMALL_BATCH)  # the driver writes small batches itself
            eventually(lambda log=log, begun=begun: log.begun() > begun, every=0.01)
            workers = eventually(world.faults.workers, every=0.01, what="workers")
            os.kill(world.chance.choice(workers), signal.SIGKILL)
            world.count("worker")
            world.wait_for_batches(flow, 1)
    assert world.faults.stack.pid("engine") == engine
    check(world, "workers")


def test_the_gateway_dies(world: World) -> None:
    with world.load.running():
        random_kills = ["random"] * (4 if FULL else 1)
        for step in world.chance.sample((*VIEW_STEPS, *random_kills), 4 + len(random_kills)):
            before = eventually(world.served, what="the table is served")
            if step == "random":
                world.a_moment()
                death = world.faults.kill("gateway")
            else:
                world.faults.arm(step, "totals")
                death = world.faults.await_crash("gateway")
            world.count("gateway")
            world.await_served(death, before)
    check(world, "gateway")


def test_the_broker_dies(world: World) -> None:
    with world.load.running():
        for _ in range(3 if FULL else 2):
            world.wait_for_batches(COPIED, 1)
            world.a_moment()
            death = world.faults.kill("broker")
            world.count("broker")
            world.await_output(death)
    check(world, "broker")


def test_postgres_dies(world: World) -> None:
    with world.load.running():
        for _ in range(2):
            before = eventually(world.served, what="the table is served")
            world.a_moment()
            death = world.faults.kill("postgres")
            world.count("postgres")
            world.await_served(death, before)
    check(world, "postgres")
