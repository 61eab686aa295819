"""Rows into a DuckDB file: each record once, bad ones aside, one writer at a time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from mainstem.connect.connectors.duckdb import SPEC
from mainstem.connect.targets import duckdb as target_module
from mainstem.connect.targets.target import OFFSET, Part, Poison, Shape
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

COLUMNS = (Column("id", "int"), Column("name", "string"))
STREAM = Shape("s", COLUMNS)
TABLE = Shape("s", COLUMNS, ("id",), upserts=True, deletes=True, nullable_key=True)
Batch = Callable[..., pa.Table]


class Sink:
    def __init__(self, part: Callable[..., Part], file: Path) -> None:
        self._part = part
        self.file = file
        self.options = SPEC.validate({"file": str(file)})

    def take(self, *batches: pa.Table, shape: Shape = STREAM, **changes: Any) -> list[Poison]:
        target = target_module.open_target(self.options, shape)
        poison: list[Poison] = []
        try:
            target.open(self._part(**changes))
            for rows in batches:
                poison += target.write(rows)
            poison += target.finish()
        finally:
            target.close()
        return poison

    def run(self, statement: str) -> Sequence[Any]:
        with duckdb.connect(str(self.file)) as connection:
            return connection.execute(statement).fetchall()

    def rows(self) -> Sequence[Any]:
        return self.run("SELECT * FROM s ORDER BY id")

    def check(self, shape: Shape = STREAM, **options: Any) -> str | None:
        try:
            target_module.check({**self.options, **options}, shape)
        except MainstemError as error:
            return error.code
        return None


@pytest.fixture
def sink(part: Callable[..., Part], tmp_path: Path) -> Sink:
    return Sink(part, tmp_path / "new" / "shop.duckdb")


def test_rows_are_added_once(sink: Sink, batch: Batch) -> None:
    for _ in range(2):
        assert sink.take(batch(1, 2), batch(3)) == []
    assert sink.take(batch(2, 3, 4), batch(1, topic="u")) == []
    assert [row[0] for row in sink.rows()] == [1, 1, 2, 3, 4]
    sink.take(batch(1), topics={"t": "made-anew"})
    assert [row[0] for row in sink.rows()] == [1, 1, 1, 2, 3, 4]


def test_rows_are_upserted_and_deleted(sink: Sink, batch: Batch) -> None:
    sink.take(batch(1, 2, 3), shape=TABLE)
    names = pa.array(["x", None, "y", "z", None])
    again = batch(1, -2, 3, 4, -4).set_column(1, "name", names)
    again = again.set_column(5, OFFSET, pa.array(range(10, 15)))
    for _ in range(2):
        sink.take(again, shape=TABLE)
        assert sink.rows() == [(1, "x"), (3, "y")]
    keys_only = replace(TABLE, key=("id", "name"))
    sink.take(batch(20), shape=keys_only)
    assert sink.rows()[-1] == (20, "n20")


def test_a_row_that_duckdb_does_not_take_is_put_aside(sink: Sink, batch: Batch) -> None:
    sink.file.parent.mkdir()
    sink.run("CREATE TABLE s (id INTEGER CHECK (id <> 3), name VARCHAR)")
    for _ in range(2):  # the second time, nothing but the note knows of it
        [poison] = sink.take(batch(1, 2, 3, 4))
        assert (poison.topic, poison.offset) == ("t", 3)
        assert "CHECK constraint" in poison.cause
    assert [row[0] for row in sink.rows()] == [1, 2, 4]
    assert sink.take(batch(5)) == []


def test_new_columns_are_added(sink: Sink, batch: Batch) -> None:
    sink.take(batch(1))
    more = (Column("tags", "array<string>"), Column("seen", "timestamp"))
    shape = Shape("s", (*COLUMNS, *more))
    rows = batch(2).append_column("tags", pa.array([["x"]]))
    sink.take(rows.append_column("seen", pa.array([0], pa.timestamp("us", "UTC"))), shape=shape)
    assert sink.run("SELECT tags, typeof(seen) FROM s WHERE id = 2") == [
        (["x"], "TIMESTAMP WITH TIME ZONE")
    ]


def test_a_table_that_was_dropped_is_filled_anew(sink: Sink, batch: Batch) -> None:
    sink.take(batch(1))
    sink.run("DROP TABLE s")
    sink.take(batch(1, 2))
    assert [row[0] for row in sink.rows()] == [1, 2]


def test_what_cannot_be_written_is_refused_while_planning(
    sink: Sink, batch: Batch, tmp_path: Path
) -> None:
    assert sink.check() is None
    assert not sink.file.parent.exists()
    sink.take(batch(1))
    assert sink.check() is None
    assert sink.check(Shape("s", (Column("id", "string"),))) == "TARGET_MISMATCH"
    sink.run("ALTER TABLE s ALTER name SET NOT NULL")
    assert sink.check(Shape("s", (Column("id", "int"),))) == "TARGET_MISMATCH"
    assert sink.check(file="relative") == "INVALID_OPTION"
    other = tmp_path / "other"
    other.write_text("this is no database" * 1000)
    assert sink.check(file=str(other)) == "TARGET_REFUSED"
    assert sink.check(file=str(other / "x")) == "TARGET_REFUSED"


def test_a_file_that_somebody_else_has_open_is_waited_for(
    sink: Sink, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink.take(batch(1))
    code = (
        f"import duckdb; c = duckdb.connect({str(sink.file)!r}); print('open', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        assert sink.check() is None
        with monkeypatch.context() as patched, pytest.raises(MainstemError) as caught:
            patched.setattr(target_module, "_WAIT_SECONDS", 0.0)
            sink.take(batch(2))
        assert caught.value.code == "CONNECTOR_UNREACHABLE"
        # it ends while the sink waits
        monkeypatch.setattr(target_module.time, "sleep", lambda _: other.communicate(b"\n"))
        sink.take(batch(2))
    assert [row[0] for row in sink.rows()] == [1, 2]
