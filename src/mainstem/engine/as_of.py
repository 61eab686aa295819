"""Tables as they were, from their own topics.

A table's topic says of each key what its row was from when on, whoever writes it: a flow, a source,
a client. So the rows at a moment are the last records of their keys before it: those whose time is
not later, or whose offset is smaller. No flow is asked again: it might give another answer (late
records, tables that it met as they were), and this is what was served.

What the topic has lost is lost. Kafka may remove a record when a later one has its key
(compaction), so a row that changed after the moment can be missing. Nothing is missing when

- the moment lies within `min.compaction.lag.ms`: records that are younger are not touched;
- there is no gap between the offsets (transactions leave gaps, too, so a gap alone says little);
- the topic cannot have begun a second segment yet, by its age and size: the newest is not touched.

All else is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition, Moment
from mainstem.engine.few_rows import span
from mainstem.engine.formats import Formats
from mainstem.engine.held_table import latest_of, table_columns
from mainstem.engine.ranges import load_between
from mainstem.engine.table_records import changes_in
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.vocabulary import Clock, Offsets

_OVERHEAD = 100
"""Bytes that a record may have beside its key and value."""


@dataclass(frozen=True)
class PastTable:
    """A table as it was."""

    definition: Definition
    rows: DataFrame
    records: int
    """How many records were read."""
    of: int
    at: str
    """The moment, in words."""
    warning: str | None
    """What may be missing; None: nothing."""

    def told(self) -> dict[str, Any]:
        """What an answer says of it."""
        return {
            "stream": self.definition.name,
            "records": self.records,
            "of": self.of,
            "at": self.at,
            "warning": self.warning,
        }


class Past:
    """Looks at tables as they were, for one query: what is `now` is so for all of them."""

    def __init__(
        self,
        session: SparkSession,
        connection: Connection,
        formats: Formats,
        admin: Admin,
        clock: Clock,
    ) -> None:
        self._session = session
        self._connection = connection
        self._formats = formats
        self._admin = admin
        self._clock = clock
        self._times: dict[str, int] = {}

    def table(self, definition: Definition, moment: Moment) -> PastTable:
        """The table at a moment; INVALID_MOMENT."""
        topic = definition.topic
        begin, end = self._admin.begin_offsets(topic), self._admin.end_offsets(topic)
        if moment.time is None:
            stop = self._offsets(definition, moment, begin, end)
            time = None
            at = "offsets " + ", ".join(f"{p}: {o}" for p, o in sorted(stop.items()))
        else:
            time = self._time(definition, moment)
            # times need not rise within a partition: all records are looked at
            stop = end
            at = datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="milliseconds")
        start = {p: min(offset, stop[p]) for p, offset in begin.items()}
        raw = load_between(
            self._session, definition, self._connection, (), {topic: start}, {topic: stop}
        )
        seen = raw if time is None else raw.filter(F.unix_millis("timestamp") <= F.lit(time))
        changes = changes_in(seen, definition, self._formats)
        rows = table_columns(latest_of(changes).filter(~F.col("_gone")), definition)
        warning = self._warning(definition, raw, begin, stop, end, time)
        return PastTable(definition, rows, span(start, stop), span(begin, end), at, warning)

    def _time(self, definition: Definition, moment: Moment) -> int:
        """The moment in milliseconds; all mentions of one text mean the same."""
        text = str(moment.time)
        if text not in self._times:
            try:
                # the parser let literals and a few functions through, nothing else
                made = self._session.sql(f"SELECT unix_millis(CAST(({text}) AS TIMESTAMP)) AS at")
                found = made.collect()[0].at
            except PySparkException:
                found = None
            if found is None:
                raise _invalid(definition, moment, f"{text} is no time")
            self._times[text] = found
        time = self._times[text]
        if time > self._clock.now() * 1000:
            raise _invalid(definition, moment, f"{text} is yet to come")
        return time

    def _offsets(
        self, definition: Definition, moment: Moment, begin: Offsets, end: Offsets
    ) -> dict[int, int]:
        given = dict(moment.offsets)
        for partition, offset in given.items():
            if partition not in end:
                raise _invalid(definition, moment, f"its topic has no partition {partition}")
            if offset > end[partition]:
                problem = f"partition {partition} of its topic ends at offset {end[partition]}"
                raise _invalid(definition, moment, problem)
        return {p: given.get(p, offset) for p, offset in begin.items()}

    def _warning(
        self,
        definition: Definition,
        raw: DataFrame,
        begin: Offsets,
        stop: Offsets,
        end: Offsets,
        time: int | None,
    ) -> str | None:
        """What may be missing of a table, whose records up to `stop` are given."""
        name = definition.name
        if not span({}, stop):
            return None
        info = self._admin.topic(definition.topic)
        config: Mapping[str, str] = {} if info is None else info.config
        now = int(self._clock.now() * 1000)
        kept = time is not None and now - time <= int(config.get("min.compaction.lag.ms", 0))
        cut = any(begin.values())
        if kept and not cut:
            return None
        parts = _parts(raw, begin, time)
        limited = any(config.get(f"retention.{unit}", "-1") != "-1" for unit in ("ms", "bytes"))
        if cut and limited:
            return f"records of {name} are gone by its retention; rows may be missing"
        earlier = any(offset < begin.get(p, 0) for p, offset in stop.items())
        if cut and (earlier or not any(part.seen for part in parts.values())):
            return f"{name} was begun anew since; what it had before is gone"
        if kept:
            return None
        ages = (int(config.get(name, 0)) for name in ("segment.ms", "max.compaction.lag.ms"))
        oldest = now - min(ages) + int(config.get("segment.jitter.ms", 0))
        most = int(config.get("segment.bytes", 0))
        for partition, offset in stop.items():
            first = begin.get(partition, 0)
            part = parts.get(partition)
            if part is None:
                lost = offset > first
            else:
                size = (end[partition] - first) * (part.size + _OVERHEAD)
                several = part.first > first or part.oldest < oldest or size >= most
                lost = several and (part.gap > 0 or offset > part.last + 1)
            if lost:
                return (
                    f"compaction may have removed records of {name}: rows that changed or were "
                    "deleted later can be missing. min.compaction.lag.ms of its topic says how "
                    "long all are kept"
                )
        return None


def _parts(raw: DataFrame, begin: Offsets, time: int | None) -> dict[int, Any]:
    """What each partition has, by its number.

    The `first` and the `last` offset, the `oldest` time, the mean `size`; how many are `seen` at
    the moment, and the widest `gap` before one of them or the next record.
    """
    bytes_of = (F.coalesce(F.octet_length(name), F.lit(0)) for name in ("key", "value"))
    records = raw.select(
        "partition",
        F.col("offset").alias("at"),
        F.unix_millis("timestamp").alias("time"),
        sum(bytes_of, F.lit(0)).alias("size"),
    )
    order = Window.partitionBy("partition").orderBy("at")
    starts = F.create_map(*(F.lit(n).cast("bigint") for pair in begin.items() for n in pair))
    start = F.try_element_at(starts, F.col("partition").cast("bigint")) - 1
    before, before_time = F.lag("at").over(order), F.lag("time").over(order)
    seen, counts = F.lit(True), F.lit(True)
    if time is not None:
        seen = F.col("time") <= time
        counts = seen | F.coalesce(before_time <= time, F.lit(True))
    gap = F.when(counts, F.col("at") - F.coalesce(before, start) - 1)
    told = records.select("*", gap.alias("gap")).groupBy("partition")
    found = told.agg(
        F.min("at").alias("first"),
        F.max("at").alias("last"),
        F.min("time").alias("oldest"),
        F.avg("size").alias("size"),
        F.count_if(seen).alias("seen"),
        F.coalesce(F.max("gap"), F.lit(0)).alias("gap"),
    )
    return {row.partition: row for row in found.collect()}


def _invalid(definition: Definition, moment: Moment, problem: str) -> MainstemError:
    return MainstemError(
        "INVALID_MOMENT", location=moment.location, name=definition.name, problem=problem
    )
