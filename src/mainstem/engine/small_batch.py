"""Small batches, written by the driver itself instead of Spark's Python workers.

To a batch of a few records a worker costs more than the records do: the function has to be sent
there, and since Spark takes the worker that has rested longest, the producer of the task is nearly
always kept in another one, and a new one is opened. The driver keeps one producer for each task.

Who writes is no part of the protocol (`log.task_writer`): ids and tokens are the same, so a batch
that was written here may be run again by a worker, and the other way round. The rows come here only
when all of them have been made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mainstem.engine.judged import Judge
from mainstem.engine.plain_task import PlainTask
from mainstem.log.connection import Connection
from mainstem.log.task_writer import TaskWrite, write_task

_MOST_RECORDS = 5_000
_MOST_BYTES = 16 * 1024 * 1024
_FORGOTTEN = 0.9
"""What is left after each batch of the largest size that was seen."""
_PARTITION = "_mainstem_partition"


class Written(NamedTuple):
    """What a task of a batch did."""

    task: str
    rows: int
    wrote: bool
    note: str | None
    size: int
    """Bytes of its rows, where that is known."""


class Sizes:
    """How much the rows of a flow's batches take, to tell which may come to the driver.

    A record that nobody has seen yet may be as large as the log allows.
    """

    def __init__(self, largest_record: int) -> None:
        self._each = float(largest_record)
        self._any = False
        self._last = 0

    def fit(self, records: int) -> bool:
        """True when the rows made of so many records are few, and likely to be small."""
        return records <= _MOST_RECORDS and records * self._each <= _MOST_BYTES

    @property
    def most(self) -> int:
        """As many rows may come here if each is as large as those before."""
        return min(_MOST_RECORDS, int(_MOST_BYTES / max(self._each, 1.0)))

    @property
    def few_lately(self) -> bool:
        """True when the last batch had no more than may come here."""
        return self._last <= self.most

    def saw(self, records: int, size: int) -> None:
        """A batch of so many records made rows of that size."""
        self._last = records
        if records:
            usual = self._each * _FORGOTTEN if self._any else 0.0
            self._each = max(usual, size / records)
            self._any = True


def write_here(
    batch: DataFrame,
    names: Sequence[str] | None,
    connection: Connection,
    task_write: Callable[[str], TaskWrite],
    judge: Judge | None = None,
    most: int | None = None,
) -> list[Written] | None:
    """Writes a batch of keys and values, as its tasks would.

    `names` has the name of the only task; None: one for each partition of the state. With more rows
    than `most`, nothing is written, and the answer is None.
    """
    if names is None:
        batch = batch.withColumn(_PARTITION, F.spark_partition_id())
    rows = batch.toArrow() if most is None else batch.limit(most + 1).toArrow()
    if most is not None and rows.num_rows > most:
        return None
    if names is not None:
        [name] = names
        return [_write(name, rows, connection, task_write, judge)]
    return [
        _write(f"state-{number}", some, connection, task_write, judge)
        for number, some in _by_partition(rows)
    ]


def _by_partition(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    numbers = rows.column(_PARTITION)
    for number in sorted(pc.unique(numbers).to_pylist()):
        yield number, rows.filter(pc.equal(numbers, number))


def _write(
    name: str,
    rows: pa.Table,
    connection: Connection,
    task_write: Callable[[str], TaskWrite],
    judge: Judge | None,
) -> Written:
    task = PlainTask(judge)
    pieces = task.rows(iter(rows.to_batches()))
    result = write_task(connection.to_dict(), task_write(name), pieces, task.note)
    note = task.done(result)
    return Written(name, task.made, result.wrote, note, rows.nbytes)
