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


@pytest.mark.parametrize(
    ("sizes", "here", "made"),
    [
        ([10, 20], [True, True], "held here"),
        ([10, 20], [True, False], "kept by Spark"),
        ([2_000, 3_001], [True, True], "kept by Spark"),  # many small ones are not small
    ],
)
def test_small_pieces_are_one_without_a_job(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], here: list[bool], made: str
) -> None:
    monkeypatch.setattr(held_table, "joined", lambda some: "held here")
    monkeypatch.setattr(held_table, "together", lambda pieces: None)
    monkeypatch.setattr(held_table, "kept", lambda rows, count: "kept by Spark")
    nothing: Any = None
    first = held_table.Piece({0: 0}, {0: sizes[0]}, nothing, here[0])
    second = held_table.Piece(first.end, {0: sum(sizes)}, nothing, here[1])
    one = held_table.as_one([first, second], {0: 0})
    assert (one.rows, one.here) == (made, made == "held here")
    assert (one.start, one.end) == ({0: 0}, {0: sum(sizes)})


def test_a_table_is_held_here_only_whole() -> None:
    nothing: Any = None
    few = held_table.Piece({0: 0}, {0: 5}, nothing, here=True)
    many = held_table.Piece({0: 5}, {0: 5_000}, nothing)
    small = held_table.Base("t", {0: 0}, nothing, 0, here=True)
    large = held_table.Base("t", {0: 0}, nothing, 9_000, "folder")

    def held(base: held_table.Base, *pieces: held_table.Piece) -> held_table.Held:
        return held_table.Held(nothing, base, pieces, None, 0, pieces[-1].end)

    assert held(small, few).here
    assert not held(small, few, many).here
    assert not held(large, few).here


class Named:
    """Stands for a DataFrame: says what it is made of."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def unionByName(self, other: "Named") -> "Named":
        return Named(*self.names, *other.names)

    def coalesce(self, tasks: int) -> tuple[tuple[str, ...], int]:
        return self.names, tasks


@pytest.mark.parametrize(
    ("here", "count", "made"),
    [
        ("hhh", 10, (("0+1+2",), 1)),
        ("hth", 10, (("1", "0+2"), 1)),  # what is held here is one part, however many pieces
        ("tt", 10_001, (("0", "1"), 2)),
    ],
)
def test_pieces_are_read_together(
    monkeypatch: pytest.MonkeyPatch, here: str, count: int, made: object
) -> None:
    def joined(some: list[Named]) -> Named:
        return Named("+".join(name for rows in some for name in rows.names))

    monkeypatch.setattr(held_table, "joined", joined)
    pieces = [
        held_table.Piece({0: 0}, {0: count}, cast("DataFrame", Named(str(n))), here=kind == "h")
        for n, kind in enumerate(here)
    ]
    assert held_table.together(pieces) == made
