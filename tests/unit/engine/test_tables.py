"""Which of the changes that are kept of a table a batch has to look at."""

import threading
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame

from mainstem.engine import tables
from mainstem.vocabulary import Offsets


class Rows:
    """Stands for a DataFrame: says whether it was filtered."""

    def filter(self, _: Any) -> str:
        return "some"


@pytest.fixture
def piece(monkeypatch: pytest.MonkeyPatch) -> tables.Piece:
    monkeypatch.setattr(tables, "is_before", lambda end: _Test())
    return tables.Piece({0: 10, 1: 20}, {0: 15, 1: 20}, cast("DataFrame", Rows()))


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
    piece: tables.Piece, start: Offsets, end: Offsets, found: str | None
) -> None:
    between = piece.between(start, end)
    assert ("all" if between is piece.rows else between) == found


def test_what_has_been_replaced_stays_until_its_readers_are_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    freed: list[Any] = []
    monkeypatch.setattr(tables, "release", freed.append)
    nothing: Any = None
    known = tables.Tables(nothing, nothing, nothing, nothing, nothing)
    started = threading.Event()
    finish = threading.Event()

    def read() -> None:
        known._reads()
        started.set()
        finish.wait(60)
        known.done()

    reader = threading.Thread(target=read)
    reader.start()
    assert started.wait(60)
    known._retire("t", cast("DataFrame", "old"))
    known._reads()  # this thread begins when it has been replaced
    known._clear("t")
    assert freed == []
    finish.set()
    reader.join()
    known._clear("t")
    assert freed == ["old"]
