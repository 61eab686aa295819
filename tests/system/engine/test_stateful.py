"""State and rows of a stateful function move together, whatever is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mainstem.engine.flow import Flow
from mainstem.engine.keyed import changelog_of, stores_of
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.spark

FUNCTIONS = """
from dataclasses import dataclass
from mainstem import State, stateful

@dataclass
class Event:
    k: str

@dataclass
class Count:
    k: str
    n: int

@stateful(stream="s", key="k")
def counted(event: Event, state: State[int]) -> list[Count]:
    state.value = (state.value or 0) + 1
    return [Count(event.k, state.value)]
"""
TIMED = """
from dataclasses import dataclass
from datetime import timedelta
from mainstem import State, Timer, stateful

@dataclass
class Event:
    k: str

@stateful(stream="s", key="k", timer="wall")
def late(event: Event | None, state: State[int], timer: Timer) -> list[Event]:
    if event is not None:
        state.value = 1
        timer.set(timer.now + timedelta(milliseconds=700))
        return []
    state.clear()
    return [Event(state.key)]
"""
SECONDS = 120


def test_a_batch_that_runs_again_and_a_lost_store(driver: Driver) -> None:
    driver.apply("CREATE STREAM s (k STRING) WITH (key = 'k')", functions=FUNCTIONS)
    entry = driver.entry("counted")
    events = [Event("s", {"k": f"k{n}"}) for n in range(5)]

    def counts() -> list[int]:
        return sorted(row["n"] for row in driver.rows("counted"))

    for _ in range(2):
        driver.send(events)
        driver.run()
    assert counts() == sorted([1, 2] * 5)

    # Spark's own commit is lost: the batch runs again, and its state is not counted twice
    commits = driver.folder / entry.flow_id / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    (commits / str(last)).unlink()
    Path(commits / f".{last}.crc").unlink(missing_ok=True)
    driver.run()
    assert (commits / str(last)).exists()
    assert len(driver.rows("counted")) == 10
    driver.send(events)
    driver.run()
    assert counts() == sorted([1, 2, 3] * 5)

    # the machine that ran it is gone: the state comes back from the log
    store = Path(stores_of(driver.spark)) / changelog_of(entry.definition)
    assert store.is_dir()
    shutil.rmtree(store)
    driver.send(events)
    driver.run()
    assert counts() == sorted([1, 2, 3, 4] * 5)


def test_a_timer_rings_in_a_flow_without_records(driver: Driver, live: Callable[..., Flow]) -> None:
    driver.apply("CREATE STREAM s (k STRING) WITH (key = 'k')", functions=TIMED)
    flow = live("late")
    flow.start()
    driver.send([Event("s", {"k": "a"}), Event("s", {"k": "b"})])

    def rung() -> bool:
        flow.tick()
        return len(driver.rows("late")) == 2

    eventually(rung, SECONDS, what="both timers have rung")

    def forgotten() -> bool:
        flow.measure()
        return flow.status.state_rows == 0 and flow.status.rows_out_total == 2

    eventually(forgotten, SECONDS, what="the status tells")
    assert set(flow.status.positions) <= {driver.entry("s").definition.topic}
