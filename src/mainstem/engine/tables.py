"""Tables as they are at given offsets of their topics, kept where flows can read them fast.

A table is read from the log once. From then on only what is new is read: `base` holds the rows at
some offsets, as columns in files beside the checkpoints; `changes` what has happened to rows since.
A table at an offset is the base without the rows that have changed, and the last change of each of
those. When the changes have become many, the older half of them goes into a new base; so flows that
lag a little still find what they ask for. An engine that starts takes up the base that it finds.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.decode import read_changes
from mainstem.engine.formats import Formats
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.vocabulary import Offsets

_LEAST_CHANGES_TO_MERGE = 20_000
_SHARE_TO_MERGE = 0.1
_MOST_PIECES = 20
"""Each piece of the changes is read by tasks of its own."""
_READERS_SECONDS = 600.0
"""How long a reader that does not say that it is done may read what is of no use to others."""
_ABOUT = "about"

Only = Callable[[DataFrame], DataFrame]
"""Leaves of some rows those that are wanted."""


def all_rows(rows: DataFrame) -> DataFrame:
    """For who wants all."""
    return rows


@dataclass(frozen=True)
class _Base:
    """The rows of a table at some offsets, in a folder of their own."""

    identity: str
    end: Offsets
    rows: DataFrame
    count: int
    folder: str


@dataclass(frozen=True)
class Piece:
    """The changes between two positions."""

    start: Offsets
    end: Offsets
    rows: DataFrame

    def between(self, start: Offsets, end: Offsets) -> DataFrame | None:
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
            return self.rows
        return self.rows.filter(is_before(end) & ~is_before(start))


@dataclass(frozen=True)
class _Held:
    """A base and what has changed since; a new one takes its place, so readers keep theirs."""

    definition: Definition
    base: _Base
    pieces: tuple[Piece, ...]
    """All changes since the base, in the order in which they were read."""
    latest: DataFrame | None
    """The last change of each row among the first `settled` pieces; None when there are none."""
    settled: int
    changes_rows: int
    end: Offsets
    middle: Offsets
    """Where the changes were half as many as now."""

    def between(self, start: Offsets, end: Offsets) -> DataFrame:
        """The changes between two positions behind the base."""
        found = [rows for piece in self.pieces if (rows := piece.between(start, end)) is not None]
        if not found:
            return self.pieces[0].rows.limit(0)
        return reduce(DataFrame.unionByName, found)


@dataclass(frozen=True)
class Changed:
    """The rows of a table that are not the same at two offsets."""

    before: DataFrame
    after: DataFrame
    records: DataFrame
    """The changes themselves: of a deleted row only the key's columns."""
    count: int
    """How many changes there were, at most."""


@dataclass
class _Retired:
    """What is of no use but to batches that still run."""

    folders: list[tuple[float, str]] = field(default_factory=list)
    changes: list[tuple[float, DataFrame]] = field(default_factory=list)


