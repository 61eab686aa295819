"""Streams joined to tables: each batch of records meets the tables as they are at that moment.

What happens to a batch:

1. Which state of each table it meets is noted beside Spark's own offsets, so that a batch that is
   run again meets the same. Crash: the batch runs again, and finds the note.
2. Of a large table only the rows that some record of the batch asks for are taken, where the text
   of the query proves which those are (`join_keys`). They are few, so Spark sends them to where the
   records are, and the records keep their order.
3. The query runs over the batch, and the result is written by one task: one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mainstem.catalog.entry import Entry
from mainstem.definitions.join_keys import JoinKey, join_keys
from mainstem.definitions.model import Definition, Kind
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.compile import compile_static, into
from mainstem.engine.encode import encode
from mainstem.engine.formats import Formats
from mainstem.engine.tables import Only, Tables, all_rows
from mainstem.vocabulary import Offsets

_NOTES = "tables"
_NOTES_KEPT = 100


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

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame:
        """Key and value of the records to write."""
        session = batch.sparkSession
        ends = self._ends(batch_id)

        def read(name: str, only: Only = all_rows) -> DataFrame:
            source = self._tables[name]
            return into(session, self._snapshots.at(source, ends[source.topic], only))

        if self._keys:
            batch = self._batch = batch.persist()
        rows = {self._stream.name.lower(): batch}
        for key in self._keys:
            asked_for = partial(_asked_for, source=rows[key.source], key=key)
            rows[key.table] = F.broadcast(read(key.table, asked_for))
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
