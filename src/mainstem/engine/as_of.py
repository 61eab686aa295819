"""Tables as they were, from their own topics.

A table's topic says of each key what its row was from when on, whoever writes it: a flow, a source,
a client. So the rows at a moment are the last records of their keys before it: those whose time is
not later, or whose offset is smaller. No flow is asked again: it might give another answer (late
records, tables that it met as they were), and this is what was served.

What the topic has lost is lost. Kafka may remove a record when a later one has its key
(compaction), so a row that changed after the moment can be missing. It does not touch records that
are younger than `min.compaction.lag.ms`, so a moment within that time is whole; so is a topic
without gaps between its offsets. A flow's transactions leave gaps of one offset. All else is said.
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
from mainstem.engine.held_table import is_before, latest_of, table_columns
from mainstem.engine.ranges import load_between
from mainstem.engine.table_records import changes_in
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.vocabulary import Clock, Offsets

_PLACE = ("_partition", "_offset")


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
        warning = self._warning(definition, raw, begin, stop, time)
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
        time: int | None,
    ) -> str | None:
        if not span({}, stop):
            return None
        info = self._admin.topic(definition.topic)
        config: Mapping[str, str] = {} if info is None else info.config
        name = definition.name
        safe = int(config.get("min.compaction.lag.ms", 0))
        kept = time is not None and self._clock.now() * 1000 - time <= safe
        cut = any(begin.values())
        if kept and not cut:
            return None
        widest, first = _holes(raw, begin, stop, time)
        limited = config.get("retention.ms", "-1") != "-1" or config.get("retention.bytes") != "-1"
        if cut and limited:
            return f"records of {name} are gone by its retention; rows may be missing"
        before = any(offset < begin.get(p, 0) for p, offset in stop.items())
        if cut and (before or first is None):
            return f"{name} was begun anew since; what it had before is gone"
        if not kept and widest > (1 if definition.derived else 0):
            return (
                f"compaction may have removed records of {name}: rows that changed or were deleted "
                "later can be missing. min.compaction.lag.ms of its topic says how long all are "
                "kept"
            )
        return None


def _holes(
    raw: DataFrame, begin: Offsets, stop: Offsets, time: int | None
) -> tuple[int, int | None]:
    """The widest gap between two records before the moment, and the time of the first of them."""
    records = raw.select(
        F.col("partition").alias(_PLACE[0]),
        F.col("offset").alias(_PLACE[1]),
        F.unix_millis("timestamp").alias("at"),
    ).filter(is_before(stop))
    before = F.lag(_PLACE[1]).over(Window.partitionBy(_PLACE[0]).orderBy(_PLACE[1]))
    starts = F.create_map(*(F.lit(n).cast("bigint") for pair in begin.items() for n in pair))
    start = F.try_element_at(starts, F.col(_PLACE[0]).cast("bigint")) - 1
    gap = F.col(_PLACE[1]) - F.coalesce(before, start) - 1
    found = records.select("at", gap.alias("gap"))
    if time is not None:
        found = found.filter(F.col("at") <= time)
    [told] = found.agg(F.max("gap").alias("widest"), F.min("at").alias("first")).collect()
    return told.widest or 0, told.first


def _invalid(definition: Definition, moment: Moment, problem: str) -> MainstemError:
    return MainstemError(
        "INVALID_MOMENT", location=moment.location, name=definition.name, problem=problem
    )
