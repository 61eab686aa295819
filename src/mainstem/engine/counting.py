"""Flows with windows of so many events: what becomes of each batch.

1. The records that count are numbered behind those that earlier batches have kept for their keys.
   Crash: nothing was done.
2. What later windows need of the touched keys is kept (`kept_rows`), under the batch's number.
   Crash: the batch is run again over the same records and what was kept before it, so it keeps
   the same.
3. The query runs over all windows that new records are in, and their rows are written (`writer`),
   each by the task that the key it counts for belongs to. Crash: the same windows go to the same
   tasks, and tasks whose token is there write nothing.

What is kept and what is written need not be one transaction: both follow from the records of the
batch and from what the batches before it have kept.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from mainstem.catalog.entry import Entry
from mainstem.definitions.count_windows import WINDOW_END, WINDOW_KEY, CountWindow
from mainstem.definitions.model import Definition
from mainstem.definitions.query import ARRIVAL
from mainstem.definitions.stream_filters import without_filters
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.compile import Quick, compile_mentions, compile_static, into
from mainstem.engine.count_windows import NUMBER, in_windows, numbered, quoted, still_needed
from mainstem.engine.encode import encode
from mainstem.engine.few_rows import here, span
from mainstem.engine.formats import Formats
from mainstem.engine.kept_rows import KeptRows

_TASKS = "tasks"
_FEW = 1_000
"""As many rows the driver holds: those of a batch, and all that may be kept for their keys."""


class Counting:
    """What a flow with count windows makes of each batch."""

    few = True

    def __init__(
        self,
        entry: Entry,
        counts: CountWindow,
        stream: Definition,
        checkpoints: Checkpoints,
        folder: str,
        tasks: int,
        formats: Formats,
    ) -> None:
        self._definition = entry.definition
        self._counts = counts
        self._formats = formats
        self._stream = stream
        self._checkpoints = checkpoints
        self._folder = folder
        self._kept = KeptRows(checkpoints, folder, counts.keys)
        # a replayed batch must be divided as it was, so the first number holds
        if checkpoints.read_note(folder, _TASKS, 0) is None:
            checkpoints.write_note(folder, _TASKS, 0, str(tasks))
        self._tasks = int(checkpoints.read_note(folder, _TASKS, 0) or tasks)
        self._held: list[DataFrame] = []
        self._quick = Quick()

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame:
        """Key and value of the records to write, in the partitions of the tasks that write them."""
        session, counts = batch.sparkSession, self._counts
        small = self._records(batch_id) * counts.size <= _FEW
        new = compile_static(session, counts.numbered, {self._stream: batch})
        new = self._hold(new.select(*map(quoted, self._needed(new))), small)
        if small:
            session = self._quick.session(session)
            new = into(session, new)
        schema = StructType([*new.schema.fields]).add(NUMBER, LongType())
        kept = self._kept.before(batch_id, new, schema, small=small)
        rows = self._hold(numbered(new, kept, counts.keys), small)
        self._kept.write(batch_id, still_needed(rows, counts), small=small)
        known = rows.withColumn(WINDOW_KEY, F.xxhash64(F.lit(0), *counts.keys))
        windows = in_windows(known, counts, full=self._definition.final)
        query = counts.written if self._definition.final else without_filters(counts.written)
        # not in the view of the records: Spark would let go of what was made from that
        result = compile_mentions(session, query, [windows])
        # by nothing that the query computes: what an aggregate gives need not be the same again
        divided = result.repartition(self._tasks, WINDOW_KEY)
        ordered = divided.sortWithinPartitions(WINDOW_END).drop(WINDOW_KEY, WINDOW_END)
        return encode(ordered, self._definition, self._formats)

    def release(self) -> None:
        """Lets go of the batch's records."""
        while self._held:
            self._held.pop().unpersist()

    def _hold(self, rows: DataFrame, small: bool) -> DataFrame:
        if small:
            return here(rows).coalesce(1)
        self._held.append(rows.persist())
        return self._held[-1]

    def _records(self, batch_id: int) -> int:
        """How many records the batch has."""
        start = self._checkpoints.batch_start(self._folder, batch_id)
        end = self._checkpoints.batch_end(self._folder, batch_id)
        return sum(span(start.get(topic, {}), offsets) for topic, offsets in end.items())

    def _needed(self, rows: DataFrame) -> list[str]:
        """The columns that the query reads, and those by which the records are counted."""
        read = {*self._counts.asked.columns_read, *self._counts.keys, *ARRIVAL}
        return [name for name in rows.columns if "*" in read or name.lower() in read]
