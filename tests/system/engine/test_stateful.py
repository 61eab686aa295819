"""State and rows of a stateful function move together, whatever is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mainstem.engine.keyed import changelog_of
from mainstem.testing.driver import Driver, Event

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
    local = driver.spark.sparkContext.getConf().get("spark.local.dir")
    store = Path(str(local)) / "mainstem-state" / changelog_of(entry.definition)
    assert store.is_dir()
    shutil.rmtree(store)
    driver.send(events)
    driver.run()
    assert counts() == sorted([1, 2, 3, 4] * 5)
