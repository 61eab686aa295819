"""Keeps what Spark drops because it came too late for its window, with the windows it missed.

Spark only counts such rows. When a batch had some, its range is read again before Spark commits the
batch: the very watermark that Spark used says which windows had closed. The records go to the
ledger (`log.late`) like the rows of a task, with a commit token in the same transaction.

A crash before that transaction: the batch runs again, and its range is read again. A crash behind
it: the batch runs again, and the token says that the ledger has its late records.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from mainstem.catalog.entry import Entry
from mainstem.definitions.late import RECORD, WINDOW, LateQueries
from mainstem.definitions.model import Definition
from mainstem.engine.compile import compile_range
from mainstem.engine.formats import Formats
from mainstem.engine.passed import Passed, behind
from mainstem.engine.status import iso
from mainstem.log.connection import Connection
from mainstem.log.late import late_entry
from mainstem.log.task_writer import Rows, write_task
from mainstem.vocabulary import LATE_TOPIC, Record

TIME_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_FIELDS = ("topic", "partition", "offset", "timestamp", "key", "value")


class LateKeeper:
    """Looks through the batches of one run of a flow; called from the flow's own thread."""

    def __init__(
        self,
        entry: Entry,
        source: Definition,
        queries: LateQueries,
        spark: SparkSession,
        connection: Connection,
        formats: Formats,
    ) -> None:
        self._entry = entry
        self._source = source
        self._queries = queries
        self._spark = spark
        self._connection = connection
        self._formats = formats
        self._last: int | None = None

    def __call__(self, batch: Passed) -> None:
        """Writes the batch's late records to the ledger, unless they are there."""
        looked_for = batch.dropped or batch.recovering
        if batch.watermark <= 0 or not batch.end or not looked_for:
            return
        flow = self._entry.flow_id
        task = behind(flow, "late", LATE_TOPIC, batch, self._last)
        entries = list(self._entries(batch))
        rows = Rows(None, [flow.encode()] * len(entries), entries)
        if write_task(self._connection.to_dict(), task, [rows]).wrote:
            self._last = batch.batch_id

    def _entries(self, batch: Passed) -> Iterator[bytes]:
        session = self._spark.newSession()
        start = {
            topic: {p: batch.start.get(topic, {}).get(p, _EARLIEST) for p in end}
            for topic, end in batch.end.items()
        }
        rows = compile_range(
            session,
            self._queries.belongs,
            self._source,
            self._connection,
            self._formats,
            (start, batch.end),
        )
        watermark = iso(batch.watermark / 1000)
        for record, missed in groupby(_missed(rows, batch.watermark).toLocalIterator(), _record):
            windows = [(row.start, row.end) for row in missed]
            distinct = list(dict.fromkeys(windows))
            yield late_entry(record, self._entry.flow_id, self._entry.name, distinct, watermark)


_EARLIEST = -2
"""Kafka's word for the beginning of a partition."""


def _missed(rows: DataFrame, watermark: int) -> DataFrame:
    """Records and windows that had closed; the rows of a record stand side by side."""
    window = F.col(WINDOW)
    closed = window.getField("end") <= F.timestamp_millis(F.lit(watermark))
    return rows.filter(closed).select(
        *(F.col(RECORD).getField(name).alias(name) for name in _FIELDS),
        F.date_format(window.getField("start"), TIME_FORMAT).alias("start"),
        F.date_format(window.getField("end"), TIME_FORMAT).alias("end"),
    )


def _record(row: Row) -> Record:
    return Record(
        row.topic,
        row.partition,
        row.offset,
        None if row.key is None else bytes(row.key),
        None if row.value is None else bytes(row.value),
        int(row.timestamp.timestamp() * 1000),
    )
