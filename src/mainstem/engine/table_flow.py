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

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Definition
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.compile import compile_static, into
from mainstem.engine.decode import read_latest
from mainstem.engine.encode import encode
from mainstem.engine.tables import Tables
from mainstem.errors import MainstemError
from mainstem.log.connection import Connection


class Recomputation:
    """What a table flow makes of each batch; remembers the answer that is in the log."""

    def __init__(
        self,
        entry: Entry,
        inputs: Sequence[Definition],
        tables: Tables,
        checkpoints: Checkpoints,
        folder: str,
        connection: Connection,
    ) -> None:
        query = entry.definition.query
        assert query is not None
        self._definition = entry.definition
        self._query = query
        self._inputs = tuple(inputs)
        self._tables = tables
        self._checkpoints = checkpoints
        self._folder = folder
        self._connection = connection
        self._in_log: DataFrame | None = None
        self._answer: DataFrame | None = None

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame:
        """Key and value of the records to write; a value of null deletes."""
        session = batch.sparkSession
        ends = self._checkpoints.batch_end(self._folder, batch_id)
        rows = {
            source: into(session, self._tables.at(source, ends.get(source.topic, {})))
            for source in self._inputs
        }
        asked = encode(compile_static(session, self._query, rows), self._definition)
        by_key = asked.groupBy("key").agg(F.first("value").alias("value"), F.count("*").alias("n"))
        answer = self._answer = by_key.localCheckpoint(eager=True)
        for double in answer.filter("n > 1").limit(1).collect():
            raise MainstemError(
                "DUPLICATE_KEY",
                name=self._definition.name,
                key=bytes(double.key).decode(),
                count=double.n,
            )
        if self._in_log is None:
            topic = self._definition.topic
            latest = read_latest(session, topic, self._connection)
            self._in_log = latest.localCheckpoint(eager=True)
        before = into(session, self._in_log).select("key", F.col("value").alias("before"))
        joined = answer.select("key", "value").join(before, "key", "full_outer")
        return joined.filter(~F.col("value").eqNullSafe(F.col("before"))).select("key", "value")

    def written(self) -> None:
        """The batch is in the log."""
        self._in_log, self._answer = self._answer, None
