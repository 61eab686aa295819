"""Where the rows of a captured table begin anew within its changes: truncates, repeated snapshots.

When Debezium is stopped while it reads the rows that are there already (a snapshot), it reads them
all again when it comes back. What was deleted in between is in the first, broken snapshot, in no
later one, and in no change. So a snapshot that begins behind anything else counts for what it is:
all rows that there are. One of an empty table has no records; it shows in a change that follows a
snapshot without an end.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.schemas.changes import SNAPSHOT, NotAChange, beginning, snapshot_text

FIRST = ("first", "first_in_data_collection")
LAST = ("last", "last_in_data_collection")
MARKS = (*FIRST, "true", *LAST)
"""Debezium's words for the records of a snapshot of whole tables, read in one go."""
_FEWEST = 64
"""Offsets that are read backwards at first; some are marks of transactions, or of what was aborted.
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is to be known of a change."""

    offset: int
    op: str
    mark: str | None
    """Of a snapshot's record; None for any other."""
    place: str | None
    """Where in the source's log a snapshot began; all of its records have the same."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a look at a batch has found."""

    offset: int | None
    """From which change on the rows are made anew; None: they go on."""
    open: bool
    """True when the batch ends within a snapshot."""


def look(batch: DataFrame, connection: Connection, topic: str) -> Beginning:
    """Reads a batch with regard to where rows begin anew."""
    seen = _turns(batch)
    if not seen:
        return Beginning(None, open=False)
    before = _before(connection, topic, seen[0][0].offset)
    return beginning_in([(before, seen[0][0]), *((last, each) for each, last in seen[1:])])


def beginning_in(turns: Sequence[tuple[Seen | None, Seen]]) -> Beginning:
    """By the changes that differ from the one before them, each with that; the last is the last."""
    offset = None
    for last, each in turns:
        if each.op == "t":
            offset = each.offset + 1
        elif last is not None and _is_anew(last, each):
            offset = each.offset
    mark = turns[-1][1].mark
    return Beginning(offset, open=mark is not None and mark not in LAST)


def suspicious(*, open_: bool) -> Column:
    """True for a change where rows may begin anew; within a snapshot that is all but the next."""
    mark = mark_of()
    found = (F.col("op") == "t") | F.coalesce(mark.isin(*FIRST, *LAST), F.lit(False))
    return found | mark.isNull() if open_ else found


def mark_of() -> Column:
    """What a record of a snapshot is marked with; NULL for any other."""
    said = F.substring_index(SNAPSHOT, " ", 1)
    return F.when((F.col("op") == "r") & said.isin(*MARKS), said)


def _is_anew(last: Seen, each: Seen) -> bool:
    if each.mark is None:
        return last.mark is not None and last.mark not in LAST
    return last.mark is None or last.place != each.place


def _turns(batch: DataFrame) -> list[tuple[Seen, Seen | None]]:
    """The first and the last change, truncates, and where a snapshot begins or ends.

    Each has the one before it in the batch.
    """
    order = Window.partitionBy(F.lit(0)).orderBy("_offset")
    place = F.substring(SNAPSHOT, F.instr(F.col(SNAPSHOT), " ") + 1, F.length(SNAPSHOT))
    told = batch.select("_offset", "op", mark_of().alias("mark"), place.alias("place"))
    told = told.select(
        "*",
        F.lag(F.struct("_offset", "op", "mark", "place")).over(order).alias("last"),
        F.lead("op").over(order).alias("next"),
    )
    last = F.col("last")
    other = ~F.col("mark").eqNullSafe(last.mark) & (F.col("mark").isNull() | last.mark.isNull())
    moved = F.col("mark").isNotNull() & (F.col("place") != last.place)
    edge = last.isNull() | F.col("next").isNull() | (F.col("op") == "t")
    rows = told.where(edge | other | moved).orderBy("_offset").collect()
    return [
        (
            Seen(row["_offset"], row.op, row.mark, row.place),
            None if row["last"] is None else Seen(*row["last"]),
        )
        for row in rows
    ]


def _before(connection: Connection, topic: str, offset: int) -> Seen | None:
    """The change before an offset of a topic with one partition; None: there is none."""
    span = _FEWEST
    while True:
        start = max(0, offset - span)
        records = [
            r for some in read_range(connection, topic, {0: start}, {0: offset}) for r in some
        ]
        for record in reversed(records):
            found = _seen(record.offset, record.value)
            if found is not None:
                return found
        if start == 0:
            return None
        span *= 8


def _seen(offset: int, value: bytes | None) -> Seen | None:
    try:
        begins = beginning(value or b"")
        payload = json.loads((value or b"")[len(begins) : -1])
        mark, _, place = snapshot_text(payload["source"]).partition(" ")
        op: str = payload["op"]
        return Seen(offset, op, mark if op == "r" and mark in MARKS else None, place)
    except (NotAChange, ValueError, KeyError, TypeError):
        return None  # it is in the quarantine
