"""Streams joined to tables: each batch of records meets the tables as they are at that moment.

What happens to a batch:

1. Which state of each table it meets is noted beside Spark's own offsets, so that a batch that is
   run again meets the same. Crash: the batch runs again, and finds the note.
2. Of a large table only the rows that some record of the batch asks for are taken, where the text
   of the query proves which those are (`join_keys`). They are few, so Spark sends them to where the
   records are, and the records keep their order.
3. The query runs over the batch. If all of its tables are taken in this way, the result is in the
   partitions of the records that it was made of, and a task for each of them writes it, as that of
   a flow without tables; else one task writes all. Which of the two is noted when the flow starts,
   unless a batch may have to be run again: that one is divided as it was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from mainstem.catalog.entry import Entry
from mainstem.definitions.join_keys import JoinKey, join_keys
from mainstem.definitions.model import Definition, Kind
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.compile import compile_static, into
from mainstem.engine.decode import mentioned_metadata, metadata_field, row_schema
from mainstem.engine.encode import encode
from mainstem.engine.formats import Formats
from mainstem.engine.held_table import ALL_ROWS, Only
from mainstem.engine.narrow import keeps_partitions
from mainstem.engine.tables import Tables
from mainstem.engine.writer import Split
from mainstem.errors import MainstemError
from mainstem.vocabulary import Offsets

_NOTES = "tables"
_NOTES_KEPT = 100
_SPLIT = "split"


class Enrichment:
    """What an enrich flow makes of each batch."""

    def __init__(
        self,
        entry: Entry,
        inputs: Sequence[Definition],
        tables: Tables,
        checkpoints: Checkpoints,
        folder: str,
        formats: Formats,
    ) -> None:
        query = entry.definition.query
        assert query is not None
        self._definition = entry.definition
        self._query = query
        [self._stream] = [source for source in inputs if source.kind is Kind.STREAM]
        self._tables = {s.name.lower(): s for s in inputs if s.kind is Kind.TABLE}
        self._keys = join_keys(query, inputs)
        self._snapshots = tables
        self._checkpoints = checkpoints
        self._folder = folder
        self._formats = formats
        self._batch: DataFrame | None = None
        self.few = False

    def split(self, session: SparkSession) -> Split:
        """How the batches of this run are divided among the tasks that write them."""
        apart = keeps_partitions(self._outline(session))
        noted = self._checkpoints.read_note(self._folder, _SPLIT, 0)
        if not self._checkpoints.settled(self._folder):
            split = Split(noted or Split.WHOLE)
            if split is Split.BY_INPUT and not apart:
                raise MainstemError("BATCH_BEGUN_OTHERWISE", name=self._definition.name)
            return split
        split = Split.BY_INPUT if apart else Split.WHOLE
        if noted != split:
            self._checkpoints.delete_note(self._folder, _SPLIT, 0)
            self._checkpoints.write_note(self._folder, _SPLIT, 0, split.value)
        return split

    def _outline(self, session: SparkSession) -> DataFrame:
        """The query over rows of which Spark knows nothing, joined as those of a batch are."""
        metadata = [
            metadata_field(self._stream, n) for n in mentioned_metadata(self._query.columns_read)
        ]
        schema = StructType([*row_schema(self._stream), *metadata])
        nothing = session.sparkContext.emptyRDD()
        sources = {self._stream: session.createDataFrame(nothing, schema)}
        keyed = {key.table for key in self._keys}
        for name, source in self._tables.items():
            rows = session.createDataFrame(nothing, row_schema(source))
            sources[source] = F.broadcast(rows) if name in keyed else rows
        rows = compile_static(session, self._query, sources)
        return encode(rows, self._definition, self._formats)

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame:
        """Key and value of the records to write."""
        session = batch.sparkSession
        ends = self._ends(batch_id)

        def read(name: str, only: Only = ALL_ROWS) -> DataFrame:
            source = self._tables[name]
            return into(session, self._snapshots.at(source, ends[source.topic], only))

        small = {n for n, s in self._tables.items() if self._snapshots.few(s, ends[s.topic])}
        self.few = len(small) == len(self._tables)
        if self._keys and not self.few:
            batch = self._batch = batch.persist()
        rows = {self._stream.name.lower(): batch}
        for key in self._keys:
            if key.table in small:
                rows[key.table] = F.broadcast(read(key.table))
                continue
            asked_for = partial(_asked_for, source=rows[key.source], key=key)
            only = Only(asked_for, frozenset(column.lower() for column in key.columns))
            rows[key.table] = F.broadcast(read(key.table, only))
        sources = {s: rows[n] if n in rows else read(n) for n, s in self._tables.items()}
        sources[self._stream] = batch
        answer = compile_static(session, self._query, sources)
        return encode(answer, self._definition, self._formats)

    def release(self) -> None:
        """Lets go of the batch's decoded records, and of the tables."""
        if self._batch is not None:
            self._batch.unpersist()
            self._batch = None
        self._snapshots.done()

    def _ends(self, batch_id: int) -> dict[str, Offsets]:
        """Where the tables end for this batch: noted before, or now."""
        noted = self._checkpoints.read_note(self._folder, _NOTES, batch_id)
        if noted is not None:
            document = json.loads(noted)
            return {t: {int(p): o for p, o in ends.items()} for t, ends in document.items()}
        ends = {s.topic: self._snapshots.ends(s) for s in self._tables.values()}
        self._checkpoints.write_note(self._folder, _NOTES, batch_id, json.dumps(ends))
        self._checkpoints.delete_note(self._folder, _NOTES, batch_id - _NOTES_KEPT)
        return ends


def _asked_for(table: DataFrame, source: DataFrame, key: JoinKey) -> DataFrame:
    """The rows of a table that rows of the source ask for, few enough to be sent around."""
    wanted = source.select(
        *(F.col(f"`{name}`").alias(f"_w{i}") for i, name in enumerate(key.source_columns))
    ).distinct()
    tests = [table[f"`{name}`"] == wanted[f"_w{i}"] for i, name in enumerate(key.columns)]
    return table.join(F.broadcast(wanted), tests, "left_semi")
