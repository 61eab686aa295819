"""Rows that a flow keeps by key from one batch for later ones, in files beside its checkpoint.

A batch writes the rows of the keys that it touched, all of them, as one piece under its number.
What is kept of a key is in the newest piece that has the key. When the pieces have become many, a
merged one takes the place of older ones.

A batch that is run again finds all as it was: it reads pieces of earlier batches only, and writes
its own anew. Spark runs none again but the last one, so pieces before that may be merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from mainstem.engine.checkpoints import Checkpoints
from mainstem.vocabulary import HIDDEN_PREFIX

_BATCH = HIDDEN_PREFIX + "batch"
"""Column of the files: the batch that kept a row."""
_NEWEST = HIDDEN_PREFIX + "newest"
_KEPT = "kept"
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

    def before(
        self, batch_id: int, touched: DataFrame, schema: StructType, *, small: bool
    ) -> DataFrame | None:
        """What is kept for the keys of these rows when a batch begins; None: nothing at all.

        `schema` is that of the rows that were written. For a small batch one task does it all.
        """
        session = touched.sparkSession
        pieces = self._pieces(batch_id)
        if len(pieces) > _MANY:
            self._merge(session, pieces, batch_id, schema)
            pieces = self._pieces(batch_id)
        if not pieces:
            return None
        rows = _read(session, pieces, schema)
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

    def write(self, batch_id: int, rows: DataFrame) -> None:
        """Keeps these rows, and of their keys nothing else, for the batches that follow.

        Crash at any point: the batch is run again, and writes them anew.
        """
        path = f"{self._folder}/{batch_id}"
        _write(path, rows.withColumn(_BATCH, F.lit(batch_id).cast("bigint")))

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
        _write(path, self._newest(_read(session, taken, schema)))
        self._checkpoints.write_note(path, _WHOLE, 0, "")

    def _newest(self, rows: DataFrame) -> DataFrame:
        """Of each key only what the newest piece has."""
        by = [F.col(name) for name in self._keys] or [F.col(_BATCH).isNull()]  # the same for all
        newest = F.max(_BATCH).over(Window.partitionBy(*by))
        return rows.withColumn(_NEWEST, newest).filter(f"{_BATCH} = {_NEWEST}").drop(_NEWEST)


def _read(session: SparkSession, pieces: Sequence[_Piece], schema: StructType) -> DataFrame:
    known = StructType([*schema.fields]).add(_BATCH, LongType())
    return session.read.schema(known).parquet(*(piece.rows for piece in pieces))


def _write(path: str, rows: DataFrame) -> None:
    rows.coalesce(_FILES).write.mode("overwrite").parquet(f"{path}/rows")