class Tables:
    """The tables that flows of one engine read. Safe to use from several threads."""

    def __init__(
        self,
        spark: SparkSession,
        connection: Connection,
        admin: Admin,
        checkpoints: Checkpoints,
        formats: Formats,
    ) -> None:
        self._spark = spark
        self._connection = connection
        self._formats = formats
        self._admin = admin
        self._checkpoints = checkpoints
        self._held: dict[str, _Held] = {}
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._retired: dict[str, _Retired] = defaultdict(_Retired)
        self._reading: dict[int, float] = {}
        """Threads that read tables, and since when."""

    def done(self) -> None:
        """The calling thread has no use any more for what it has read."""
        self._reading.pop(threading.get_ident(), None)

    def ends(self, definition: Definition, *, committed: bool = True) -> Offsets:
        """Where the table's topic ends now."""
        return self._admin.end_offsets(definition.topic, committed=committed)

    def at(self, definition: Definition, end: Offsets, only: Only = all_rows) -> DataFrame:
        """The table's rows at these offsets.

        `only` leaves of some rows those that are wanted, by their own columns. It is asked for the
        rows of the base, and then again for those that have changed.
        """
        held = self._upto(definition, end)
        if _reaches_back(held, end):
            return _columns(self._state(held, end, only), definition)
        # a replay from long ago
        begin = self._admin.begin_offsets(definition.topic)
        changes = self._changes_of(definition, begin, end)
        return _columns(only(_latest(changes).filter(~F.col("_gone"))), definition)

    def _changes_of(self, definition: Definition, start: Offsets, end: Offsets) -> DataFrame:
        parts = (self._spark, definition, self._connection, self._formats)
        return read_changes(*parts, start, end)

    def changed(self, definition: Definition, start: Offsets, end: Offsets) -> Changed | None:
        """What is different at `end` from `start`; None when that is long ago."""
        held = self._upto(definition, end)
        if not _reaches_back(held, start):
            return None
        between = held.between(start, end)
        ids = F.broadcast(between.select("_id").distinct())
        before = _with_changes(
            held.base.rows.join(ids, "_id", "left_semi"),
            _latest(held.between({}, start).join(ids, "_id", "left_semi")),
        )
        after = _latest(between).filter(~F.col("_gone"))
        count = sum(max(0, offset - start.get(p, 0)) for p, offset in end.items())
        return Changed(
            _columns(before, definition),
            _columns(after, definition),
            _columns(between, definition),
            count,
        )

    def history(self, definition: Definition, start: Offsets, end: Offsets) -> DataFrame:
        """All that happened to rows between two positions, and before it those rows at `start`.

        The columns are those of `read_changes`.
        """
        held = self._upto(definition, end)
        if _reaches_back(held, start):
            between = held.between(start, end)
            before = self._state(held, start)
        else:
            begin = self._admin.begin_offsets(definition.topic)
            start = {p: max(offset, begin.get(p, 0)) for p, offset in start.items()}
            read = partial(self._changes_of, definition)
            between = read(start, end)
            before = _latest(read(begin, start)).filter(~F.col("_gone"))
        ids = F.broadcast(between.select("_id").distinct())
        return before.join(ids, "_id", "left_semi").unionByName(between)

    def rows_about(self, definition: Definition) -> int:
        """About how many rows the table has; 0 when it was not read yet."""
        held = self._held.get(definition.topic)
        return held.base.count if held else 0

    def identity(self, definition: Definition) -> str:
        """Equal as long as a table is one topic, read in one way, and was not emptied."""
        topic = definition.topic
        begin = sorted(self._admin.begin_offsets(topic).items())
        columns = [[c.name, c.type] for c in definition.columns]
        return json.dumps([self._admin.topic_id(topic), begin, columns, definition.key])

    def _upto(self, definition: Definition, end: Offsets) -> _Held:
        """The table with all changes before `end`, and maybe later ones."""
        topic = definition.topic
        identity = self.identity(definition)
        self._reads()
        with self._locks[topic]:
            held = self._held.get(topic) or self._found(definition, identity)
            if held is None or held.base.identity != identity:
                held = self._load(definition, identity, self._admin.begin_offsets(topic), end)
            elif any(offset > held.end.get(p, 0) for p, offset in end.items()):
                held = self._advance(held, end)
            self._held[topic] = held
            self._clear(topic)
        return held

    def _reads(self) -> None:
        """From now on the calling thread may use what is there, until it is `done`."""
        self._reading.setdefault(threading.get_ident(), time.monotonic())

    def _load(self, definition: Definition, identity: str, begin: Offsets, end: Offsets) -> _Held:
        """The table from the beginning of its topic."""
        end = {p: max(o, begin.get(p, 0)) for p, o in end.items()}
        changes = self._changes_of(definition, begin, end)
        base = self._write(
            definition.topic, identity, _latest(changes).filter(~F.col("_gone")), end
        )
        return self._begun(definition, base)

    def _found(self, definition: Definition, identity: str) -> _Held | None:
        """The newest base that an earlier run of the engine has left, if it is of this table."""
        folders = sorted(self._checkpoints.folders(self._home(definition.topic)))
        found = None
        for folder in reversed(folders):
            about = self._checkpoints.read_note(folder, _ABOUT, 0) if found is None else None
            document = json.loads(about) if about else {}
            if document.get("identity") == identity:
                end = {int(p): o for p, o in document["end"].items()}
                rows = self._spark.read.parquet(f"{folder}/rows")
                base = _Base(identity, end, rows, document["count"], folder)
                found = self._begun(definition, base)
            else:
                self._checkpoints.delete(folder)
        return found

    def _begun(self, definition: Definition, base: _Base) -> _Held:
        at = base.end
        none = _kept(self._changes_of(definition, at, at).limit(0))
        return _Held(definition, base, (Piece(at, at, none),), None, 0, 0, at, at)

    def _advance(self, held: _Held, end: Offsets) -> _Held:
        """What is held, brought up to `end`."""
        end = {p: max(end.get(p, 0), held.end.get(p, 0)) for p in {*end, *held.end}}
        start = {p: held.end.get(p, 0) for p in end}
        read = self._changes_of(held.definition, start, end)
        new = _kept(read)
        if len(held.pieces) >= _MOST_PIECES:
            held = self._together(held)
        rows = held.changes_rows + sum(offset - start[p] for p, offset in end.items())
        middle = held.end if held.changes_rows < rows / 2 else held.middle
        pieces = (*held.pieces, Piece(start, end, new))
        held = replace(held, pieces=pieces, changes_rows=rows, end=end, middle=middle)
        if rows > max(_LEAST_CHANGES_TO_MERGE, held.base.count * _SHARE_TO_MERGE):
            held = self._merged(held)
        return held

    def _together(self, held: _Held) -> _Held:
        """All pieces as one."""
        rows = [piece.rows for piece in held.pieces]
        one = Piece(held.base.end, held.end, _kept(reduce(DataFrame.unionByName, rows)))
        self._retire(held.definition.topic, *rows)
        if held.settled == len(rows):
            return replace(held, pieces=(one,), settled=1)
        if held.latest is not None:
            self._retire(held.definition.topic, held.latest)
        return replace(held, pieces=(one,), latest=None, settled=0)

    def _settled(self, held: _Held) -> _Held:
        """What is held, with the last change of each row. Only who reads whole rows needs it."""
        new = [piece.rows for piece in held.pieces[held.settled :]]
        if not new:
            return held
        latest = _latest(reduce(DataFrame.unionByName, new))
        if held.latest is not None:
            newest = F.broadcast(latest.select("_id"))
            latest = held.latest.join(newest, "_id", "left_anti").unionByName(latest)
            self._retire(held.definition.topic, held.latest)
        latest = _kept(latest)
        return replace(held, latest=latest, settled=len(held.pieces))

    def _state(self, held: _Held, end: Offsets, only: Only = all_rows) -> DataFrame:
        """Rows of the base, with the changes up to `end`."""
        if not held.changes_rows:
            return only(held.base.rows)
        topic = held.definition.topic
        if dict(end) == dict(held.end):
            with self._locks[topic]:
                if self._held[topic] is held:  # else another flow has gone on
                    held = self._held[topic] = self._settled(held)
        latest = held.latest
        if latest is None or dict(end) != dict(held.end) or held.settled < len(held.pieces):
            latest = _latest(held.between({}, end))
        return _with_changes(held.base.rows, latest, only)

    def _merged(self, held: _Held) -> _Held:
        """The changes up to the middle become part of the base."""
        topic, middle = held.definition.topic, held.middle
        rows = _with_changes(held.base.rows, _latest(held.between({}, middle)))
        base = self._write(topic, held.base.identity, rows, middle)
        self._retired[topic].folders.append((time.monotonic(), held.base.folder))
        later = _kept(held.between(middle, held.end))
        self._retire(topic, *(piece.rows for piece in held.pieces))
        if held.latest is not None:
            self._retire(topic, held.latest)
        return replace(
            held,
            base=base,
            pieces=(Piece(middle, held.end, later),),
            latest=None,
            settled=0,
            changes_rows=sum(offset - middle.get(p, 0) for p, offset in held.end.items()),
            middle=held.end,
        )

    def _write(self, topic: str, identity: str, rows: DataFrame, end: Offsets) -> _Base:
        """A new base. Crash before its note is written: the folder is of no use, and goes."""
        folder = f"{self._home(topic)}/{time.time_ns()}"
        rows.write.parquet(f"{folder}/rows")
        written = self._spark.read.parquet(f"{folder}/rows")
        count = written.count()
        about = json.dumps({"identity": identity, "end": end, "count": count})
        self._checkpoints.write_note(folder, _ABOUT, 0, about)
        return _Base(identity, end, written, count, folder)

    def _home(self, topic: str) -> str:
        return self._checkpoints.inside(f"_tables/{topic}")

    def _retire(self, topic: str, *changes: DataFrame) -> None:
        now = time.monotonic()
        self._retired[topic].changes.extend((now, kept) for kept in changes)

    def _clear(self, topic: str) -> None:
        """Removes what nobody reads any more: Spark alone would do so some time, or never."""
        now = time.monotonic()
        limit = max(min([*self._reading.values(), now]), now - _READERS_SECONDS)
        retired = self._retired[topic]
        while retired.folders and retired.folders[0][0] < limit:
            self._checkpoints.delete(retired.folders.pop(0)[1])
        while retired.changes and retired.changes[0][0] < limit:
            release(retired.changes.pop(0)[1])


