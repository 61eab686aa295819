"""Which batches come to the driver, and how those with state are divided."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from mainstem.engine import small_batch
from mainstem.engine.small_batch import Sizes, _by_partition
from mainstem.log.task_writer import Rows, TaskResult

MEGABYTE = 1_000_000


def test_before_a_batch_was_seen_records_may_be_as_large_as_the_log_allows() -> None:
    sizes = Sizes(MEGABYTE)
    assert sizes.fit(16)
    assert not sizes.fit(17)


def test_small_records_are_known_after_one_batch() -> None:
    sizes = Sizes(MEGABYTE)
    sizes.saw(1000, 200_000)
    assert sizes.fit(5000)
    assert not sizes.fit(5001)


def test_large_records_go_to_the_workers_until_they_are_long_gone() -> None:
    sizes = Sizes(MEGABYTE)
    sizes.saw(100, 10_000)
    sizes.saw(100, 100 * MEGABYTE)
    sizes.saw(100, 10_000)
    assert not sizes.fit(100)
    for _ in range(50):
        sizes.saw(100, 10_000)
    assert sizes.fit(100)


def test_a_batch_without_records_says_nothing_of_their_size() -> None:
    sizes = Sizes(MEGABYTE)
    sizes.saw(0, 0)
    assert sizes.fit(0)
    assert not sizes.fit(1000)


def test_as_many_rows_may_come_as_fit() -> None:
    sizes = Sizes(MEGABYTE)
    assert sizes.most == 16
    sizes.saw(10, 10 * 100_000)
    assert sizes.most == 167
    sizes = Sizes(MEGABYTE)
    sizes.saw(10, 0)
    assert sizes.most == 5000


def test_after_a_batch_with_many_rows_the_next_one_is_not_tried_here() -> None:
    sizes = Sizes(MEGABYTE)
    sizes.saw(5_001, 500_000)
    assert not sizes.few_lately
    sizes.saw(5_000, 500_000)
    assert sizes.few_lately


class Batch:
    """Stands for a DataFrame of so many rows."""

    def __init__(self, count: int) -> None:
        self._count = count

    def limit(self, most: int) -> Batch:
        return Batch(min(most, self._count))

    def toArrow(self) -> pa.Table:
        return pa.table({"key": [b"k"] * self._count, "value": [b"v"] * self._count})


def test_more_rows_than_may_come_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    def write_task(_: Any, __: Any, pieces: Iterable[Rows], ___: Any) -> TaskResult:
        count = sum(len(some.values) for some in pieces)
        written.append(count)
        return TaskResult(count, skipped=False, reused=False)

    monkeypatch.setattr(small_batch, "write_task", write_task)

    def write(count: int, most: int | None) -> list[small_batch.Written] | None:
        batch: Any = Batch(count)
        connection: Any = SimpleNamespace(to_dict=dict)
        task_write: Any = str
        return small_batch.write_here(batch, ["all"], connection, task_write, None, most)

    assert write(4, 3) is None
    assert written == []
    assert [w.rows for w in write(3, 3) or ()] == [3]
    assert [w.rows for w in write(4, None) or ()] == [4]
    assert written == [3, 4]


def test_rows_go_to_the_task_of_their_partition_in_their_order() -> None:
    rows = pa.table(
        {
            "key": [b"a", b"b", b"c", b"d"],
            "value": [b"1", b"2", None, b"4"],
            "_mainstem_partition": [1, 0, 1, 1],
        }
    )
    divided = {n: some.column("key").to_pylist() for n, some in _by_partition(rows)}
    assert divided == {0: [b"b"], 1: [b"a", b"c", b"d"]}
    assert list(_by_partition(rows.slice(0, 0))) == []
