"""APPLY LATE: the windows that late records missed, computed again from the log.

1. Take the transactional id of corrections of the table. That ends an older one that hangs, and
   the flow takes the same id before it empties a table that is rebuilt. Then look whether the flow
   is still the table's: what was asked for another one, or while a backfill is being taken over,
   is refused. Crash: nothing was written.
2. Read which windows wait in the ledger, and compute their groups from the input's log. A window
   is there because it was closed before the record came: the flow has let go of it, and writes no
   row of it any more. Crash: nothing was written.
3. Write the rows, and the mark in the ledger, in one transaction; so are rows that break rules of
   the table put into the quarantine, and counted. Crash before the commit: nothing is visible, and
   the windows still wait. Crash behind it: all is done, and asking again finds nothing that waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.definitions.asked import Asked
from mainstem.definitions.late import WINDOW, LateQueries, late_queries
from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.options import milliseconds
from mainstem.definitions.stream_filters import check_filters
from mainstem.engine.compile import compile_range
from mainstem.engine.encode import encode
from mainstem.engine.formats import Formats
from mainstem.engine.judged import Judge
from mainstem.engine.times import MAX_AHEAD
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.late import LateRecords, Ledger, Window, applied_entry
from mainstem.log.producer import Outgoing, TransactionalProducer
from mainstem.log.rule_counts import RuleCounts, counted, read_rule_counts, writer_of
from mainstem.vocabulary import (
    LATE_TOPIC,
    QUARANTINE_COUNTS_TOPIC,
    QUARANTINE_TOPIC,
    Offsets,
    group_of,
)

_COUNTING = "late"
"""Under this name corrections count for their flow."""

_SHAPE = (
    "It is for tables that group one stream by one window over its event time, with a watermark, "
    "from the beginning of the stream."
)


def corrections_of(name: str) -> str:
    """The transactional id under which a table is corrected."""
    return group_of(f"late.{name}")


def apply_late(
    session: SparkSession,
    connection: Connection,
    admin: Admin,
    ledger: Ledger,
    formats: Formats,
    flow: str,
    definition: Definition,
    inputs: list[Definition],
    is_live: Callable[[str], bool],
    now: float,
) -> dict[str, Any]:
    """Corrects a table; says how many records, windows and rows that were.

    `is_live` tells whether a flow is the one that writes its table now. A window's row that breaks
    a rule is deleted; one that says `fail` refuses it all, with RULE_STOPS_ROW.
    """
    queries = _queries(definition, inputs)
    producer = TransactionalProducer(connection, corrections_of(definition.name))
    try:
        if not is_live(flow):
            raise MainstemError("TABLE_BEGINS_ANEW", name=definition.name)
        ledger.refresh()
        waiting = ledger.of(flow)
        if not waiting.entries:
            return {"records": 0, "windows": 0, "rows": 0}
        read = (connection, admin, formats)
        found = _corrected(session, *read, queries, definition, inputs[0], waiting)
        judge = Judge(definition, flow, now, takes_back=True) if definition.rules else None
        rows, kept, broken = _judged(found, judge)
        up_to = waiting.entries[-1][0] + 1
        writer = writer_of(definition.name, flow, _COUNTING)
        counts = read_rule_counts(connection, admin, writer) if broken else RuleCounts()
        with producer.transaction() as transaction:
            transaction.send(definition.topic, rows)
            transaction.send(LATE_TOPIC, [applied_entry(flow, up_to)])
            transaction.send(QUARANTINE_TOPIC, kept)
            if broken:
                after = counts.and_more(broken, {})
                transaction.send(QUARANTINE_COUNTS_TOPIC, [counted(writer, after)])
    finally:
        producer.close()
    return {
        "records": len(waiting.entries),
        "windows": len(waiting.windows),
        "rows": len(rows),
    }


def _queries(definition: Definition, inputs: list[Definition]) -> LateQueries:
    queries = late_queries(definition, inputs)
    if definition.kind is not Kind.TABLE or definition.start != "earliest" or queries is None:
        raise MainstemError(
            "NOT_SUPPORTED", what=f'"{definition.name}"', where="APPLY LATE", advice=_SHAPE
        )
    assert definition.query is not None
    check_filters(Asked.of(definition.query), inputs)
    return queries


def _corrected(
    session: SparkSession,
    connection: Connection,
    admin: Admin,
    formats: Formats,
    queries: LateQueries,
    definition: Definition,
    source: Definition,
    waiting: LateRecords,
) -> pa.Table:
    """The records that make the windows right: rows, and deletes of those that do not count."""
    windows = sorted(waiting.windows)
    first, last = windows[0][0], max(end for _, end in windows)
    between = _range(admin, source, first)
    rows = compile_range(
        session, queries.groups, source, connection, formats, between, (first, last)
    )
    return encode(_only(rows, session, windows), definition, formats).toArrow()


def _judged(
    found: pa.Table, judge: Judge | None
) -> tuple[list[Outgoing], list[Outgoing], Counter[str]]:
    """What is written to the table and to the quarantine, and how often each rule was broken."""
    rows: list[Outgoing] = []
    kept: list[Outgoing] = []
    broken: Counter[str] = Counter()
    for batch in found.to_batches():
        keys, values = batch.column(0).to_pylist(), batch.column(1).to_pylist()
        if judge is not None:
            (_, keys, values, *_), aside = judge.sorted(batch, broken)
            kept += aside
        rows += map(Outgoing, keys, values)
    return rows, kept, broken


def _only(rows: DataFrame, session: SparkSession, windows: list[Window]) -> DataFrame:
    """The rows of these windows, without the column that says so."""
    columns = {"first": [w[0] for w in windows], "last": [w[1] for w in windows]}
    wanted = session.createDataFrame(pa.table(columns))
    window = F.col(WINDOW)
    same = (window.getField("start") == wanted["first"].cast("timestamp")) & (
        window.getField("end") == wanted["last"].cast("timestamp")
    )
    return rows.join(F.broadcast(wanted), same, "left_semi").drop(WINDOW)


def _range(
    admin: Admin, source: Definition, first: str
) -> tuple[Mapping[str, Offsets], Mapping[str, Offsets]]:
    """Where to read: no record before it can belong to a window that begins at `first`.

    A record's event time is at most so much after its own time stamp. What the log has let go of
    may belong there: then the windows cannot be computed any more.
    """
    ahead = "0 seconds" if source.event_time is None else source.max_ahead or MAX_AHEAD
    allowed = milliseconds(ahead)
    moment = int(datetime.fromisoformat(first).timestamp() * 1000)
    since = 0 if allowed is None else max(0, moment - allowed)
    start: dict[str, Offsets] = {}
    for topic in admin.topics_of(source):
        start[topic] = admin.offsets_at(topic, since)
        begin = admin.begin_offsets(topic)  # behind that: the log may let go of more meanwhile
        for partition, offset in start[topic].items():
            if 0 < begin[partition] >= offset:
                raise MainstemError(
                    "LATE_LOG_INCOMPLETE", topic=topic, partition=partition, window=first
                )
    return start, admin.all_end_offsets(start)
