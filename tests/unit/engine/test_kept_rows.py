"""Small pieces of what a flow keeps."""

from __future__ import annotations

import pyarrow as pa

from mainstem.engine.kept_rows import _fitted, _table, _text


def test_rows_come_back_from_a_note_as_they_were() -> None:
    rows = pa.table({"key": ["a", None], "at": pa.array([1, 2], pa.timestamp("us", "UTC"))})
    assert _table(_text(rows)).equals(rows)
    assert _table(_text(rows.slice(0, 0))).schema == rows.schema


def test_columns_are_those_that_are_asked_for() -> None:
    old = pa.table({"a": [1], "gone": ["x"]})
    new = pa.table({"b": ["y"], "a": [2]})
    fitted = _fitted([old, new], ["a", "b", "c"])
    assert fitted.to_pylist() == [{"a": 1, "b": None, "c": None}, {"a": 2, "b": "y", "c": None}]
