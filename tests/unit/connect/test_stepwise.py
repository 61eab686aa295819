"""Rows in steps: what comes again changes nothing, and a bad row is found and told each time."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from mainstem.connect.targets.stepwise import Position, RowError, Stepwise
from mainstem.connect.targets.target import Part, Poison, Shape
from mainstem.vocabulary import Column

SHAPE = Shape("s", (Column("id", "int"),))
Batch = Callable[..., pa.Table]


class Store:
    """What a target keeps."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.steps: list[list[int]] = []
        self.next = 0
        self.refused: list[tuple[int, str]] = []


class Target(Stepwise):
    """Takes no ids that are told to be bad, and dies before a step that is told to."""

    def __init__(self, store: Store, bad: tuple[int, ...], dies_at: int = -1) -> None:
        super().__init__(SHAPE)
        self._store = store
        self._bad = bad
        self._dies_at = dies_at

    def look_up(self, position: Position) -> None:
        position.next = self._store.next
        position.refused = list(self._store.refused)

    def step(self, rows: pa.Table, position: Position) -> None:
        ids = rows["id"].to_pylist()
        if self._dies_at in ids:
            raise KeyboardInterrupt
        if set(ids) & set(self._bad):
            raise RowError("bad")
        self._store.ids += ids
        self._store.steps.append(ids)
        self._store.next = position.next
        self._store.refused = list(position.refused)

    def close(self) -> None:
        pass


@pytest.fixture
def take(part: Callable[..., Part], batch: Batch) -> Callable[..., list[Poison]]:
    def give(store: Store, *ids: int, bad: tuple[int, ...] = (), dies_at: int = -1) -> list[Poison]:
        target = Target(store, bad, dies_at)
        target.open(part())
        return [*target.write(batch(*ids)), *target.finish()]

    return give


def test_a_bad_row_is_found_by_halves(take: Callable[..., list[Poison]]) -> None:
    store = Store()
    poison = take(store, 0, 1, 2, 3, 4, 5, 6, 7, bad=(2, 5))
    assert [one.offset for one in poison] == [2, 5]
    assert store.ids == [0, 1, 3, 4, 6, 7]
    assert store.next == 8
    # the engine died before the quarantine had them
    assert take(store, 0, 1, 2, 3, 4, 5, 6, 7, bad=(2, 5)) == poison
    assert store.ids == [0, 1, 3, 4, 6, 7]
    # of later parts they are no news
    assert take(store, 8, 9) == []
    assert store.refused == []


def test_a_part_that_was_cut_goes_on_where_it_was(take: Callable[..., list[Poison]]) -> None:
    store = Store()
    with pytest.raises(KeyboardInterrupt):
        take(store, 0, 1, 2, 3, bad=(1,), dies_at=3)
    assert (store.ids, store.next) == ([], 0), "all came in one step"
    with pytest.raises(KeyboardInterrupt):
        take(store, 0, 1, bad=(1,), dies_at=1)
    poison = take(store, 0, 1, 2, 3, bad=(1,))
    assert [one.offset for one in poison] == [1]
    with pytest.raises(KeyboardInterrupt):
        take(store, 2, 3, 4, 5, bad=(4,), dies_at=5)
    poison = take(store, 2, 3, 4, 5, bad=(4,))
    assert [one.offset for one in poison] == [4]
    assert store.ids == [0, 2, 3, 5]
