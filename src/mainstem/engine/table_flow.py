"""Tables out of tables: when one changes, the query is asked again and the differences are written.

What happens to a batch:

1. Spark notes up to where it has seen the topics of the tables. Crash: the batch runs again with
   the same offsets, so with the same state of all tables.
2. The query is asked over that state. Its answer is compared, row by row, with what the topic of
   the result holds: new and changed rows are written, and deletes for rows that are gone.
3. One task writes them: one transaction. Crash before the commit: nothing has changed, and the
   batch gives the same differences. Crash behind it: the replay finds no difference.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Definition
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.compile import compile_static, into
from mainstem.engine.encode import encode
from mainstem.engine.spark_errors import MARK
from mainstem.engine.tables import Tables

_VISIBLE_SECONDS = 10.0


class Recomputation:
    """What a table flow makes of each batch."""

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
        self._definition = entry.definition
        self._query = query
        self._inputs = tuple(inputs)
        self._tables = tables
        self._checkpoints = checkpoints
        self._folder = folder

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame:
        """Key and value of the records to write; a value of null deletes."""
        session = batch.sparkSession
        definition = self._definition
        ends = self._checkpoints.batch_end(self._folder, batch_id)
        rows = {
            source: into(session, self._tables.at(source, ends.get(source.topic, {})))
            for source in self._inputs
        }
        answer = encode(compile_static(session, self._query, rows), definition)
        in_log = into(session, self._tables.at(definition, self._end_of_result()))
        before = encode(in_log, definition).select("key", F.col("value").alias("before"))
        by_key = answer.groupBy("key").agg(F.first("value").alias("value"), F.count("*").alias("n"))
        joined = by_key.join(before, "key", "full_outer")
        different = ~F.col("value").eqNullSafe(F.col("before"))
        single = F.when(F.col("n") > 1, self._complaint()).otherwise(F.col("value"))
        return joined.filter(different | (F.col("n") > 1)).select("key", single.alias("value"))

    def release(self) -> None:
        """Nothing to do: what was written is read from the log."""

    def _end_of_result(self) -> dict[int, int]:
        """Where the result's topic ends; the last batch's records are seen a moment late."""
        deadline = time.monotonic() + _VISIBLE_SECONDS
        while True:
            end = self._tables.ends(self._definition)
            if end == self._tables.ends(self._definition, committed=False):
                return dict(end)
            if time.monotonic() > deadline:
                return dict(end)  # what is not seen is written again, as it is
            time.sleep(0.01)

    def _complaint(self) -> Column:
        """Two rows with one key: an error, when Spark gets to such a row."""
        params = F.struct(
            F.lit(self._definition.name).alias("name"),
            F.col("key").cast("string").alias("key"),
            F.col("n").alias("count"),
        )
        document = F.to_json(
            F.struct(F.lit("DUPLICATE_KEY").alias("title"), params.alias("params"))
        )
        return F.raise_error(F.concat(F.lit(MARK), document, F.lit(MARK))).cast("binary")
