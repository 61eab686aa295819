"""Groups of changes: complete or not at all, also after compaction."""

from __future__ import annotations

from mainstem.log.change_groups import ChangeGroups, group_headers
from mainstem.vocabulary import Record


def record(offset: int, group: str = "", last: bool = False) -> Record:
    headers = group_headers(group, last) if group else ()
    return Record("t", 0, offset, b"k", b"v", 0, headers)


def offsets(groups: list[list[Record]]) -> list[list[int]]:
    return [[r.offset for r in group] for group in groups]


def test_a_group_is_held_back_until_its_last_record() -> None:
    groups = ChangeGroups()
    assert groups.add(record(0, "a")) == []
    assert groups.add(record(1, "a")) == []
    assert groups.open
    assert offsets(groups.add(record(2, "a", last=True))) == [[0, 1, 2]]
    assert not groups.open


def test_a_record_outside_of_groups_is_complete() -> None:
    groups = ChangeGroups()
    assert offsets(groups.add(record(0))) == [[0]]
    assert offsets(groups.add(record(1))) == [[1]]


def test_the_next_group_ends_one_whose_last_record_was_compacted_away() -> None:
    groups = ChangeGroups()
    groups.add(record(0, "a"))
    assert offsets(groups.add(record(5, "b"))) == [[0]]
    assert offsets(groups.add(record(6))) == [[5], [6]]


def test_the_rest_at_the_end_of_the_log() -> None:
    groups = ChangeGroups()
    groups.add(record(0, "a"))
    assert offsets(groups.rest()) == [[0]]
    assert groups.rest() == []


def test_two_groups_of_one_record() -> None:
    groups = ChangeGroups()
    assert offsets(groups.add(record(0, "a", last=True))) == [[0]]
    assert offsets(groups.add(record(1, "b", last=True))) == [[1]]
