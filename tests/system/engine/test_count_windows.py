"""Windows of so many events: none lost and none doubled, whatever fails, and pieces are merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

from mainstem.engine import kept_rows, writer
from mainstem.errors import MainstemError
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.spark

KEYS = 12
A_ROUND = 3
SECONDS = 180
Write = Callable[[Iterator[Any]], Iterator[Any]]


def test_a_batch_that_was_written_in_part_and_pieces_that_are_merged(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kept_rows, "_MANY", 2)
    driver.apply(
        "CREATE STREAM s (k STRING, v INT) WITH (key = 'k');"
        "CREATE STREAM t AS SELECT k, count_window.start AS first, sum(v) AS v FROM s"
        " GROUP BY k, count_window(4, 2) EMIT FINAL"
    )
    for number in range(6):
        send_round(driver, number)
        if number == 2:
            with monkeypatch.context() as patch, pytest.raises(MainstemError):
                patch.setattr(writer, "task_function", some_commit(tmp_path / "committed"))
                driver.run()
            assert 0 < len(driver.rows("t")) - KEYS * 2 < KEYS
        driver.run()
    last = 6 * A_ROUND
    assert windows(driver) == {
        f"k{key}": [(first, 4 * first + 6) for first in range(1, last - 2, 2)]
        for key in range(KEYS)
    }
    pieces = {p.name for p in (driver.folder / driver.entry("t").flow_id / "kept").iterdir()}
    assert any("-" in name for name in pieces)
    assert len(pieces) <= 4


def send_round(driver: Driver, number: int) -> None:
    driver.send(
        Event("s", {"k": f"k{key}", "v": number * A_ROUND + event + 1})
        for event in range(A_ROUND)
        for key in range(KEYS)
    )


def windows(driver: Driver) -> dict[str, list[tuple[int, int]]]:
    """First event and sum of each window of a key, in the order of the log."""
    found: dict[str, list[tuple[int, int]]] = {}
    for row in driver.rows("t"):
        found.setdefault(row["k"], []).append((row["first"], row["v"]))
    return found


def some_commit(committed: Path) -> Callable[..., Write]:
    """In the place of `task_function`: one task commits, and behind that another one fails."""
    made = writer.task_function

    def function(*arguments: Any, **options: Any) -> Write:
        write = made(*arguments, **options)

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            context = TaskContext.get()
            assert context is not None
            if context.partitionId() == 0:
                yield from write(batches)
                committed.touch()
                return
            eventually(committed.exists, SECONDS, what="the other task has committed")
            raise RuntimeError("the test wants it so")

        return run

    return function
