"""Rows into lake tables: one commit for each batch, each record once, whatever comes again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mainstem.connect.catalogue import spec_of
from mainstem.connect.spec import Role
from mainstem.connect.targets import delta, iceberg, iceberg_files, lake
from mainstem.connect.targets.target import (
    GONE,
    ID,
    OFFSET,
    Part,
    Poison,
    Shape,
    committer_of,
    module_of,
)
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

COLUMNS = (Column("id", "int"), Column("name", "string"))
STREAM = Shape("s", COLUMNS)
TABLE = Shape("s", COLUMNS, ("id",), upserts=True, deletes=True)
Batch = Callable[..., pa.Table]


class Sink:
    """A sink to a table of either kind, with as many runs as it takes."""

    def __init__(
        self, kind: str, folder: Path, part: Callable[..., Part], shape: Shape, **options: str
    ) -> None:
        where = {"folder": str(folder / "t")} if kind == "delta" else {"warehouse": str(folder)}
        self.kind = kind
        self.options = spec_of(Role.SINK, kind).validate(where | options)
        self.shape = shape
        self._part = part
        self.start()

    def start(self) -> None:
        """A new run."""
        made = committer_of(self.kind, self.options, self.shape, "out")
        assert isinstance(made, lake.LakeCommitter)
        self.committer = made
        self.prepared = made.prepare()

    def stage(self, *batches: pa.Table, **changes: Any) -> tuple[str, Sequence[Poison]]:
        """What a task does."""
        target = module_of(self.kind).open_target(self.options, self.shape)
        assert isinstance(target, lake.StagedPart)
        part = self._part(prepared=self.prepared)
        target.open(replace(part, **changes))
        poison = [one for rows in batches for one in target.write(rows)]
        poison += target.finish()
        target.close()
        return target.staged(), poison

    def take(self, *batches: pa.Table, **changes: Any) -> None:
        """One batch of one part."""
        self.committer.commit([self.stage(*batches, **changes)[0]])

    @property
    def table(self) -> Any:
        table = self.committer._table
        assert isinstance(table, delta.DeltaLake | iceberg.IcebergLake)
        found = table.load()
        assert found is not None
        return found

    def rows(self) -> list[dict[str, Any]]:
        if self.kind == "iceberg":
            found = self.table.scan().to_arrow()
        else:
            found = pa.table(self.table.to_pyarrow_table())
        return sorted(found.to_pylist(), key=str)

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.rows())

    def commits(self) -> int:
        if self.kind == "iceberg":
            return len(self.table.snapshots())
        return int(self.table.version())

    def staged(self, folder: Path) -> list[Path]:
        return list(folder.rglob("_mainstem/**/*.parquet"))


Make = Callable[..., Sink]


@pytest.fixture(params=["delta", "iceberg"])
def sink(request: pytest.FixtureRequest, tmp_path: Path, part: Callable[..., Part]) -> Make:
    def make(shape: Shape = STREAM, **options: str) -> Sink:
        return Sink(request.param, tmp_path, part, shape, **options)

    return make


def test_the_parts_of_a_batch_are_one_commit_and_come_once(
    sink: Make, batch: Batch, tmp_path: Path
) -> None:
    out = sink()
    before = out.commits()
    parts = [out.stage(batch(3, 4), batch(5))[0], out.stage(batch(7, topic="u"))[0]]
    assert out.ids() == [], "what is staged, no reader sees"
    out.committer.commit(parts)
    assert out.ids() == [3, 4, 5, 7]
    assert out.commits() == before + 1
    assert out.staged(tmp_path) == []
    # the driver died before Spark noted the batch: the tokens say the same, the files are gone
    out.start()
    out.committer.commit(parts)
    # the sink begins anew, and its batches are others
    out.take(batch(3, 4, 5, 6))
    assert out.ids() == [3, 4, 5, 6, 7]
    assert out.commits() == before + 2


def test_a_driver_that_died_before_the_commit(sink: Make, batch: Batch, tmp_path: Path) -> None:
    out = sink()
    out.stage(batch(1))
    token, _ = out.stage(batch(1, 2))
    out.start()
    out.committer.commit([token])
    assert out.ids() == [1, 2]
    assert len(out.staged(tmp_path)) == 1, "what a task left that had no token"
    out.start()
    out.take(batch(3), batch=1)
    assert out.staged(tmp_path) == []


def test_an_older_driver_commits_nothing_twice(
    sink: Make, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = sink()
    token, _ = old.stage(batch(1, 2))
    young = sink()
    other, _ = young.stage(batch(1, 2, 3))
    table = young.committer._table
    look = table.positions

    def late(ids: Sequence[str]) -> Mapping[str, int]:
        """Between this look and the commit, the older driver commits."""
        found = look(ids)
        monkeypatch.setattr(table, "positions", look)
        old.committer.commit([token])
        return found

    monkeypatch.setattr(table, "positions", late)
    young.committer.commit([other])
    assert young.ids() == [1, 2, 3]


def test_staged_rows_that_are_gone_are_said(sink: Make, batch: Batch, tmp_path: Path) -> None:
    out = sink()
    token, _ = out.stage(batch(1))
    for file in out.staged(tmp_path):
        file.unlink()
    with pytest.raises(MainstemError) as caught:
        out.committer.commit([token])
    assert caught.value.code == "TARGET_REFUSED"


def test_rows_are_upserted_and_deleted(sink: Make, batch: Batch) -> None:
    out = sink(TABLE)
    out.take(batch(1, 2, 3))
    again = batch(1, 2, -3, 4, -4)
    names = pa.array(["x", "y", None, "z", None])
    again = again.set_column(1, "name", names).set_column(5, OFFSET, pa.array(range(10, 15)))
    out.take(again)
    assert out.rows() == [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}]
    out.take(batch(-1))
    assert out.ids() == [1, 2], "an older deletion changes nothing"
    out.take(batch(-1, -2).set_column(5, OFFSET, pa.array([20, 21])))
    assert out.ids() == []
    out.take(batch(-30))
    assert out.ids() == []


@pytest.mark.parametrize("few", [0, 200])
def test_keys_of_several_columns_and_null(
    sink: Make, batch: Batch, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(iceberg_files, "_FEW_KEYS", few)
    shape = replace(TABLE, key=("id", "name"), columns=(*COLUMNS, Column("n", "int")))

    def rows(offset: int, *given: tuple[int | None, str | None, int]) -> pa.Table:
        made = batch(*range(offset, offset + len(given)))
        columns = [pa.array(list(c)) for c in zip(*given, strict=True)]
        made = made.set_column(0, "id", columns[0].cast(pa.int32()))
        made = made.set_column(1, "name", columns[1].cast(pa.string()))
        made = made.append_column("n", columns[2].cast(pa.int32()))
        keys = [f"{i}{n}" for i, n, _ in given]
        return made.set_column(made.column_names.index(ID), ID, [keys])

    out = sink(shape)
    out.take(rows(0, (1, "a", 1), (1, "b", 2), (2, "a", 3), (None, "a", 4)))
    out.take(rows(10, (1, "a", 5), (2, "b", 6), (None, "a", 7), (None, None, 8)))
    found = {(row["id"], row["name"]): row["n"] for row in out.rows()}
    assert found == {
        (1, "a"): 5, (1, "b"): 2, (2, "a"): 3, (2, "b"): 6, (None, "a"): 7, (None, None): 8
    }  # fmt: skip
    assert len(out.rows()) == 6


def test_a_table_of_one_row(sink: Make, batch: Batch) -> None:
    out = sink(replace(TABLE, key=()))
    one = pa.array(["{}", "{}"])
    out.take(batch(1, 2).set_column(8, ID, one))
    out.take(batch(3, 4).set_column(8, ID, one))
    assert out.ids() == [4]
    out.take(batch(5, -6).set_column(8, ID, one))
    assert out.ids() == []


def test_new_columns_are_added(sink: Make, batch: Batch) -> None:
    out = sink()
    out.take(batch(1))
    out.shape = Shape("s", (*COLUMNS, Column("tags", "array<string>")))
    out.start()
    tags = pa.array([["x"]], pa.list_(pa.string()))
    out.take(batch(2).append_column("tags", tags))
    assert [row["tags"] for row in out.rows()] == [None, ["x"]]
    # a column that is gone from the source stays
    out.shape = STREAM
    out.start()
    out.take(batch(3))
    assert out.ids() == [1, 2, 3]


def test_tables_are_divided_by_time(sink: Make, batch: Batch) -> None:
    out = sink(partition_by="hour")
    evening = datetime(2026, 11, 16, 23, 59, tzinfo=UTC)
    out.take(batch(1), batch(2, at=evening), batch(3, at=None))
    day = evening.date()
    found = [(row["id"], row["date"], row["hour"]) for row in out.rows()]
    assert sorted(found) == [(1, day, 12), (2, day, 23), (3, None, None)]
    assert code(out, partition_by="none") == "TARGET_MISMATCH"
    assert code(out, Shape("s", (Column("hour", "int"),)), partition_by="hour") == "TARGET_MISMATCH"
    assert code(out, TABLE, partition_by="hour") == "INVALID_OPTION"


def test_small_files_become_larger_ones(
    sink: Make, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iceberg_files, "_FEW", 2)
    options = {"compact_every": "3"}
    out = sink(**options)
    for offset in range(7):
        out.take(batch(offset))
    assert out.ids() == list(range(7))
    files = out.table.inspect.files() if out.kind == "iceberg" else out.table.file_uris()
    assert len(files) == 1
    # and the positions are still known
    out.take(batch(5, 6))
    assert out.ids() == list(range(7))


def test_a_row_that_lacks_what_the_table_demands_is_put_aside(
    sink: Make, batch: Batch, tmp_path: Path
) -> None:
    out = sink()
    strict = pa.schema([pa.field("id", pa.int32()), pa.field("name", pa.string(), nullable=False)])
    make_table(out, "strict", strict, tmp_path)
    out.start()
    token, poison = out.stage(batch(1, -2).set_column(7, GONE, [[False, False]]))
    assert [one.offset for one in poison] == [2]
    assert "takes no NULL" in poison[0].cause
    out.committer.commit([token])
    assert out.ids() == [1]


def test_columns_of_a_table_that_was_there_keep_their_names(
    sink: Make, batch: Batch, tmp_path: Path
) -> None:
    out = sink(TABLE)
    there = pa.schema([("ID", pa.int64()), ("date", pa.date32()), ("Name", pa.string())])
    make_table(out, "theirs", there, tmp_path)
    module_of(out.kind).check(out.options, TABLE)
    out.start()
    out.take(batch(1, 2, 3))
    out.take(batch(4, -5).set_column(0, "id", pa.array([1, 2], pa.int32())))
    assert out.rows() == [
        {"ID": 1, "date": None, "Name": "n4"},
        {"ID": 3, "date": None, "Name": "n3"},
    ]


def make_table(out: Sink, name: str, schema: pa.Schema, folder: Path) -> None:
    """Makes a table as somebody else would, and has the sink write there."""
    if out.kind == "delta":
        import deltalake

        deltalake.DeltaTable.create(str(folder / name), schema)
        out.options = {**out.options, "folder": str(folder / name)}
    else:
        out.committer._table._catalog.create_table(f"default.{name}", schema)  # type: ignore[attr-defined]
        out.options = {**out.options, "table": name}


def code(out: Sink, shape: Shape | None = None, **options: Any) -> str:
    with pytest.raises(MainstemError) as caught:
        module_of(out.kind).check({**out.options, **options}, shape or out.shape)
    return caught.value.code


def test_what_cannot_be_written_is_refused_while_planning(sink: Make, tmp_path: Path) -> None:
    out = sink()
    module = module_of(out.kind)
    module.check(out.options, out.shape)
    wider = Shape("s", (Column("id", "bigint"), Column("name", "string")))
    assert code(out, wider) == "TARGET_MISMATCH"
    assert code(out, Shape("s", (Column("id", "interval day"),))) == "TARGET_MISMATCH"
    place = "folder" if out.kind == "delta" else "warehouse"
    assert code(out, **{place: "relative"}) == "INVALID_OPTION"
    assert code(out, **{place: "s3://"}) == "INVALID_OPTION"
    (tmp_path / "file").touch()
    assert code(out, **{place: str(tmp_path / "file" / "x")}) == "TARGET_REFUSED"
    new = tmp_path / "not" / "yet"
    module.check({**out.options, place: str(new)}, out.shape)
    assert not new.exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    module.check({**out.options, place: str(empty)}, out.shape)
    assert list(empty.iterdir()) == []
    away = {place: "s3://lake/x", "s3_endpoint": "http://127.0.0.1:1", "s3_region": "x"}
    away |= {"s3_access_key": "a", "s3_secret_key": "b"}
    if out.kind == "iceberg":
        away = {"catalog": "http://127.0.0.1:1"}
        assert code(out, warehouse="s3://lake") == "INVALID_OPTION"
    assert code(out, **away) == "CONNECTOR_UNREACHABLE"


def test_a_delta_table_whose_rules_could_stop_a_batch_is_refused(
    tmp_path: Path, part: Callable[..., Part]
) -> None:
    out = Sink("delta", tmp_path, part, STREAM)
    assert code(out, Shape("s", (Column("full name", "string"),))) == "TARGET_MISMATCH"
    out.table.alter.add_constraint({"positive": "id > 0"})
    assert code(out) == "TARGET_MISMATCH"


def test_types_come_back_as_they_were(sink: Make, batch: Batch) -> None:
    kinds = {
        "i8": ("tinyint", pa.array([1], pa.int8())),
        "dec": ("decimal(10,2)", pa.array([1], pa.int32()).cast(pa.decimal128(12, 2))),
        "day": ("date", pa.array([date(2026, 1, 1)])),
        "at": ("timestamp", pa.array([0], pa.timestamp("us", "UTC"))),
        "local": ("timestamp_ntz", pa.array([0], pa.timestamp("us"))),
        "raw": ("binary", pa.array([b"\x00"])),
        "m": ("map<string,int>", pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32()))),
        "s": ("struct<a:int>", pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))),
        "f": ("float", pa.array([0.5], pa.float32())),
        "v": ("variant", pa.array(['{"x":1}'])),
    }  # fmt: skip
    out = sink(Shape("s", tuple(Column(name, kind) for name, (kind, _) in kinds.items())))
    rows = batch(1)
    for name, (_, values) in kinds.items():
        rows = rows.append_column(name, values)
    out.take(rows)
    [found] = out.rows()
    assert found == {name: values[0].as_py() for name, (_, values) in kinds.items()}
