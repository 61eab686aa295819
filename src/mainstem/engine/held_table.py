"""A table as it is held: its rows at some offsets, and what happened to rows since, in pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition
from mainstem.engine.few_rows import here, joined, span
from mainstem.vocabulary import Offsets

NEWEST_PIECES = 4
"""So many stay as they are when others are put together or go into the base."""
_FEW = 20_000
"""So many changes are read by one task: Spark then has nothing to send around."""
_FEW_HERE = 5_000
"""So many changes the driver holds as one piece."""
_TASKS = 2
"""For more of them."""


@dataclass(frozen=True)
class Only:
    """Leaves of some rows of a table those that are wanted."""

    choose: Callable[[DataFrame], DataFrame]
    columns: frozenset[str]
    """By the values of which columns it chooses, in small letters; none: it takes all."""

    def __call__(self, rows: DataFrame) -> DataFrame:
        """The rows that are wanted."""
        return self.choose(rows)

    def by_key(self, definition: Definition) -> bool:
        """True when it takes a row, as it was and as it is, or leaves it."""
        return bool(self.columns) and self.columns <= {name.lower() for name in definition.key}


ALL_ROWS = Only(lambda rows: rows, frozenset())


@dataclass(frozen=True)
class Base:
    """The rows of a table at some offsets."""

    identity: str
    end: Offsets
    rows: DataFrame
    count: int
    folder: str | None = None
    """Where they are kept; None: the table has none of them, all are among its changes."""
    here: bool = False
    """True when the driver holds them (`few_rows`)."""


@dataclass(frozen=True)
class Piece:
    """The changes between two positions."""

    start: Offsets
    end: Offsets
    rows: DataFrame
    here: bool = False
    """True when the driver holds them (`few_rows`)."""

    @property
    def count(self) -> int:
        """How many changes there are, at most."""
        return span(self.start, self.end)

    def between(self, start: Offsets, end: Offsets) -> Piece | None:
        """Those of them that lie between two other positions; None when there are none."""
        filled = [p for p, offset in self.end.items() if offset > self.start.get(p, 0)]
        if not any(
            self.start.get(p, 0) < end.get(p, 0) and self.end[p] > start.get(p, 0) for p in filled
        ):
            return None
        if all(
            self.start.get(p, 0) >= start.get(p, 0) and self.end[p] <= end.get(p, 0) for p in filled
        ):
            # no test that is another one for each batch: Spark would compile it each time
            return self
        first = {p: max(offset, start.get(p, 0)) for p, offset in self.start.items()}
        last = {p: min(offset, end.get(p, 0)) for p, offset in self.end.items()}
        rows = self.rows.filter(is_before(end) & ~is_before(start))
        return Piece(first, last, here(rows) if self.here else rows, self.here)


@dataclass(frozen=True)
class Held:
    """A base and what has changed since; a new one takes its place, so readers keep theirs."""

    definition: Definition
    base: Base
    pieces: tuple[Piece, ...]
    """All changes since the base, in the order in which they were read."""
    latest: DataFrame | None
    """The last change of each row among the first `settled` pieces; None when there are none."""
    settled: int
    end: Offsets

    @property
    def changes_rows(self) -> int:
        """How many changes there are since the base, at most."""
        return sum(piece.count for piece in self.pieces)

    @property
    def older_end(self) -> Offsets:
        """Where the older changes end: at least half of them."""
        left = self.changes_rows / 2
        for piece in reversed(self.pieces[-NEWEST_PIECES:]):
            left -= piece.count
            if left < 0:
                return piece.end
        return self.pieces[-NEWEST_PIECES].start

    @property
    def here(self) -> bool:
        """True when the driver holds all of it: to compute with it takes one task."""
        return self.base.here and all(piece.here for piece in self.pieces)

    def reaches_back(self, to: Offsets) -> bool:
        """True when the table is known as it was at these offsets."""
        return all(offset >= self.base.end.get(p, 0) for p, offset in to.items())

    def between(self, start: Offsets, end: Offsets) -> DataFrame:
        """The changes between two positions behind the base."""
        found = [part for piece in self.pieces if (part := piece.between(start, end)) is not None]
        if not found:
            return self.pieces[0].rows.limit(0)
        if len(found) == 1 and not found[0].here:
            return found[0].rows
        return together(found)

    def before(self, start: Offsets, changes: DataFrame) -> DataFrame:
        """The rows that some changes are about, as they were at a position behind the base."""
        ids = F.broadcast(changes.select("_id").distinct())
        latest = latest_of(self.between({}, start).join(ids, "_id", "left_semi"))
        if not self.base.count:
            return latest.filter(~F.col("_gone"))
        return with_changes(self.base.rows.join(ids, "_id", "left_semi"), latest)


def kept(changes: DataFrame, count: int) -> DataFrame:
    """About so many changes, made once."""
    return changes.coalesce(1 if count <= _FEW else _TASKS).localCheckpoint(eager=True)


def as_one(pieces: Sequence[Piece], start: Offsets) -> Piece:
    """Pieces that follow each other, from a position on, as one."""
    end = pieces[-1].end
    count = sum(piece.count for piece in pieces)
    if count <= _FEW_HERE and all(piece.here for piece in pieces):
        return Piece(start, end, joined([piece.rows for piece in pieces]), here=True)
    return Piece(start, end, kept(together(pieces), count))


def together(pieces: Sequence[Piece]) -> DataFrame:
    """All changes of some pieces, in few tasks: each costs more than the rows of a piece do."""
    some = [piece.rows for piece in pieces if not piece.here]
    few = [piece.rows for piece in pieces if piece.here]
    if few:
        some.append(joined(few))
    count = sum(piece.count for piece in pieces)
    rows = reduce(lambda one, other: one.unionByName(other), some)
    return rows.coalesce(1 if count <= _FEW else _TASKS)


def release(kept: DataFrame) -> None:
    """Frees what `localCheckpoint` has kept."""
    kept._jdf.queryExecution().analyzed().rdd().unpersist(False)


def table_columns(rows: DataFrame, definition: Definition) -> DataFrame:
    """The rows with the columns of the table alone."""
    return rows.select(*(F.col(f"`{column.name}`") for column in definition.columns))


def with_changes(base: DataFrame, latest: DataFrame, only: Only = ALL_ROWS) -> DataFrame:
    """Rows, with the last change of some of them."""
    untouched = only(base).join(F.broadcast(latest.select("_id")), "_id", "left_anti")
    return untouched.unionByName(only(latest.filter(~F.col("_gone"))))


def latest_of(changes: DataFrame) -> DataFrame:
    """The last change of each row."""
    everything = F.struct(*(F.col(f"`{name}`") for name in changes.columns))
    last = changes.groupBy("_id").agg(F.max_by(everything, F.col("_offset")).alias("_last"))
    return last.select("_last.*")


def is_before(end: Mapping[int, int]) -> Column:
    """True for changes before these offsets."""
    tests = [(F.col("_partition") == p) & (F.col("_offset") < o) for p, o in end.items()]
    return reduce(lambda one, other: one | other, tests, F.lit(False))
