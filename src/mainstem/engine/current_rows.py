"""The rows of a captured table as they are now, made of its changes.

What happens to a batch:

1. Spark notes the range of changes. Crash: the batch runs again, same range.
2. Each change becomes a record of the table: the row after it, or a delete for the key of the row
   before it. There is one partition of changes, and one task, so they stay in their order, which is
   that of the source; of one key the last counts.
3. A truncate has no key: it deletes all rows that there were. So does a snapshot that is read once
   more (`beginnings`). They are in the table's own topic, as far as it is written. To look for them
   would cost as much again as the batch itself, and they are rare; so a batch that meets one fails
   before anything of it is written, and runs again with a look first. Crash: the first batch of
   every run has that look.
4. One task writes the records and the token by which a replay knows that it is done. Crash before
   the commit: nothing has changed, and the batch gives the same records. Crash behind it: what the
   replay computes is not written.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Definition
from mainstem.engine.beginnings import look, suspicious
from mainstem.engine.encode import encode
from mainstem.engine.formats import Formats
from mainstem.engine.spark_errors import complaint
from mainstem.engine.tables import Tables
from mainstem.errors import MainstemError
from mainstem.log.connection import Connection
from mainstem.schemas.changes import CHANGED, SNAPSHOT
from mainstem.vocabulary import HIDDEN_PREFIX
from mainstem.vocabulary import Column as TypedColumn

TRUNCATED = "TABLE_TRUNCATED"
METADATA = ("_offset",)
"""What a batch has beside the columns of the changes."""
_KEPT = HIDDEN_PREFIX + "kept"
_ORDER = HIDDEN_PREFIX + "order"


class CurrentRows:
    """What a flow over captured changes makes of each batch."""

    def __init__(
        self,
        entry: Entry,
        changes: Definition,
        tables: Tables,
        formats: Formats,
        connection: Connection,
    ) -> None:
        self._definition = entry.definition
        self._changes = changes
        self._tables = tables
        self._formats = formats
        self._connection = connection
        self._first = True
        self._open = False
        """True within a snapshot."""
        self.few = True

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame:
        """Key and value of the records to write; a value of null deletes."""
        if not self._first:
            self.few = True
            return self._encoded(self._rows(batch, self._is_kept(stops=True)))
        self._first = False
        found = look(batch, self._connection, self._changes.topic)
        self._open = found.open
        self.few = found.offset is None
        if found.offset is None:
            return self._encoded(self._rows(batch, self._is_kept(stops=False)))
        return self._from(batch, found.offset)

    def release(self) -> None:
        """Lets go of the table."""
        self._tables.done()

    def _from(self, batch: DataFrame, beginning: int) -> DataFrame:
        """Deletes for all rows of the table, and what came from there on."""
        end = self._tables.settled_end(self._definition)
        if end != self._tables.ends(self._definition, committed=False):
            # a row that is not seen would not be deleted
            problem = "a transaction of an earlier run is still open"
            raise MainstemError("FLOW_FAILED", name=self._definition.name, problem=problem)
        written = self._tables.at(self._definition, end)
        gone = written.select("*", F.lit(False).alias(_KEPT), F.lit(-1).alias(_ORDER))
        later = batch.filter(F.col("_offset") >= beginning)
        rows = self._rows(later, self._is_kept(stops=False), F.col("_offset").alias(_ORDER))
        # by name: Spark takes columns of a union by their place
        both = gone.unionByName(rows).repartition(1).sortWithinPartitions(_ORDER)
        return self._encoded(both.drop(_ORDER))

    def _rows(self, batch: DataFrame, *more: Column) -> DataFrame:
        """The row of each change; of one that is gone only the key."""
        columns = []
        for column in self._definition.columns:
            value = F.col("after").getField(column.name)
            if column.name in self._definition.key:
                before = F.col("before").getField(column.name)
                known = F.coalesce(value, before, self._no_key().cast(column.type))
                value = F.when(F.col("op") != "t", known)
            columns.append(value.alias(column.name))
        return batch.select(*columns, *more)

    def _is_kept(self, *, stops: bool) -> Column:
        """False for a delete; with `stops`, rows that may begin anew fail the batch."""
        kept = F.col("after").isNotNull()
        if stops:
            params = F.struct(F.lit(self._definition.name).alias("name"))
            stop = complaint(TRUNCATED, params).cast("boolean")
            kept = F.when(suspicious(open_=self._open), stop).otherwise(kept)
        return kept.alias(_KEPT)

    def _no_key(self) -> Column:
        """Fails the batch: a row that cannot be named would stay for ever."""
        problem = "a change does not tell the primary key (see REPLICA IDENTITY)"
        params = {"name": self._definition.name, "problem": problem}
        return complaint(CHANGED, F.struct(*(F.lit(v).alias(k) for k, v in params.items())))

    def _encoded(self, rows: DataFrame) -> DataFrame:
        return encode(rows, self._definition, self._formats)


def with_marks(changes: Definition) -> Definition:
    """The stream of changes with what says whether a record is of a snapshot."""
    return replace(changes, columns=(*changes.columns, TypedColumn(SNAPSHOT, "string")))
