"""A task of a stateful function on a store without a log: order, time, records put aside."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mainstem.definitions.project import load_definitions
from mainstem.engine.keyed_task import KeyedTask, KeyedWork
from mainstem.engine.records_for import PLACE
from mainstem.log.state_store import NEWEST_KEY, StateStore
from mainstem.log.task_writer import Rows, TaskResult, TaskWrite
from mainstem.vocabulary import Column

TEXT = """
from dataclasses import dataclass
from datetime import timedelta
from mainstem import State, Timer, stateful

@dataclass
class Event:
    k: str
    n: int

@stateful(stream="s", key="k")
def f(event: Event | None, state: State[int], timer: Timer) -> list[Event]:
    if event is None:
        kept, state.value = state.value, None
        return [Event(state.key, kept)]
    state.value = (state.value or 0) + event.n
    timer.set(timer.now + timedelta(seconds=10))
    return [Event("odd", "text")] if event.n == 50 else []
"""
SECOND = 1_000_000


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "World":
    return World(tmp_path, monkeypatch)


class World:
    """Batches of one partition of the state, one after the other."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        [definition] = load_definitions([("functions/f.py", TEXT)])
        assert definition.stateful is not None
        key = (Column("k", "string"),)
        self.folder = folder
        self.work = KeyedWork({}, definition.stateful, key, ("k",), "log", "", 0, 0, None)
        self.aside: list[int] = []
        self.batch = 0
        monkeypatch.setattr(KeyedTask, "_open", lambda _: self.store())
        monkeypatch.setattr(KeyedTask, "_put_aside", lambda _, *given: self._put_aside(*given))

    def store(self) -> StateStore:
        return StateStore(self.folder / "0.db", "e", "log", 0)

    def _put_aside(self, table: pa.Table, failed: Mapping[int, str]) -> Rows:
        self.aside += table.column(PLACE[2]).take(list(failed)).to_pylist()
        return Rows("aside", [], [])

    def run(self, *events: tuple[str, int, int]) -> tuple[list[tuple[str, int]], dict[str, Any]]:
        """Rows, and the task's note, for records (key, number, second) in the order of the log."""
        keys, numbers, times = (list(column) for column in zip(*events, strict=True))
        moments = pa.array([t * SECOND for t in times], pa.timestamp("us", "UTC"))
        count = len(events)
        columns = [keys, numbers, keys, ["s"] * count, [0] * count, list(range(count)), moments]
        batch = pa.record_batch(columns, names=["k", "n", "key", *PLACE])
        task = KeyedTask(
            self.work, TaskWrite("f.1", "state-0", self.batch, "f", "t", None, False), 0
        )
        self.batch += 1
        rows, changes, *_ = task.rows([batch])
        assert NEWEST_KEY in changes.keys
        note = task.done(TaskResult(1, skipped=False, reused=False))
        found = [json.loads(value or b"") for value in rows.values]
        return [(row["k"], row["n"]) for row in found], json.loads(note or "")


def test_records_come_in_the_order_of_time(world: World) -> None:
    rows, note = world.run(("a", 1, 100), ("b", 2, 130), ("a", 4, 105))
    assert rows == [("a", 5)]
    assert note == {"newest": 130 * SECOND, "due": 140 * SECOND, "keys": 1, "aside": 0}


def test_what_is_found_late_does_not_move_the_time(world: World) -> None:
    """The batch is counted anew without the record of a wrong row, from where it began."""
    rows, note = world.run(
        ("a", 1, 100), ("a", 50, 104), ("a", 2, 108), ("b", 3, 200), ("a", 7, 201)
    )
    assert rows == [("a", 3)]
    assert world.aside == [1]
    assert (note["keys"], note["aside"]) == (2, 1)


def test_the_time_of_earlier_batches_counts(world: World) -> None:
    world.run(("a", 1, 100))
    rows, _ = world.run(("b", 1, 120))
    assert rows == [("a", 1)]
