"""From the tables of a PostgreSQL to tables, files and another PostgreSQL while everybody dies.

Rows are inserted, updated, deleted, given other keys, truncated, and get new columns, within
transactions of which some are taken back. Connect dies while it reads the rows that are there
already, then every server dies in turn, and the engine at the steps of a sink. MAINSTEM_SEED
repeats a run's random choices; `make soak` has more of them, and all steps. With MAINSTEM_KILLS=12
it has all servers, Redis and OpenSearch among them, and each dies once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from tests.faults.captured import CHANGES, SECONDS, SINKS, CapturedWorld, captured_world
from tests.faults.flows import FULL, KILLS
from tests.faults.targets import targets

from mainstem.errors import MainstemError
from mainstem.testing.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

ROWS = 12_000
STEPS: tuple[tuple[str, ...], ...] = (("target_written",), ("target_done",))
"""What is of a sink alone; the others are those of every writer. The first of a row hits a fresh
batch, each other one the replay of that same batch."""
if FULL:
    STEPS = (
        ("target_written", "target_done", "after_produce", "after_init", "before_write"),
        ("target_done", "after_token", "after_commit", "after_token_read", "after_write"),
    )
ALL = KILLS >= 12
"""All targets, and all of them built anew."""
VICTIMS = ("broker", "source")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[CapturedWorld]:
    print(f"MAINSTEM_SEED={seed}")
    folder = tmp_path_factory.mktemp("captured")
    with (
        targets(folder) if ALL else nullcontext(("", {})) as (more, outside),
        captured_world(folder, seed, ROWS, more, outside) as world,
    ):
        yield world


def test_nothing_is_lost_or_doubled(world: CapturedWorld, summary: list[str]) -> None:
    world.apply()
    with world.workload.running():
        _die_in_the_snapshot(world)
        _die_in_turn(world)
    summary.append(world.check())
    if ALL:
        _build_anew(world)
        summary.append(f"built anew: {world.check()}")


def _build_anew(world: CapturedWorld) -> None:
    """Targets are built beside the old ones, and take their places, while the engine dies."""
    names = [name for name in ("copies", "filed", "search") if name != "search" or world.outside]
    with world.workload.running():
        for name in names:
            world.client.rebuild_sink(name)
        for step in ("target_written", "backfill-held", "take-over-begin", "take-over-written"):
            world.crash(step, "copies.2")

        def done() -> bool:
            try:
                return all(world.client.backfill(name)["state"] == "done" for name in names)
            except MainstemError:
                return False

        eventually(done, SECONDS, every=0.5, what="all are built anew")


def _die_in_the_snapshot(world: CapturedWorld) -> None:
    """Some rows are in the log, and are deleted before the others are."""

    def begun() -> bool:
        try:
            return world.admin.end_offsets(CHANGES)[0] > 0
        except MainstemError:
            return False

    eventually(begun, SECONDS, every=0.01, what="the first rows of the snapshot")
    world.kill("connect")
    world.workload.delete(ROWS * 3 // 4)


def _die_in_turn(world: CapturedWorld) -> None:
    chance = world.chance
    strikes: list[tuple[str, tuple[str, ...], str]] = [
        ("engine", steps, flow) for flow in SINKS for steps in STEPS
    ]
    if not ALL:
        strikes = [chance.choice(strikes)]
    victims = VICTIMS * 3 if FULL else VICTIMS
    if ALL:
        victims = (*victims, "connect", "gateway", *world.outside)
    strikes += [(victim, (), "") for victim in victims]
    chance.shuffle(strikes)
    events = [world.workload.truncate, lambda: world.take_column(world.workload.add_column())]
    for number, (victim, steps, flow) in enumerate(strikes):
        for step in steps:
            world.crash(step, flow)
        if not steps:
            world.kill(victim)
        if number < len(events) or (FULL and chance.random() < 0.3):
            events[number % 2]()
        time.sleep(chance.uniform(0, 2))  # here, time is the input
