"""Rows that a flow keeps by key from one batch for later ones, in files beside its checkpoint.

A batch writes the rows of the keys that it touched, all of them, as one piece under its number.
What is kept of a key is in the newest piece that has the key. When the pieces have become many, a
merged one takes the place of older ones. The rows of a small batch are a note, which the driver
reads and writes without a job.

A batch that is run again finds all as it was: it reads pieces of earlier batches only, and writes
its own anew. Spark runs none again but the last one, so pieces before that may be merged.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from io import BytesIO
from pathlib import PurePosixPath

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from mainstem.engine.checkpoints import Checkpoints
from mainstem.vocabulary import HIDDEN_PREFIX

_BATCH = HIDDEN_PREFIX + "batch"
"""Column of the files: the batch that kept a row."""
_NEWEST = HIDDEN_PREFIX + "newest"
_KEPT = "kept"
_FEW = "few"
"""Name of the note that has the rows of a small piece: neither a job nor files are needed."""
_NOT_IN_ARROW = ("interval", "variant")
"""Types that do not come back from there as they were."""
_WHOLE = "whole"
_MANY = 16
"""So many pieces are read together; of more, at least half are merged."""
_MUCH = 4
"""An older piece that is more than so many times as large as all newer ones is left as it is."""
_FILES = 2
"""A piece has as many files."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """What the batches from the first to the last have kept."""

    first: int
    last: int
    path: str

    @property
    def rows(self) -> str:
        return f"{self.path}/rows"

    def within(self, other: _Piece) -> bool:
        return self != other and other.first <= self.first and self.last <= other.last


class KeptRows:
    """What one flow keeps. Called from the flow's own thread, batch by batch."""

    def __init__(self, checkpoints: Checkpoints, folder: str, keys: Sequence[str]) -> None:
        self._checkpoints = checkpoints
        self._folder = f"{folder}/{_KEPT}"
        self._keys = keys
        self._few: dict[str, pa.Table] = {}
        """Small pieces as they were read last, by path."""

    def before(
        self, batch_id: int, touched: DataFrame, schema: StructType, *, small: bool
    ) -> DataFrame | None:
        """What is kept for the keys of these rows when a batch begins; None: nothing at all.

        `schema` is that of the rows that were written. For a small batch one task does it all.
        """
        rows = self._rows(batch_id, touched.sparkSession, schema)
        if rows is None:
            return None
        if small:
            rows = rows.coalesce(1)
        if self._keys:
            names = [f"{key}_touched" for key in self._keys]
            wanted = touched.select(*self._keys).distinct().toDF(*names)
            pairs = zip(self._keys, names, strict=True)
            tests = [rows[key].eqNullSafe(wanted[name]) for key, name in pairs]
            wanted = wanted.hint("merge") if small else F.broadcast(wanted)
            rows = rows.join(wanted, tests, "left_semi")
        return self._newest(rows).drop(_BATCH)

    def all_before(
        self, batch_id: int, session: SparkSession, schema: StructType
    ) -> DataFrame | None:
        """What is kept for all keys when a batch begins; None: nothing at all."""
        rows = self._rows(batch_id, session, schema)
        return None if rows is None else self._newest(rows).drop(_BATCH)

    def write(self, batch_id: int, rows: DataFrame, *, small: bool) -> None:
        """Keeps these rows, and of their keys nothing else, for the batches that follow.

        Crash at any point: the batch is run again, and writes them anew.
        """
        path = f"{self._folder}/{batch_id}"
        rows = rows.withColumn(_BATCH, F.lit(batch_id).cast("bigint"))
        self._few.pop(path, None)
        if small and not any(kind in rows.schema.simpleString() for kind in _NOT_IN_ARROW):
            few = self._few[path] = rows.toArrow()
            self._checkpoints.write_note(path, _FEW, 0, _text(few))
        else:
            self._checkpoints.delete_note(path, _FEW, 0)
            _write(path, rows)

    def _rows(self, batch_id: int, session: SparkSession, schema: StructType) -> DataFrame | None:
        """The rows of all pieces before a batch; None: there are none."""
        pieces = self._pieces(batch_id)
        if len(pieces) > _MANY:
            self._merge(session, pieces, batch_id, schema)
            pieces = self._pieces(batch_id)
        return self._read(session, pieces, schema) if pieces else None

    def _pieces(self, batch_id: int) -> list[_Piece]:
        """The pieces of all batches before this one, the oldest first; what is merged goes."""
        found = []
        for path in self._checkpoints.folders(self._folder):
            first, _, last = PurePosixPath(path).name.partition("-")
            piece = _Piece(int(first), int(last or first), path)
            half = last and self._checkpoints.read_note(path, _WHOLE, 0) is None
            if piece.last < batch_id and not half:
                found.append(piece)
        merged = [piece for piece in found if any(map(piece.within, found))]
        for piece in merged:
            self._checkpoints.delete(piece.path)
        return sorted((p for p in found if p not in merged), key=lambda piece: piece.last)

    def _merge(
        self, session: SparkSession, pieces: list[_Piece], batch_id: int, schema: StructType
    ) -> None:
        """Makes one piece of the newest ones before the last batch, and of older small ones.

        1. Write it. Crash: without its note it counts for nothing, and is written anew.
        2. Write its note. Crash: the pieces that it holds go when the next batch looks for them.
        """
        taken: list[_Piece] = []
        size = 0
        for piece in reversed([p for p in pieces if p.last < batch_id - 1]):
            more = self._checkpoints.size(piece.path)
            if len(taken) >= _MANY // 2 and more > _MUCH * size:
                break
            taken.append(piece)
            size += more
        path = f"{self._folder}/{taken[-1].first}-{taken[0].last}"
        _write(path, self._newest(self._read(session, taken, schema)))
        self._checkpoints.write_note(path, _WHOLE, 0, "")

    def _newest(self, rows: DataFrame) -> DataFrame:
        """Of each key only what the newest piece has."""
        by = [F.col(name) for name in self._keys] or [F.col(_BATCH).isNull()]  # the same for all
        newest = F.max(_BATCH).over(Window.partitionBy(*by))
        return rows.withColumn(_NEWEST, newest).filter(f"{_BATCH} = {_NEWEST}").drop(_NEWEST)

    def _read(
        self, session: SparkSession, pieces: Sequence[_Piece], schema: StructType
    ) -> DataFrame:
        known = StructType([*schema.fields]).add(_BATCH, LongType())
        few = {p.path: table for p in pieces if (table := self._few_of(p)) is not None}
        self._few = few
        files = [piece.rows for piece in pieces if piece.path not in few]
        found = [session.read.schema(known).parquet(*files)] if files else []
        if few:
            found.append(session.createDataFrame(_fitted(few.values(), known.names), known))
        return reduce(DataFrame.unionByName, found)

    def _few_of(self, piece: _Piece) -> pa.Table | None:
        """The rows of a small piece; None: they are in files."""
        if piece.path not in self._few:
            text = self._checkpoints.read_note(piece.path, _FEW, 0)
            return None if text is None else _table(text)
        return self._few[piece.path]


def _fitted(tables: Iterable[pa.Table], names: Sequence[str]) -> pa.Table:
    """All rows with the columns that are asked for: others may have been kept before a change."""
    rows = pa.concat_tables(tables, promote_options="default")
    for name in names:
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows))
    return rows.select(names)


def _text(rows: pa.Table) -> str:
    data = BytesIO()
    with pa.ipc.new_stream(data, rows.schema) as stream:
        stream.write_table(rows)
    return b64encode(data.getvalue()).decode()


def _table(text: str) -> pa.Table:
    return pa.ipc.open_stream(b64decode(text)).read_all()


def _write(path: str, rows: DataFrame) -> None:
    rows.coalesce(_FILES).write.mode("overwrite").parquet(f"{path}/rows")
