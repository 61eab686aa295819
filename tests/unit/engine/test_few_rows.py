"""Which records the driver fetches itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mainstem.engine import few_rows
from mainstem.vocabulary import Offsets, Record

MEGABYTE = 1_000_000


def records(count: int, size: int) -> list[Record]:
    return [Record("t", 0, offset, b"k", bytes(size), 0, ()) for offset in range(count)]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[list[Record]]:
    """What a read gives, in its pieces; those that were taken are gone."""
    pieces: list[list[Record]] = []

    def read_range(*_: Any) -> Iterator[list[Record]]:
        while pieces:
            yield pieces.pop(0)

    monkeypatch.setattr(few_rows, "read_range", read_range)
    return pieces


def fetched(start: Offsets, end: Offsets, most: int = 10) -> list[Record] | None:
    nothing: Any = None
    return few_rows.few_records(nothing, "t", start, end, most)


def test_few_records_are_fetched(log: list[list[Record]]) -> None:
    log += [records(2, 10), records(3, 10)]
    assert [r.offset for r in fetched({0: 0}, {0: 5}) or ()] == [0, 1, 0, 1, 2]


def test_many_are_not_even_looked_at(log: list[list[Record]]) -> None:
    log += [records(2, 10)]
    assert fetched({0: 0, 1: 4}, {0: 6, 1: 9}) is None
    assert len(log) == 1


def test_a_partition_that_was_not_there_counts_from_its_beginning() -> None:
    assert few_rows.span({0: 5}, {0: 7, 1: 3}) == 5
    assert few_rows.span({0: 9}, {0: 7}) == 0


def test_large_ones_are_left_when_that_is_seen(log: list[list[Record]]) -> None:
    log += [records(3, MEGABYTE), records(3, MEGABYTE), records(3, MEGABYTE)]
    assert fetched({0: 0}, {0: 9}) is None
    assert len(log) == 1