def _kept(changes: DataFrame) -> DataFrame:
    """The changes, made once."""
    return changes.coalesce(2).localCheckpoint(eager=True)


def release(kept: DataFrame) -> None:
    """Frees what `localCheckpoint` has kept."""
    kept._jdf.queryExecution().analyzed().rdd().unpersist(False)


def _reaches_back(held: _Held, to: Offsets) -> bool:
    return all(offset >= held.base.end.get(p, 0) for p, offset in to.items())


def _columns(rows: DataFrame, definition: Definition) -> DataFrame:
    return rows.select(*(F.col(f"`{column.name}`") for column in definition.columns))


def _with_changes(base: DataFrame, latest: DataFrame, only: Only = all_rows) -> DataFrame:
    """Rows, with the last change of some of them."""
    untouched = only(base).join(F.broadcast(latest.select("_id")), "_id", "left_anti")
    return untouched.unionByName(only(latest.filter(~F.col("_gone"))))


def _latest(changes: DataFrame) -> DataFrame:
    """The last change of each row."""
    everything = F.struct(*(F.col(f"`{name}`") for name in changes.columns))
    last = changes.groupBy("_id").agg(F.max_by(everything, F.col("_offset")).alias("_last"))
    return last.select("_last.*")


def is_before(end: Mapping[int, int]) -> Column:
    """True for changes before these offsets."""
    tests = [(F.col("_partition") == p) & (F.col("_offset") < o) for p, o in end.items()]
    return reduce(lambda one, other: one | other, tests, F.lit(False))
