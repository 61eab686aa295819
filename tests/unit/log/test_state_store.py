"""The local copy of a stateful function's changelog, without a log."""

from pathlib import Path

import pytest

from mainstem.log.state_store import Kept, StateStore


def open_store(folder: Path, epoch: str = "e") -> StateStore:
    return StateStore(folder / "deep" / "0.db", epoch, "changes", 0)


def test_what_was_applied_is_there_for_the_next(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert store.get([b"a"]) == {}
    assert not store.is_current(None)
    store.apply({b"a": Kept(b"1", 20), b"b": Kept(None, 10), b"c": Kept(b"3")}, 4, 99, 3, None)
    store.close()
    store = open_store(tmp_path)
    assert store.is_current(4)
    assert not store.is_current(5)
    assert store.get([b"a", b"b", b"x"]) == {b"a": Kept(b"1", 20), b"b": Kept(None, 10)}
    assert (store.newest, store.keys, store.next_due()) == (99, 3, 10)
    assert (store.due(9), store.due(20)) == ([], [b"b", b"a"])
    store.apply({b"a": Kept(b"2"), b"b": Kept()}, 5, 99, 2, None)
    assert (store.get([b"a", b"b"]), store.next_due()) == ({b"a": Kept(b"2")}, None)


def test_many_keys_are_found(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    kept = {b"%d" % n: Kept(b"v%d" % n) for n in range(1234)}
    store.apply(kept, 0, None, len(kept), None)
    assert store.get([*kept, b"x"]) == kept


def test_a_left_over_changes_nothing(tmp_path: Path) -> None:
    old, new = open_store(tmp_path), open_store(tmp_path)
    new.apply({b"a": Kept(b"new")}, 2, None, 1, None)
    old.apply({b"a": Kept(b"old")}, 1, None, 1, None)
    store = open_store(tmp_path)
    assert store.get([b"a"]) == {b"a": Kept(b"new")}
    assert store.is_current(2)


def test_another_checkpoint_begins_with_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.apply({b"a": Kept(b"1")}, 0, 5, 1, 100)
    store.close()
    store = open_store(tmp_path, "another")
    assert (store.get([b"a"]), store.newest, store.keys) == ({}, None, 0)
    assert not store.is_current(0)


def test_a_broken_file_is_replaced(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    (tmp_path / "deep" / "0.db").write_bytes(b"this is no database" * 1000)
    store = open_store(tmp_path)
    assert store.get([b"a"]) == {}


NAMED = (("a|b", 9), ('"', -3))


@pytest.mark.parametrize(
    "kept",
    [
        Kept(),
        Kept(b"{|}"),
        Kept(b"1", -5),
        Kept(None, 7),
        Kept(b"|", 7, tuple(sorted(NAMED))),
        Kept(None, None, (("x", 1),)),
    ],
)
def test_records_of_the_changelog(kept: Kept) -> None:
    assert Kept.from_record(kept.to_record()) == kept


def test_the_first_of_several_timers_is_the_next(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    kept = Kept(b"1", 20, (("late", 30), ("soon", 10)))
    store.apply({b"a": kept, b"b": Kept(None, None, (("x", 15),))}, 0, None, 2, None)
    assert store.get([b"a"]) == {b"a": kept}
    assert (store.next_due(), store.due(14), store.due(15)) == (10, [b"a"], [b"a", b"b"])
