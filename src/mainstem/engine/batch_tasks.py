"""What the tasks of a batch run, in Spark's Python workers: each writes its rows in a transaction.

The steps of `writer` that are theirs, 3 to 6, are in `mainstem.log.task_writer`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from mainstem.engine import whole_input
from mainstem.engine.handler_task import HandlerTask, HandlerWork
from mainstem.engine.judged import Judge
from mainstem.engine.keyed_task import KeyedTask, KeyedWork
from mainstem.engine.plain_task import PlainTask
from mainstem.engine.small_batch import Written
from mainstem.engine.sources.records import SourceTask, SourceWork
from mainstem.engine.spark_errors import task_failure
from mainstem.engine.target_task import TargetTask, TargetWork
from mainstem.errors import MainstemError
from mainstem.log.connection import Connection
from mainstem.log.task_writer import TaskWrite, write_task
from mainstem.vocabulary import COMMITS_TOPIC

_RESULT = pa.schema(
    [
        ("task", pa.string()),
        ("rows", pa.int64()),
        ("wrote", pa.bool_()),
        ("note", pa.string()),
        ("size", pa.int64()),
    ]
)
COLUMNS = "task string, rows long, wrote boolean, note string, size long"
"""Of what `task_function` gives."""


@dataclass(frozen=True, slots=True)
class BatchTasks:
    """The writes of a batch's tasks, but for their names."""

    template: TaskWrite
    last_written: Mapping[str, int]

    def named(self, name: str) -> TaskWrite:
        """What the task of that name has to write."""
        return replace(self.template, task=name, previous_batch=self.last_written.get(name))


def task_function(
    connection: Mapping[str, Any],
    tasks: BatchTasks,
    names: Sequence[str] | None,
    work: KeyedWork | HandlerWork | TargetWork | SourceWork | None,
    judge: Judge | None,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What each task runs; holds plain values only, so that it travels to the workers."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        whole_input.require_installed()
        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        name = names[number] if names is not None else f"state-{number}"
        task = tasks.named(name)
        made: KeyedTask | HandlerTask | TargetTask | SourceTask | PlainTask
        made = PlainTask(judge) if work is None else work.task(task, number)
        say = made.note if isinstance(made, PlainTask | TargetTask) else lambda: None
        try:
            result = write_task(connection, task, made.rows(batches), say)
            note = made.done(result)
        except MainstemError as error:
            # only text gets through Spark to the driver
            raise RuntimeError(task_failure(error)) from None
        size = made.size if isinstance(made, PlainTask) else 0
        row = Written(name, made.made, result.wrote, note, size)
        yield pa.RecordBatch.from_pylist([row._asdict()], schema=_RESULT)

    return write


def write_whole(rows: DataFrame, connection: Connection, flow: str, task: str, topic: str) -> int:
    """Writes keys and values to a topic in one transaction, outside of any batch; says how many.

    A second call ends what an earlier one with the same flow and task may have left.
    """
    run = str(uuid.uuid4())
    template = TaskWrite(
        flow=flow,
        epoch=run,
        run=run,
        task="",
        batch_id=0,
        topic=topic,
        tokens_topic=COMMITS_TOPIC,
        previous_batch=None,
        recovering=False,
    )
    write = task_function(connection.to_dict(), BatchTasks(template, {}), [task], None, None)
    one = rows.select("key", "value").repartition(1)
    return sum(row.rows for row in one.mapInArrow(write, COLUMNS).collect())
