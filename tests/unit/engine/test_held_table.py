"""Which of the changes that are kept of a table a batch has to look at."""

from typing import Any, cast

import pytest
from pyspark.sql import DataFrame

from mainstem.engine import held_table
from mainstem.vocabulary import Offsets


class Rows:
    """Stands for a DataFrame: says whether it was filtered."""

    def filter(self, _: Any) -> str:
        return "some"


@pytest.fixture
def piece(monkeypatch: pytest.MonkeyPatch) -> held_table.Piece:
    monkeypatch.setattr(held_table, "is_before", lambda end: _Test())
    return held_table.Piece({0: 10, 1: 20}, {0: 15, 1: 20}, cast("DataFrame", Rows()))


class _Test:
    def __and__(self, _: object) -> "_Test":
        return self

    def __invert__(self) -> "_Test":
        return self


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        ({0: 10, 1: 20}, {0: 15, 1: 20}, "all"),
        ({0: 3}, {0: 15, 1: 90}, "all"),
        ({}, {0: 15}, "all"),
        ({0: 11, 1: 0}, {0: 15, 1: 20}, "some"),
        ({0: 10, 1: 20}, {0: 14, 1: 20}, "some"),
        ({0: 15, 1: 0}, {0: 30, 1: 90}, None),
        ({0: 0, 1: 0}, {0: 10, 1: 90}, None),
        ({}, {1: 90}, None),
    ],
)
def test_a_piece_is_read_as_far_as_needed(
    piece: held_table.Piece, start: Offsets, end: Offsets, found: str | None
) -> None:
    between = piece.between(start, end)
    assert (between and ("all" if between is piece else between.rows)) == found


@pytest.mark.parametrize(
    ("counts", "older"),
    [
        ([0, 10], 10),  # a single large piece goes into the base whole
        ([10, 10, 10, 10], 20),
        ([100, 1, 1, 1, 1], 100),
        ([100, 1, 1, 1, 1, 1], 101),  # no more than a few stay
        ([1, 1, 1, 50], 53),
    ],
)
def test_the_newest_changes_stay_out_of_the_base(counts: list[int], older: int) -> None:
    nothing: Any = None
    pieces, at = [], 0
    for count in counts:
        pieces.append(held_table.Piece({0: at}, {0: at + count}, nothing))
        at += count
    held = held_table.Held(nothing, nothing, tuple(pieces), None, 0, {0: at})
    assert held.older_end == {0: older}
