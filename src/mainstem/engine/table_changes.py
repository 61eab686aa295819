"""Streams of a table's changes: what each change makes of the query's row, before and after.

What happens to a batch:

1. Spark notes up to where it has seen the table's topic. Crash: the batch runs again with the same
   offsets, so with the same changes and the same rows before them.
2. The rows that changed are taken as they were when the batch began. The query looks at each row
   before and after each of its changes: a row that it did not give and gives now is an insert,
   one that it gave and gives no more a delete, and another one than before an update.
3. One task writes the changes, those of one row in their order: one transaction, with the token
   by which a replay knows that it is done.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Definition
from mainstem.definitions.table_rules import marked
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.compile import Quick, compile_marked, into
from mainstem.engine.encode import JSON_OPTIONS
from mainstem.engine.held_table import is_before
from mainstem.engine.rules import verdict
from mainstem.engine.tables import Tables
from mainstem.errors import MainstemError
from mainstem.vocabulary import HIDDEN_PREFIX

_MARK = f"{HIDDEN_PREFIX}change"
_SIDES = ("before", "after")


class TableChanges:
    """What a flow over one table makes of each batch, when it gives a stream."""

    def __init__(
        self,
        entry: Entry,
        inputs: Sequence[Definition],
        tables: Tables,
        checkpoints: Checkpoints,
        folder: str,
    ) -> None:
        query = entry.definition.query
        assert query is not None
        [self._table] = inputs
        self._definition = entry.definition
        self._query = marked(query, _MARK)
        self._tables = tables
        self._checkpoints = checkpoints
        self._folder = folder
        self._quick = Quick()
        self.few = False

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame:
        """Key and value of the records to write."""
        topic = self._table.topic
        start = self._checkpoints.batch_start(self._folder, batch_id).get(topic, {})
        end = self._checkpoints.batch_end(self._folder, batch_id).get(topic, {})
        self.few = self._tables.few(self._table, end)
        session = batch.sparkSession
        if self.few:
            session = self._quick.session(session)
        changes = into(session, self._tables.history(self._table, start, end))
        row = F.struct(*(_column(column.name) for column in self._table.columns))
        after = F.when(~F.col("_gone"), row)
        steps = Window.partitionBy("_id").orderBy("_offset")
        both = changes.select(
            "_id",
            "_offset",
            (~is_before(start)).alias("_new"),
            F.lag(after).over(steps).alias("before"),
            after.alias("after"),
        ).filter("_new")
        looked_at = compile_marked(session, self._query, self._table, _sides(both), _MARK)
        return _events(looked_at, self._definition)

    def release(self) -> None:
        """Lets go of the table."""
        self._tables.done()


def as_changes(rows: DataFrame, definition: Definition) -> DataFrame:
    """The columns of a stream of changes, for the rows that its query gives."""
    seen = set()
    for name in rows.columns:
        if name.lower() in seen:
            query = definition.query
            raise MainstemError(
                "DUPLICATE_COLUMN",
                location=query.location if query else None,
                column=name,
                name=definition.name,
            )
        seen.add(name.lower())
    row = F.struct(*(_column(name) for name in rows.columns))
    return rows.select(F.lit("").alias("op"), *(row.alias(side) for side in _SIDES))


def _sides(both: DataFrame) -> DataFrame:
    """The rows of the table before and after the changes, each with a mark that says which."""
    sides = F.array(
        *(F.struct(F.lit(side).alias("side"), F.col(side).alias("row")) for side in _SIDES)
    )
    each = both.select("_id", "_offset", F.explode(sides).alias("_one"))
    each = each.filter(F.col("_one.row").isNotNull())
    mark = F.struct("_id", "_offset", F.col("_one.side").alias("side"))
    return each.select("_one.row.*", mark.alias(_MARK))


def _events(looked_at: DataFrame, definition: Definition) -> DataFrame:
    """Before and after together again, without those that are the same."""
    given = [name for name in looked_at.columns if name != _MARK]
    row = F.struct(*(_column(name) for name in given))
    mark = F.col(_MARK)
    sides = looked_at.select(
        mark["_id"].alias("_id"),
        mark["_offset"].alias("_offset"),
        *(F.when(mark["side"] == side, row).alias(side) for side in _SIDES),
    )
    pairs = sides.groupBy("_id", "_offset").agg(
        *(F.first(side, ignorenulls=True).alias(side) for side in _SIDES)
    )
    before, after = F.col("before"), F.col("after")
    op = F.when(before.isNull(), "insert").when(after.isNull(), "delete").otherwise("update")
    changed = pairs.filter(before.isNull() | after.isNull() | (_text("before") != _text("after")))
    in_order = changed.repartition(1).sortWithinPartitions("_offset", "_id")
    events = in_order.select("_id", op.alias("op"), *_SIDES)
    value = F.to_json(F.struct("op", *_SIDES), JSON_OPTIONS)
    pair = (F.col("_id").cast("binary").alias("key"), value.cast("binary").alias("value"))
    return events.select(*pair, *(made.alias(n) for n, made in verdict(definition).items()))


def _text(side: str) -> Column:
    return F.to_json(F.col(side), JSON_OPTIONS)


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")
