"""Calls of stateful functions, on a store without a log."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mainstem.definitions.model import Stateful
from mainstem.definitions.project import load_definitions
from mainstem.engine.keyed_calls import Caller
from mainstem.engine.records_for import PLACE
from mainstem.engine.spark_errors import flow_error
from mainstem.errors import MainstemError
from mainstem.log.state_store import StateStore
from mainstem.vocabulary import Column

HEAD = """
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from mainstem import State, Timer, stateful

@dataclass
class Event:
    k: str
    n: int

@dataclass
class Kept:
    numbers: list[int] = field(default_factory=list)

@dataclass
class Out:
    k: str
    numbers: list[int]

"""
COLLECT = """
@stateful(stream="s", key="k")
def f(event: Event, state: State[Kept]) -> Iterator[Out]:
    kept = state.value = state.value or Kept()
    kept.numbers.append(event.n)
    if event.n < 0:
        raise ValueError("negative")
    yield Out(event.k, list(kept.numbers))
"""
SECOND = 1_000_000


class Bench:
    """A function, and its state over several batches."""

    def __init__(self, text: str, folder: Path) -> None:
        [definition] = load_definitions([("functions/f.py", HEAD + text)])
        assert definition.stateful is not None
        self.stateful: Stateful = definition.stateful
        self.store = StateStore(folder / "0.db", "e", "changes", 0)
        self.batch = 0
        self.failed: dict[int, str] = {}
        self.misfits: dict[int, str] = {}

    def run(self, *events: tuple[str, int, int], until: int | None = None) -> list[Any]:
        """Rows for records (key, number, second), and for timers until a second."""
        key = (Column("k", "string"),)
        caller = Caller(self.stateful, key, ("k",), self.store, {})
        reached = -(10**17)
        if events:
            keys, numbers, times = (list(column) for column in zip(*events, strict=True))
            places = [["s"] * len(events), [0] * len(events), list(range(len(events)))]
            columns = [keys, numbers, keys, *places, [t * SECOND for t in times]]
            table = pa.table(columns, names=["k", "n", "key", *PLACE])
            reached = caller.call(table, [t * SECOND for t in times], reached, 0)
        if until is not None:
            caller.ring(until * SECOND)
        self.failed, self.misfits = caller.failed, caller.misfits()
        outputs = [] if self.misfits else caller.outputs()
        changes, keys_kept = caller.changes()
        self.store.apply(changes, self.batch, None, keys_kept, None)
        self.batch += 1
        return [json.loads(value) for _, value in outputs]


def failure(bench: Bench, *events: tuple[str, int, int], until: int | None = None) -> MainstemError:
    with pytest.raises(RuntimeError) as caught:
        bench.run(*events, until=until)
    return flow_error(caught.value, "flow")


def test_state_goes_on_and_is_shared_by_no_other_key(tmp_path: Path) -> None:
    bench = Bench(COLLECT, tmp_path)
    assert bench.run(("a", 1, 0), ("b", 2, 0)) == [
        {"k": "a", "numbers": [1]},
        {"k": "b", "numbers": [2]},
    ]
    assert bench.run(("a", 3, 0)) == [{"k": "a", "numbers": [1, 3]}]
    assert bench.store.keys == 2


def test_failed_records_are_told_and_change_nothing(tmp_path: Path) -> None:
    bench = Bench(COLLECT, tmp_path)
    bench.run(("a", 1, 0))
    events = [("a", 2), ("a", -1), ("b", -1), ("a", 3), ("a", -4), ("b", 5), ("a", 6)]
    rows = bench.run(*((key, number, 0) for key, number in events))
    assert [row["numbers"] for row in rows] == [[1, 2], [1, 2, 3], [5], [1, 2, 3, 6]]
    assert bench.failed == dict.fromkeys((1, 2, 4), "ValueError: negative")
    assert bench.run(("a", 7, 0)) == [{"k": "a", "numbers": [1, 2, 3, 6, 7]}]


def test_a_row_of_another_type_is_the_fault_of_its_record(tmp_path: Path) -> None:
    text = COLLECT.replace("list(kept.numbers)", "['x'] if event.n == 2 else []")
    bench = Bench(text, tmp_path)
    bench.run(("a", 1, 0), ("a", 2, 0))
    assert list(bench.misfits) == [1]


@pytest.mark.parametrize("value", ["'text'", "Kept(['x'])", "Kept(5)"])
def test_state_of_another_type_is_the_fault_of_the_function(value: str, tmp_path: Path) -> None:
    text = COLLECT.replace("yield Out", f"state.value = {value}\n    yield Out")
    error = failure(Bench(text, tmp_path), ("a", 1, 0))
    assert (error.code, error.params["records"]) == ("FUNCTION_FAILED", {})
    assert "what it keeps" in error.message


TIMED = """
@stateful(stream="s", key="k")
def f(event: Event | None, state: State[Kept], timer: Timer) -> Iterator[Out]:
    kept = state.value = state.value or Kept()
    if event is None:
        yield Out(state.key, [*kept.numbers, int(timer.now.timestamp())])
        state.clear()
        return
    kept.numbers.append(event.n)
    timer.set(timer.now + timedelta(seconds=10))
