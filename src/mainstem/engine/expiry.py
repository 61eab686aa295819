"""Deletes the rows of windows whose retention has passed, by the watermark, exactly once.

Spark forgets a window when it closes; its rows stay in the table. Every now and then, behind a
batch, the rows of old windows are looked for in the table itself, and deletes are written like the
rows of a task, with a commit token in the same transaction.

A crash before that transaction: the batch runs again, and looks again. A crash behind it: the batch
runs again, and the token says that it is done.
"""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from mainstem.catalog.entry import Entry
from mainstem.definitions.expiry import Expiry
from mainstem.engine.encode import key_of
from mainstem.engine.formats import Formats
from mainstem.engine.passed import Passed, behind
from mainstem.engine.tables import Tables
from mainstem.log.connection import Connection
from mainstem.log.task_writer import Rows, write_task


class ExpiredRows:
    """Looks for old rows behind the batches of one run of a flow."""

    def __init__(
        self,
        entry: Entry,
        expiry: Expiry,
        tables: Tables,
        connection: Connection,
        formats: Formats,
    ) -> None:
        self._entry = entry
        self._expiry = expiry
        self._tables = tables
        self._connection = connection
        self._formats = formats
        self._looked: int | None = None
        self._last: int | None = None

    def __call__(self, batch: Passed) -> None:
        """Deletes what has expired, unless that was done a moment ago."""
        bound = batch.watermark - self._expiry.after
        recent = self._looked is not None and bound - self._looked < self._expiry.step
        if bound <= 0 or recent:
            return
        keys = self._expired(bound)
        task = behind(
            self._entry.flow_id, "expiry", self._entry.definition.topic, batch, self._last
        )
        rows = Rows(None, keys, [None] * len(keys))
        if write_task(self._connection.to_dict(), task, [rows]).wrote:
            self._last = batch.batch_id
        self._looked = bound

    def _expired(self, bound: int) -> list[bytes]:
        definition = self._entry.definition
        try:
            rows = self._tables.at(definition, self._tables.ends(definition))
            old = rows.filter(self._end() <= F.timestamp_millis(F.lit(bound)))
            key = key_of(definition, self._formats).cast("binary")
            return [bytes(row.key) for row in old.select(key.alias("key")).toLocalIterator()]
        finally:
            self._tables.done()

    def _end(self) -> SparkColumn:
        """When the window of a row ended."""
        column = F.col("`" + self._expiry.column.replace("`", "``") + "`")
        match self._expiry.part:
            case "window":
                return column.getField("end")
            case "end":
                return column
            case _:
                return column + F.expr(f"INTERVAL {self._expiry.size} MILLISECONDS")
