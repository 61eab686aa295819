"""Rows into files: whole files, each record once, whatever comes again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from mainstem.connect.targets import files
from mainstem.connect.targets.target import Part, Shape
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

SHAPE = Shape("s", (Column("id", "int"), Column("name", "string")))
TABLE = Shape("s", SHAPE.columns, ("id",), upserts=True, deletes=True)
NOON = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)


Batch = Callable[..., pa.Table]
Make = Callable[..., "Sink"]


class Sink:
    def __init__(
        self, part: Callable[..., Part], folder: Path, shape: Shape = SHAPE, **options: str
    ) -> None:
        self._part = part
        self.folder = folder
        self._shape = shape
        self._options = {
            "folder": str(folder), "format": "parquet", "partition_by": "none", **options
        }  # fmt: skip

    def take(self, *batches: pa.Table, finish: bool = True, **changes: Any) -> None:
        target = files.open_target(self._options, self._shape)
        try:
            target.open(self._part(**changes))
            for rows in batches:
                assert target.write(rows) == []
            if finish:
                assert target.finish() == []
        finally:
            target.close()

    def names(self) -> list[str]:
        found = (path for path in self.folder.rglob("*") if path.is_file())
        shown = (str(path.relative_to(self.folder)) for path in found)
        return sorted(name for name in shown if not name.startswith("_mainstem"))

    def ids(self) -> list[int]:
        tables = [pq.read_table(self.folder / name) for name in self.names()]
        return sorted(row for table in tables for row in table["id"].to_pylist())


@pytest.fixture
def sink(part: Callable[..., Part]) -> Make:
    return partial(Sink, part)


def test_a_file_is_named_after_its_records_and_a_replay_changes_nothing(
    sink: Make, batch: Batch, tmp_path: Path
) -> None:
    out = sink(tmp_path / "new" / "folder")
    out.take(batch(3, 4), batch(5))
    before = out.names()
    assert before == ["out-t-AbCdEfGh-0-000000000003-000000000005.parquet"]
    out.take(batch(3, 4), batch(5))
    out.take(batch(4), recovering=True)
    assert out.names() == before
    out.take(batch(5, 6))
    assert out.ids() == [3, 4, 5, 6]


def test_an_unfinished_part_leaves_nothing_that_a_reader_sees(
    sink: Make, batch: Batch, tmp_path: Path
) -> None:
    out = sink(tmp_path)
    out.take(batch(1, 2), finish=False)
    assert out.names() == []


def test_what_a_crash_left_goes_at_the_next_start(
    sink: Make, batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = sink(tmp_path)
    out.take(batch(1, 2))

    def crash(path: Path, data: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(files, "_put", crash)
        out.take(batch(3, 4))
    assert out.ids() == [1, 2, 3, 4], "the files have their names, and no note says so"
    (tmp_path / ".out-t-AbCdEfGh-0-half").write_text("half")
    out.take(batch(3, 4, 5), recovering=True)
    assert out.ids() == [1, 2, 3, 4, 5]
    assert not list(tmp_path.glob(".*"))


def test_a_topic_that_was_made_anew_begins_anew(sink: Make, batch: Batch, tmp_path: Path) -> None:
    out = sink(tmp_path)
    out.take(batch(0, 1))
    out.take(batch(0, 1), topics={"t": "new-topic"}, recovering=True)
    assert out.ids() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("by", "folder"), [("hour", "date=2026-11-16/hour=12/"), ("day", "date=2026-11-16/")]
)
def test_folders_by_time(sink: Make, batch: Batch, tmp_path: Path, by: str, folder: str) -> None:
    out = sink(tmp_path, partition_by=by)
    out.take(pa.concat_tables([batch(1), batch(2, at=None)]))
    known, unknown = out.names()
    assert known.startswith(f"{folder}out-")
    assert unknown.startswith("date=unknown/")


def test_more_folders_than_files_may_be_open(
    sink: Make, batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_MOST_OPEN", 1)
    out = sink(tmp_path, partition_by="hour")
    later = NOON.replace(hour=13)
    out.take(batch(1), batch(2, at=later), batch(3), batch(4, topic="u"))
    assert len(out.names()) == 4
    assert not list(tmp_path.rglob(".*"))


def read_lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


def read_csv(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pacsv.read_csv(file).to_pylist()
    return found


@pytest.mark.parametrize(
    ("format", "shape", "read", "wanted"),
    [
        ("jsonl", SHAPE, read_lines, ['{"id":1,"name":"n1"}']),
        (
            "jsonl",
            TABLE,
            read_lines,
            ['{"id":1,"name":"n1","_deleted":false}', '{"id":2,"_deleted":true}'],
        ),
        ("csv", SHAPE, read_csv, [{"id": 1, "name": "n1"}]),
        (
            "csv",
            TABLE,
            read_lines,
            ['"id","name","_deleted"', '1,"n1",false', "2,,true"],
        ),
    ],
)
def test_formats(
    sink: Make,
    batch: Batch,
    tmp_path: Path,
    format: str,
    shape: Shape,
    read: Callable[[Path], Sequence[Any]],
    wanted: Sequence[Any],
) -> None:
    out = sink(tmp_path, shape, format=format)
    out.take(batch(1, -2) if shape.deletes else batch(1))
    [name] = out.names()
    assert name.endswith(f".{format}")
    assert read(tmp_path / name) == wanted


def test_bytes_in_csv_are_base64(sink: Make, batch: Batch, tmp_path: Path) -> None:
    shape = Shape("s", (Column("data", "binary"),))
    rows = batch(1).append_column("data", pa.array([b"\x00\xff"]))
    out = sink(tmp_path, shape, format="csv")
    out.take(rows)
    [name] = out.names()
    assert read_lines(tmp_path / name) == ['"data"', '"AP8="']


def refusal(shape: Shape = SHAPE, **options: str) -> str:
    with pytest.raises(MainstemError) as caught:
        files.check({"format": "parquet", "partition_by": "none", **options}, shape)
    return caught.value.code


def test_a_folder_that_cannot_be_written_is_refused(
    sink: Make, batch: Batch, tmp_path: Path
) -> None:
    files.check({"folder": str(tmp_path / "a" / "b")}, SHAPE)
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").touch()
    assert refusal(folder="relative") == "INVALID_OPTION"
    assert refusal(folder=str(tmp_path / "file" / "x")) == "TARGET_REFUSED"
    marked = Shape("s", (Column("_Deleted", "int"),), (), deletes=True)
    assert refusal(marked, folder=str(tmp_path)) == "TARGET_MISMATCH"
    with pytest.raises(MainstemError) as caught:
        sink(tmp_path / "file").take(batch(1))
    assert caught.value.code == "TARGET_REFUSED"