"""


@pytest.fixture
def timed(tmp_path: Path) -> Iterator[Bench]:
    yield Bench(TIMED, tmp_path)


def test_a_timer_rings_before_a_later_record_of_its_key(timed: Bench) -> None:
    rows = timed.run(("a", 1, 100), ("a", 2, 105), ("b", 3, 106), ("a", 4, 120))
    assert rows == [{"k": "a", "numbers": [1, 2, 115]}]
    assert timed.run(until=115) == []
    assert timed.run(until=130) == [
        {"k": "b", "numbers": [3, 116]},
        {"k": "a", "numbers": [4, 130]},
    ]
    assert (timed.store.keys, timed.store.next_due()) == (0, None)


def test_a_timer_may_set_itself(tmp_path: Path) -> None:
    text = TIMED.replace("state.clear()", "timer.set(timer.now + timedelta(seconds=10))")
    bench = Bench(text, tmp_path)
    bench.run(("a", 1, 0))
    assert [row["numbers"][-1] for row in bench.run(until=35)] == [10, 20, 30]
    assert bench.store.next_due() == 40 * SECOND


def test_a_timer_that_stands_still_rings_once_a_batch(tmp_path: Path) -> None:
    bench = Bench(TIMED.replace("state.clear()", "timer.set(timer.now)"), tmp_path)
    bench.run(("a", 1, 0))
    assert [len(bench.run(until=35)) for _ in range(2)] == [1, 1]


def test_a_timer_that_fails_stops_the_flow(tmp_path: Path) -> None:
    bench = Bench(TIMED.replace("state.clear()", "raise KeyError('x')"), tmp_path)
    bench.run(("a", 1, 0))
    error = failure(bench, until=35)
    assert (error.code, error.params["records"]) == ("FUNCTION_FAILED", {})
    assert "timer" in error.message


NAMED = """
@stateful(stream="s", key="k")
def f(event: Event | None, state: State[Kept], timer: Timer) -> Iterator[Out]:
    kept = state.value = state.value or Kept()
    if event is None:
        yield Out(f"{state.key} {timer.name}", [*kept.numbers, int(timer.now.timestamp())])
        if timer.name == "end":
            state.clear()
            timer.clear("remind")
        elif timer.name == "remind":
            timer.set(timer.now + timedelta(seconds=10), "remind")
        return
    if event.n < 0:
        timer.set(timer.now, "end")
        raise ValueError("negative")
    assert timer.name is None
    kept.numbers.append(event.n)
    timer.set(timer.now + timedelta(seconds=10), "remind")
    timer.set(timer.now + timedelta(seconds=25), "end")
    timer.set(timer.now + timedelta(seconds=10))
"""


def test_several_timers_ring_in_the_order_of_their_times(tmp_path: Path) -> None:
    bench = Bench(NAMED, tmp_path)
    assert bench.run(("a", 1, 100), ("b", 2, 103)) == []
    rings = [(row["k"], row["numbers"][-1]) for row in bench.run(until=111)]
    assert rings == [("a ", 110), ("a remind", 110)]
    assert bench.store.next_due() == 113 * SECOND
    rings = [(row["k"], row["numbers"][-1]) for row in bench.run(("a", 3, 112), ("a", 4, 140))]
    assert rings == [("a ", 122), ("a remind", 122), ("a remind", 132), ("a end", 137)]
    rings = [(row["k"], row["numbers"][-1]) for row in bench.run(until=130)]
    assert rings == [("b ", 113), ("b remind", 113), ("b remind", 123), ("b end", 128)]
    assert bench.store.keys == 1


def test_timers_that_a_failed_call_has_set_are_forgotten(tmp_path: Path) -> None:
    bench = Bench(NAMED, tmp_path)
    rows = bench.run(("a", 1, 100), ("a", 2, 110), ("a", -1, 112), ("a", -2, 113))
    assert [row["k"] for row in rows] == ["a ", "a remind"]
    assert list(bench.failed) == [2, 3]
    assert bench.store.next_due() == 120 * SECOND
    assert [row["k"] for row in bench.run(until=134)] == ["a ", "a remind", "a remind"]


def test_plain_objects_in_tests_of_users() -> None:
    from mainstem import State, Timer

    state, timer = State[int](5, key="a"), Timer(now=datetime(2026, 1, 1, tzinfo=UTC))
    timer.set(datetime(2026, 1, 2))  # noqa: DTZ001 - taken as UTC
    assert timer.at == datetime(2026, 1, 2, tzinfo=UTC)
    timer.set(datetime(2026, 1, 3, tzinfo=UTC), "remind")
    state.clear()
    timer.clear()
    assert (state.value, timer.at) == (None, None)
    assert timer.times == {"remind": datetime(2026, 1, 3, tzinfo=UTC)}
    with pytest.raises(TypeError):
        timer.set(datetime(2026, 1, 3, tzinfo=UTC), 5)  # type: ignore[arg-type]
