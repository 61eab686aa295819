"""The rows of a captured table as they are now, made of its changes.

What happens to a batch:

1. Spark notes the range of changes. Crash: the batch runs again, same range.
2. Each change becomes a record of the table: the row after it, or a delete for the key of the row
   before it. There is one partition of changes, and one task, so they stay in their order, which is
   that of the source; of one key the last counts.
3. Some changes do not tell all of that, for which there is the table's own topic, as far as earlier
   batches have written it; what one of them left open is ended first. Nothing but this flow writes
   there, so a batch that runs again finds the same.
   - A truncate has no key: it deletes all rows that there were. So does a snapshot that is read
     once more (`beginnings`).
   - A large value that an update left as it was is not told: it is the row's own (`left_out`).
   - A changed key is told as a delete and a new row, which may be in two batches. The delete is
     passed over, and made with the row: until then the row's large values are still to be found.
   To look for them would cost as much again as the batch itself, and many tables never have any; so
   a batch that meets the first one fails before anything of it is written, and runs again with a
   look first. From then on a run looks in each batch for the latter two, which come again and
   again. Crash: the first batch of every run has that look.
4. One task writes the records and the token by which a replay knows that it is done. Crash before
   the commit: nothing has changed, and the batch gives the same records. Crash behind it: what the
   replay computes is not written.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Definition
from mainstem.engine.beginnings import look, suspicious
from mainstem.engine.encode import encode
from mainstem.engine.formats import Formats
from mainstem.engine.left_out import GAPS, KEPT, MOVED, ORDER, Filling, keys_of
from mainstem.engine.spark_errors import complaint
from mainstem.engine.tables import Tables
from mainstem.engine.touched import only_keys
from mainstem.errors import MainstemError
from mainstem.log.connection import Connection
from mainstem.log.task_writer import finish
from mainstem.schemas.changes import CHANGED, LEFT_OUT, OTHER_KEY, SNAPSHOT, unavailable
from mainstem.vocabulary import HIDDEN_PREFIX, Offsets
from mainstem.vocabulary import Column as TypedColumn

INCOMPLETE = "CHANGE_INCOMPLETE"
METADATA = ("_offset", "_headers")
"""What a batch has beside the columns of the changes."""
_GAP = HIDDEN_PREFIX + "gap"


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
        self._flow = entry.flow_id
        self._definition = entry.definition
        self._changes = changes
        self._tables = tables
        self._formats = formats
        self._connection = connection
        self._first = True
        self._open = False
        """True within a snapshot."""
        self._looks = False
        """True when there was a change that does not tell all of its row."""
        self.few = True

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame:
        """Key and value of the records to write; a value of null deletes."""
        if not (self._first or self._looks):
            self.few = True
            return self._encoded(self._rows(batch, suspicious(open_=self._open) | _is_odd()))
        stops, beginning = suspicious(open_=self._open), None
        if self._first:
            found = look(batch, self._connection, self._changes.topic)
            self._open, beginning, stops = found.open, found.offset, F.lit(False)
            if beginning is not None:
                batch = batch.filter(F.col("_offset") >= beginning)
        self.few = beginning is None
        odd = self._odd(batch)
        self._looks = self._looks or odd.num_rows > 0
        rows = self._rows(batch, stops, moves=odd.num_rows > 0)
        wanted = odd.filter(pc.field(_GAP)).select(list(self._definition.key))
        if beginning is not None:
            rows = _in_order(self._table(None, kept=False), rows)
        elif wanted.num_rows:
            rows = _in_order(self._table(batch.sparkSession.createDataFrame(wanted)), rows)
        self._first = False
        return self._encoded(self._filled(rows, wanted) if wanted.num_rows else rows)

    def release(self) -> None:
        """Lets go of the table."""
        self._tables.done()

    def _odd(self, batch: DataFrame) -> pa.Table:
        """The keys of rows of which changes do not tell all, and whether that is a value.

        Of a row with another key now: that one, and the one that it had.
        """
        odd, key = batch.filter(_is_odd()), self._definition.key
        gap = F.col(LEFT_OUT).isNotNull().alias(_GAP)
        now = (F.coalesce(_field("after", k), _field("before", k)).alias(k) for k in key)
        other = odd.filter(F.col(OTHER_KEY).isNotNull())
        keys = odd.select(*now, gap).union(other.select(*(_field(OTHER_KEY, k) for k in key), gap))
        return keys.distinct().toArrow()

    def _table(self, keys: DataFrame | None, *, kept: bool = True) -> DataFrame:
        """The rows that the table has, or those with some keys, as if they came before the batch.

        Without `kept`, they go.
        """
        end = self._written_end()
        if keys is None:
            rows = self._tables.at(self._definition, end)
        else:
            types = {c.name: c.type for c in self._definition.columns}
            only = only_keys(keys, {k: (k, types[k]) for k in self._definition.key})
            rows = self._tables.at(self._definition, end, only)
        return rows.select(
            "*",
            F.lit(kept).alias(KEPT),
            F.lit(-1).cast("bigint").alias(ORDER),
            F.lit(False).alias(MOVED),
            F.lit(None).cast("array<string>").alias(GAPS),
        )

    def _written_end(self) -> Offsets:
        """Where the table's topic ends, with all that the batches before have written."""
        if self._first:
            finish(self._connection, self._flow, ("all", f"{self._changes.topic}-0"))
        end = self._tables.settled_end(self._definition)
        if end != self._tables.ends(self._definition, committed=False):
            # a row that is not seen would not be deleted, and its values not be found
            problem = "a transaction of an earlier run is still open"
            raise MainstemError("FLOW_FAILED", name=self._definition.name, problem=problem)
        return end

    def _rows(self, batch: DataFrame, stops: Column, *, moves: bool = False) -> DataFrame:
        """The row of each change; of one that is gone only the key.

        Changes with `stops` fail the batch. With `moves`, a row whose key was changed is told by
        the change with the new one.
        """
        kept, moved = F.col("after").isNotNull(), F.lit(False)
        if moves:
            moved = F.col(OTHER_KEY).isNotNull()
            both = F.when(moved, F.array(F.lit(False), F.lit(True))).otherwise(F.array(kept))
            batch = batch.filter(kept | ~moved).select("*", F.explode(both).alias(KEPT))
            kept = F.col(KEPT)
        columns = []
        for column in self._definition.columns:
            value = _field("after", column.name)
            if column.name in self._definition.key:
                before = _field("before", column.name)
                known = F.coalesce(value, before, self._no_key().cast(column.type))
                known = F.when(moved & ~kept, _field(OTHER_KEY, column.name)).otherwise(known)
                value = F.when(F.col("op") != "t", known)
            columns.append(value.alias(column.name))
        name = F.struct(F.lit(self._definition.name).alias("name"))
        stop = complaint(INCOMPLETE, name).cast("boolean")
        return batch.select(
            *columns,
            F.when(stops, stop).otherwise(kept).alias(KEPT),
            F.col("_offset").alias(ORDER),
            (moved & kept).alias(MOVED),
            F.col(LEFT_OUT).alias(GAPS),
        )

    def _filled(self, rows: DataFrame, wanted: pa.Table) -> DataFrame:
        """The rows with the values that were left out."""
        columns = [c.name for c in self._definition.columns if unavailable(c.type)]
        key = self._definition.key
        filling = Filling(key, columns, frozenset(keys_of(wanted, key)))
        made: DataFrame = rows.mapInArrow(filling.function(), rows.drop(*_BESIDE).schema)
        return made

    def _no_key(self) -> Column:
        """Fails the batch: a row that cannot be named would stay for ever."""
        problem = "a change does not tell the primary key (see REPLICA IDENTITY)"
        params = {"name": self._definition.name, "problem": problem}
        return complaint(CHANGED, F.struct(*(F.lit(v).alias(k) for k, v in params.items())))

    def _encoded(self, rows: DataFrame) -> DataFrame:
        return encode(rows.drop(*_BESIDE), self._definition, self._formats)


_BESIDE = (ORDER, MOVED, GAPS)


def _is_odd() -> Column:
    """True for a change that does not tell all of its row."""
    return F.col(LEFT_OUT).isNotNull() | F.col(OTHER_KEY).isNotNull()


def _field(side: str, name: str) -> Column:
    return F.col(side).getField(name)


def _in_order(table: DataFrame, rows: DataFrame) -> DataFrame:
    """All of them in one partition, those of the table first; a delete is before the new row."""
    # by name: Spark takes columns of a union by their place
    return table.unionByName(rows).repartition(1).sortWithinPartitions(ORDER, KEPT)


def with_marks(changes: Definition, table: Definition) -> Definition:
    """The stream of changes with what says more of a record than its columns do."""
    types = {column.name: column.type for column in table.columns}
    key = ",".join(f"`{name.replace('`', '``')}`:{types[name]}" for name in table.key)
    marks = {SNAPSHOT: "string", LEFT_OUT: "array<string>", OTHER_KEY: f"struct<{key}>"}
    more = (TypedColumn(name, type_) for name, type_ in marks.items())
    return replace(changes, columns=(*changes.columns, *more))
