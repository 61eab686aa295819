"""Which batches come to the driver, and how those with state are divided."""

from __future__ import annotations

import pyarrow as pa

from mainstem.engine.small_batch import Sizes, _by_partition

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
