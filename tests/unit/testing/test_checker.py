"""The checker must be able to find what it looks for."""

from __future__ import annotations

import pytest

from mainstem.testing.checker import check_copy, check_input, check_rows
from mainstem.testing.load import Numbered, Sent

A0, A1, B0 = Numbered("a", 0, "n0"), Numbered("a", 1, "n2"), Numbered("b", 0, "n1")
SENT = Sent(frozenset(("n0", "n1", "n2")), frozenset())


def test_all_is_well() -> None:
    source = {0: [A0, A1], 1: [B0]}
    assert check_input(SENT, source) == []
    assert check_copy(SENT, source, {0: [B0, A0], 1: [A1]}) == []


def test_an_uncertain_record_may_be_there_or_not() -> None:
    sent = Sent(frozenset(("n0", "n1")), frozenset(("n2",)))
    assert check_input(sent, {0: [A0, A1, B0]}) == check_input(sent, {0: [A0, B0]}) == []
    assert check_copy(sent, {0: [A0, B0]}, {0: [A0, B0]}) == []


@pytest.mark.parametrize(
    ("copy", "word"),
    [
        ([A0, B0], "lost"),
        ([A0, A1, B0, A1], "doubled"),
        ([A0, A1, B0, Numbered("b", 7, "x")], "invented"),
        ([A0, A1, Numbered("b", 5, "n1")], "changed"),
        ([A1, A0, B0], "out of order"),
    ],
)
def test_a_wrong_copy_is_found(copy: list[Numbered], word: str) -> None:
    assert word in " ".join(check_copy(SENT, {0: [A0, A1, B0]}, {0: copy}))


def test_an_uncertain_record_that_is_in_the_input_must_be_copied() -> None:
    sent = Sent(frozenset(("n0", "n1")), frozenset(("n2",)))
    assert check_copy(sent, {0: [A0, A1, B0]}, {0: [A0, B0]}) != []


def test_a_wrong_input_is_found() -> None:
    assert check_input(SENT, {0: [A0, A1]}) != []
    assert check_input(SENT, {0: [A0, A1, B0], 1: [B0]}) != []
    assert check_input(SENT, {0: [A0, A1, B0, Numbered("c", 0, "x")]}) != []


def test_wrong_rows_are_found() -> None:
    assert check_rows("t", {"a": 1}, {"a": 1}) == []
    assert "missing" in check_rows("t", {"a": 1}, {})[0]
    assert "too many" in check_rows("t", {}, {"a": 1})[0]
    assert "a: 2, should be 1" in check_rows("t", {"a": 1}, {"a": 2})[0]
