"""Which records a trial reads, and in which pieces."""

from __future__ import annotations

import pytest

from mainstem.engine.trial import last_of, pieces


@pytest.mark.parametrize(
    ("begin", "end", "count", "start"),
    [
        ({0: 0, 1: 0}, {0: 10, 1: 10}, 4, {0: 8, 1: 8}),
        ({0: 0, 1: 0}, {0: 10, 1: 1}, 6, {0: 5, 1: 0}),
        ({0: 5, 1: 3}, {0: 10, 1: 3}, 100, {0: 5, 1: 3}),
        ({0: 0, 1: 0, 2: 0}, {0: 9, 1: 9, 2: 9}, 1, {0: 8, 1: 9, 2: 9}),
        ({0: 0}, {0: 0}, 5, {0: 0}),
    ],
)
def test_the_last_are_spread_over_the_partitions(
    begin: dict[int, int], end: dict[int, int], count: int, start: dict[int, int]
) -> None:
    found = last_of(begin, end, count)
    assert found == start
    there = sum(end[p] - begin[p] for p in begin)
    assert sum(end[p] - found[p] for p in found) == min(count, there)


def test_pieces_cover_the_range_once() -> None:
    start, end = {0: 3, 1: 0}, {0: 10, 1: 2}
    found = list(pieces(start, end, 4))
    assert found[0] == ({0: 3, 1: 0}, {0: 5, 1: 2})
    assert [behind for _, behind in found[:-1]] == [begin for begin, _ in found[1:]]
    assert found[-1][1] == end
    assert list(pieces(end, end, 4)) == []
