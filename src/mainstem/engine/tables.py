"""Tables as they are at given offsets of their topics, kept in Spark's memory.

A table is read from the log once. From then on only what is new is read: `base` holds the rows at
some offsets, `changes` what has happened to rows since. A table at an offset is the base without
the rows that have changed, and the last change of each of those. When the changes have become many,
the older half of them goes into the base; so flows that lag a little still find what they ask for.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition
from mainstem.engine.decode import read_changes
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.vocabulary import Offsets

_LEAST_CHANGES_TO_MERGE = 20_000
_SHARE_TO_MERGE = 0.1


@dataclass(frozen=True)
class _Held:
    """What is in memory of one table; a new one takes its place, so readers keep theirs."""

    definition: Definition
    base: DataFrame
    base_end: Offsets
    changes: DataFrame
    changes_rows: int
    end: Offsets
    middle: Offsets
    """Where the changes were half as many as now."""


class Tables:
    """The tables that flows of one engine read. Safe to use from several threads."""

    def __init__(self, spark: SparkSession, connection: Connection, admin: Admin) -> None:
        self._spark = spark
        self._connection = connection
        self._admin = admin
        self._held: dict[str, _Held] = {}
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    def ends(self, definition: Definition) -> Offsets:
        """Where the table's topic ends now."""
        return self._admin.end_offsets(definition.topic)

    def at(self, definition: Definition, end: Offsets) -> DataFrame:
        """The table's rows at these offsets."""
        begin = self._admin.begin_offsets(definition.topic)
        with self._locks[definition.topic]:
            held = self._held.get(definition.topic)
            if held is None or not _fits(held, definition, begin):
                held = self._load(definition, begin, end)
            elif any(offset > held.end.get(p, 0) for p, offset in end.items()):
                held = self._advance(held, end)
            self._held[definition.topic] = held
        if any(offset < held.base_end.get(p, 0) for p, offset in end.items()):
            return _rows(self._load(definition, begin, end), end)  # a replay from long ago
        return _rows(held, end)

    def forget(self, topic: str) -> None:
        """Drops what is in memory of a table."""
        with self._locks[topic]:
            self._held.pop(topic, None)

    def _load(self, definition: Definition, begin: Offsets, end: Offsets) -> _Held:
        end = {p: max(o, begin.get(p, 0)) for p, o in end.items()}
        changes = read_changes(self._spark, definition, self._connection, begin, end)
        base = _kept(_latest(changes).filter(~F.col("_gone")))
        none = self._spark.createDataFrame([], changes.schema)
        return _Held(definition, base, end, none, 0, end, end)

    def _advance(self, held: _Held, end: Offsets) -> _Held:
        """What is held, brought up to `end`."""
        end = {p: max(end.get(p, 0), held.end.get(p, 0)) for p in {*end, *held.end}}
        start = {p: held.end.get(p, 0) for p in end}
        new = read_changes(self._spark, held.definition, self._connection, start, end)
        changes = _kept(held.changes.unionByName(new).coalesce(2))
        rows = changes.count()
        middle = held.end if held.changes_rows < rows / 2 else held.middle
        held = replace(held, changes=changes, changes_rows=rows, end=end, middle=middle)
        if rows > _LEAST_CHANGES_TO_MERGE and rows > held.base.count() * _SHARE_TO_MERGE:
            held = _merged(held)
        return held


def _fits(held: _Held, definition: Definition, begin: Offsets) -> bool:
    """False when the table is another one now, or its topic was emptied."""
    same = (held.definition.columns, held.definition.key) == (definition.columns, definition.key)
    return same and all(held.end.get(p, 0) >= offset for p, offset in begin.items())


def _merged(held: _Held) -> _Held:
    """The changes up to the middle become part of the base."""
    middle = held.middle
    base = _kept(_with_changes(held.base, _before(held.changes, middle)))
    changes = _kept(held.changes.filter(~_is_before(middle)).coalesce(2))
    return replace(
        held,
        base=base,
        base_end=middle,
        changes=changes,
        changes_rows=changes.count(),
        middle=held.end,
    )


def _rows(held: _Held, end: Offsets) -> DataFrame:
    rows = held.base
    if held.changes_rows:
        changes = held.changes
        if dict(end) != dict(held.end):
            changes = _before(changes, end)
        rows = _with_changes(held.base, changes)
    return rows.select(*(F.col(f"`{c.name}`") for c in held.definition.columns))


def _with_changes(base: DataFrame, changes: DataFrame) -> DataFrame:
    last = _latest(changes)
    untouched = base.join(F.broadcast(last.select("_id")), "_id", "left_anti")
    return untouched.unionByName(last.filter(~F.col("_gone")))


def _latest(changes: DataFrame) -> DataFrame:
    """The last change of each row."""
    everything = F.struct(*(F.col(f"`{name}`") for name in changes.columns))
    last = changes.groupBy("_id").agg(F.max_by(everything, F.col("_offset")).alias("_last"))
    return last.select("_last.*")


def _before(changes: DataFrame, end: Mapping[int, int]) -> DataFrame:
    return changes.filter(_is_before(end))


def _is_before(end: Mapping[int, int]) -> Column:
    tests = [(F.col("_partition") == p) & (F.col("_offset") < o) for p, o in end.items()]
    return reduce(lambda one, other: one | other, tests, F.lit(False))


def _kept(rows: DataFrame) -> DataFrame:
    """The rows, computed and kept, without the way that they came about."""
    return rows.localCheckpoint(eager=True)
