"""Where the rows of a captured table begin anew: truncates, and snapshots that are read again."""

from __future__ import annotations

import pytest

from mainstem.engine.beginnings import Beginning, Seen, beginning_in


def r(offset: int, mark: str, position: str = "1/0") -> Seen:
    return Seen(offset, "r", mark, position)


def c(offset: int, op: str = "c") -> Seen:
    return Seen(offset, op, None, f"2/{offset}")


@pytest.mark.parametrize(
    ("turns", "found"),
    [
        # the first snapshot of all, whole, in pieces, and of one row
        ([(None, r(0, "first")), (r(8, "true"), r(9, "last"))], Beginning(None, False)),
        ([(None, r(0, "first")), (r(8, "true"), r(9, "true"))], Beginning(None, True)),
        ([(r(9, "true"), r(10, "true")), (r(11, "true"), r(12, "last"))], Beginning(None, False)),
        ([(None, r(0, "last"))], Beginning(None, False)),
        ([(None, r(0, "last_in_data_collection")), (r(0, "last"), c(1))], Beginning(None, False)),
        # it breaks off, and begins anew: in the batch, before it, with one row, with none
        ([(None, r(0, "first")), (r(4, "true"), r(5, "first", "1/9"))], Beginning(5, True)),
        ([(r(4, "true"), r(5, "true", "1/9")), (r(5, "true", "1/9"), r(6, "last", "1/9"))],
         Beginning(5, False)),
        ([(r(4, "true"), r(5, "last", "1/9"))], Beginning(5, False)),
        ([(r(4, "true"), c(5)), (c(5), c(6))], Beginning(5, False)),
        # it is asked for again, behind changes
        ([(c(4), r(5, "first", "1/9")), (r(8, "true", "1/9"), r(9, "last", "1/9"))],
         Beginning(5, False)),
        # truncates; the last of all counts
        ([(c(4), c(5)), (c(7), c(8, "t")), (c(8, "t"), c(9))], Beginning(9, False)),
        ([(c(4), c(5, "t")), (c(5, "t"), r(6, "first", "1/9"))], Beginning(6, True)),
        ([(r(4, "true"), c(5)), (c(5), c(6, "t"))], Beginning(7, False)),
        ([(None, c(0)), (c(4), c(5))], Beginning(None, False)),
    ],
)  # fmt: skip
def test_where_rows_begin(turns: list[tuple[Seen | None, Seen]], found: Beginning) -> None:
    assert beginning_in(turns) == found
