"""The exactly-once writer: a micro-batch becomes one Kafka transaction per task.

What happens to batch n of a flow, and what a crash after each step means:

1. Spark writes the batch's offset range to its offset log. Crash: the batch runs again, same range.
2. The driver names the batch's tasks. A task is named after what it holds, not after its number:
   Spark numbers the partitions of a replayed batch in another order than the first time (seen with
   four partitions), so a number would match a token with the wrong records.
3. Each task takes its transactional id, which ends whatever an older writer of it left open.
   Crash: nothing was written.
4. In the first batch after a start, the task looks for its commit token. A token of this batch
   means that its transaction was committed before the crash: the task writes nothing.
   Tasks that make their records with a Python function that keeps state or has effects
   (`keyed_task`, `handler_task`), hand them to a target (`target_task`) or read them elsewhere
   (`sources`), begin with it only behind this step.
5. The task writes its records and its token in one transaction. Crash: the transaction is aborted
   by the next writer; readers of committed records never see it. Input that ends before its end,
   because Spark died or cancelled the task, aborts it, too (`whole_input`).
6. The task commits. Crash: token and records are there, the replay stops at step 4.
7. Spark writes its commit log. Crash: the batch runs again, every task stops at step 4.
   Before that, rows that broke rules are counted (`judged`), records that came too late for their
   window are kept (`late`), rows of old windows deleted (`expiry`), and what tasks have staged for
   a target is committed there (`target_task`). Crash: the batch runs again, and so does that,
   unless the token of it is there, or the target has it.
8. The driver commits the input offsets to the group `mainstem.<flow>`, for people and tools; the
   flow itself never reads them. Crash: the group is one batch behind until the next one.

Between 6 and 7 a flow may rest (`pacing`): its records are there for all to read, and a crash then
is as one after step 6.

Steps 3 to 6 are `mainstem.log.task_writer`, which runs inside Spark's Python workers, or in the
driver for a small batch (`small_batch`).
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from mainstem.crash import crash_point
from mainstem.engine.batch_tasks import COLUMNS, BatchTasks, task_function
from mainstem.engine.gate import Gate
from mainstem.engine.handler_task import HandlerWork
from mainstem.engine.judged import BrokenRows, Judge
from mainstem.engine.keyed_task import KeyedWork
from mainstem.engine.pacing import Pacer
from mainstem.engine.passed import Passed
from mainstem.engine.small_batch import Sizes, Written, write_here
from mainstem.engine.sources.records import SourceWork
from mainstem.engine.spark_errors import flow_error, retold, task_failure
from mainstem.engine.status import offsets_in
from mainstem.engine.target_task import TargetWork
from mainstem.errors import MainstemError
from mainstem.log.connection import Connection
from mainstem.log.task_writer import TaskWrite
from mainstem.vocabulary import COMMITS_TOPIC, Offsets

SMALL_BATCH = 20_000
"""Up to this many input records a stateless batch is written by one task: one transaction.
Part of the protocol: a replayed batch must be split as it was, so the number may not change."""

Watch = Callable[[Mapping[str, Offsets], Mapping[str, Offsets]], None]
"""Called with a batch's start and end by topic before anything of it is written; it raises when
the batch must not be written."""

_NEARLY = 1.1
"""Spark divides the limit among partitions, and some have less than their part."""
_SCAN = "MicroBatchScanExec"
_STATE = "StateStoreSaveExec"
_DROPPED = "numRowsDroppedByWatermark"
_RANGE = re.compile(r"KafkaOffsetRange\(([^,()]+),(\d+),(\d+),")


@dataclass(frozen=True, slots=True)
class SourceRange:
    """The records of one input partition that a task of the batch reads."""

    partition: str
    start: int
    end: int


class Split(StrEnum):
    """How the rows of a batch are divided among the tasks that write them."""

    BY_INPUT = "by input"
    """A task for each partition of the input, or one for all when they are few."""
    BY_STATE = "by state"
    """A task for each partition of Spark's state, or for each one that the batch was made in."""
    WHOLE = "whole"
    """One task for all."""


class Making(Protocol):
    """Makes the records of a batch, where the stream's own plan does not."""

    few: bool
    """True when the last result is likely to be small if the batch is."""

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame | None:
        """Key and value of the records to write; None: there are none."""
        ...

    def release(self) -> None:
        """The batch is in the log, or has failed: what was kept for it is of no use any more."""
        ...


class TaskMaking(Protocol):
    """Has the records of a batch made by the tasks that write them: by a function, or a target."""

    def divided(self, batch: DataFrame) -> DataFrame:
        """The batch as its tasks take it."""
        ...

    def work(self) -> KeyedWork | HandlerWork | TargetWork | SourceWork:
        """What the tasks of the batch have to do."""
        ...

    @property
    def keys(self) -> int:
        """For how many keys something is kept."""
        ...

    @property
    def aside(self) -> int:
        """Records that this run has put into the quarantine."""
        ...

    def ring(self) -> bool:
        """Called now and then by the flow's runner: asks for a batch if a timer is due."""
        ...

    def learn(self, notes: Sequence[str]) -> None:
        """Takes what the tasks of the batch, which is in the log now, had to say."""
        ...


class BatchWriter:
    """The `foreachBatch` function of one run of a flow.

    Spark calls it from the flow's own thread, one batch at a time. An exception fails the flow,
    which then restarts and replays the batch.
    """

    def __init__(
        self,
        flow: str,
        topic: str,
        connection: Connection,
        split: Split,
        making: Making | None = None,
        *,
        calling: TaskMaking | None = None,
        watch: Watch | None = None,
        gone: int = 0,
        behind: Sequence[Callable[[Passed], None]] = (),
        pacer: Pacer | None = None,
        pause: Callable[[], float] | None = None,
        asked: bool = False,
        limit: int = 0,
        settled: bool = False,
        sizes: Sizes | None = None,
        broken: BrokenRows | None = None,
    ) -> None:
        self._flow = flow
        self._watch = watch
        self._behind = behind
        self._gone = gone
        """Records that the first batch had when it was planned, and whose topics are gone."""
        self._topic = topic
        self._connection = connection
        self._split = split
        self._making = making
        self.calling = calling
        self._sizes = sizes
        """What is known of the size of the batches; None: the driver does not write them."""
        self._broken = broken
        """Who counts rows that break rules, if there are rules."""
        self._epoch = self._run = ""
        self._execution: Any = None
        self._scanned: list[Any] | None = None
        self._ranges: list[SourceRange] | None = None
        """Both of the batch that is at work, once they have been asked for."""
        self._started = threading.Event()
        self._last_written: dict[str, int] = {}
        self._first_batch: int | None = None
        self.rows_written = 0
        self._pacer = pacer
        self._pause = pause
        """Says how long to wait before the next batch, of a flow that has to ask for news."""
        self._asked = asked
        """True when the flow says itself how often it has a batch."""
        self._limit = limit
        """As many records a batch has at most; one that has them is not the last."""
        self._stopped = threading.Event()
        self.gate = Gate(settled=settled)
        self.rested = 0.0
        """How long the last batch took beyond its work."""
        self.failure: MainstemError | None = None
        """Why a batch failed, with all that Spark's own error is too short for."""
        self.failed_between: tuple[dict[str, Offsets], dict[str, Offsets]] | None = None
        """What that batch has read, by topic."""

    def attach(self, query: StreamingQuery) -> None:
        """Hands over the query that calls this writer; the first batch waits for it."""
        self._epoch, self._run = str(query.id), str(query.runId)
        self._execution = query._jsq
        if hasattr(self._execution, "streamingQuery"):
            self._execution = self._execution.streamingQuery()
        self._started.set()

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Writes one batch; returns when every task has committed."""
        waited = self._wait_for_its_time()
        if self._first_batch is None:
            self._first_batch = batch_id
        self._scanned = self._ranges = None
        began = time.monotonic()
        self.gate.enter()
        whole = False
        try:
            self._look_for_losses()
            made = batch if self._making is None else self._making.result(batch, batch_id)
            if made is not None:
                self._write(made, batch_id)
                self._go_behind(batch_id)
            whole = True
        except MainstemError as error:
            # only text gets through Spark to the flow
            raise RuntimeError(task_failure(error)) from None
        except (PySparkException, Py4JJavaError) as error:
            self.failure = flow_error(error, self._flow)
            self.failed_between = self._between()
            # Spark runs a regular expression over the text of what is raised here, which overflows
            # the thread's stack when it is as long as Spark's own errors are
            raise RuntimeError(retold(error)) from None
        finally:
            self.gate.leave(whole=whole)
            if self._making is not None:
                self._making.release()
        if self._pacer is not None and self._pause is None:
            seconds = time.monotonic() - began
            self.rested = self._pacer.rest(
                self._flow, seconds, behind=self._is_behind(), asked=self._asked
            )
            self._stopped.wait(self.rested)
        else:
            self.rested = waited

    @property
    def aside(self) -> int:
        """Records and rows that this run has put into the quarantine."""
        parts = (
            self.calling.aside if self.calling else 0,
            self._broken.kept if self._broken else 0,
        )
        return sum(parts)

    def _wait_for_its_time(self) -> float:
        """Waits where the batches are as often as the flow itself says; gives the seconds."""
        if self._pause is None or self._first_batch is None:
            return 0.0
        seconds = self._pause()
        self._stopped.wait(seconds)  # if it ends early, the gate lets nothing through
        return seconds

    def stop(self) -> None:
        """Ends a rest at once: what is to be stopped need not wait for it."""
        self._stopped.set()
        self.gate.close()

    def _is_behind(self) -> bool:
        """True when the batch has as many records as it may have: more are waiting."""
        return 0 < self._limit <= self._records() * _NEARLY

    def _write(self, batch: DataFrame, batch_id: int) -> None:
        batch, names = self._divide(batch, self._gone if batch_id == self._first_batch else 0)
        if self.calling is not None:
            batch = self.calling.divided(batch)
        crash_point("before_write", self._flow, batch_id)
        self._attached()
        template = TaskWrite(
            flow=self._flow,
            epoch=self._epoch,
            run=self._run,
            task="",
            batch_id=batch_id,
            topic=self._topic,
            tokens_topic=COMMITS_TOPIC,
            previous_batch=None,
            recovering=batch_id == self._first_batch,
            late=self.calling is not None,
        )
        for result in self._written(batch, names, template):
            self.rows_written += result.rows
            if result.wrote:
                self._last_written[result.task] = batch_id

    def _written(
        self, batch: DataFrame, names: Sequence[str] | None, template: TaskWrite
    ) -> Sequence[Written]:
        """Has the batch written, by the driver or by the tasks."""
        tasks = BatchTasks(template, dict(self._last_written))
        judge = None if self._broken is None else self._broken.judge()
        results = self._written_here(batch, names, tasks, judge)
        if results is None:
            work = None if self.calling is None else self.calling.work()
            function = task_function(self._connection.to_dict(), tasks, names, work, judge)
            results = [Written._make(row) for row in batch.mapInArrow(function, COLUMNS).collect()]
        crash_point("after_write", self._flow, template.batch_id)
        if self._sizes is not None:
            made_of = self._records() if self._making is None else sum(r.rows for r in results)
            self._sizes.saw(made_of, sum(result.size for result in results))
        notes = [result.note for result in results if result.note is not None]
        if self.calling is not None:
            self.calling.learn(notes)
            crash_point("after_learn", self._flow, template.batch_id)
        if self._broken is not None:
            self._broken.count(notes, template.batch_id, self._epoch)
        return results

    def _written_here(
        self,
        batch: DataFrame,
        names: Sequence[str] | None,
        tasks: BatchTasks,
        judge: Judge | None,
    ) -> Sequence[Written] | None:
        """Has the driver write the batch, if it is small."""
        several = names is not None and len(names) > 1  # it was larger when it was planned
        if several or self._sizes is None or not self._sizes.fit(self._records()):
            return None
        if self._making is None:
            return write_here(batch, names, self._connection, tasks.named, judge)
        # made of more than the batch's records: that these are few may not mean that the rows are,
        # and if they are not, they were made in vain
        if not (self._making.few and self._sizes.few_lately):
            return None
        most = self._sizes.most
        return write_here(batch, names, self._connection, tasks.named, judge, most)

    def _divide(self, batch: DataFrame, gone: int) -> tuple[DataFrame, Sequence[str] | None]:
        """The batch as its tasks write it, and their names; None: by the number of the state.

        `gone` is how many records more the batch had when it was planned.
        """
        if self._split is Split.BY_STATE:
            return batch, None
        if self._split is Split.WHOLE:
            few = self._making is not None and self._making.few
            return batch.coalesce(1) if few else batch.repartition(1), ["all"]
        if gone + self._records() <= SMALL_BATCH:
            return batch.coalesce(1), ["all"]
        return batch, [r.partition for r in self._source_ranges()]

    def _attached(self) -> None:
        """Waits until the query is known."""
        if not self._started.wait(60):
            message = "the flow's query was never attached to its writer"
            raise RuntimeError(message)

    def _look_for_losses(self) -> None:
        if self._watch is None:
            return
        for scan in self._scans():
            self._watch(offsets_in(scan.start().json()), offsets_in(scan.end().json()))

    def _go_behind(self, batch_id: int) -> None:
        """What is left to do when the batch is written; for flows with one aggregate only."""
        if not self._behind:
            return
        crash_point("after_batch", self._flow, batch_id)
        states = (n for n in _nodes(self._plan()) if n.getClass().getSimpleName() == _STATE)
        state = next(states, None)
        if state is None:  # nothing is kept for the next batch, so nothing is late
            return
        watermark = state.eventTimeWatermarkForLateEvents()
        start, end = self._between()
        passed = Passed(
            batch_id,
            start,
            end,
            watermark=int(watermark.get()) if watermark.isDefined() else 0,
            dropped=int(state.longMetric(_DROPPED).value()),
            recovering=batch_id == self._first_batch,
            epoch=self._epoch,
        )
        for work in self._behind:
            work(passed)

    def _between(self) -> tuple[dict[str, Offsets], dict[str, Offsets]]:
        """From where to where the batch reads, by topic."""
        start: dict[str, Offsets] = {}
        end: dict[str, Offsets] = {}
        for scan in self._scans():
            start |= offsets_in(scan.start().json())
            end |= offsets_in(scan.end().json())
        return start, end

    def _records(self) -> int:
        """How many records the batch reads."""
        return sum(r.end - r.start for r in self._source_ranges())

    def _source_ranges(self) -> list[SourceRange]:
        """Input ranges in the order of the batch's tasks, from the plan that runs it."""
        if self._ranges is not None:
            return self._ranges
        ranges: list[SourceRange] = []
        for index, scan in enumerate(self._scans()):
            text = scan.inputPartitions().mkString("\n")
            taken = {r.partition for r in ranges}
            for partition, start, end in _RANGE.findall(text):
                # a stream that is read twice, as by UNION ALL with itself, has its tasks twice
                name = f"{partition}/{index}" if partition in taken else partition
                ranges.append(SourceRange(name, int(start), int(end)))
        self._ranges = ranges
        return ranges

    def _scans(self) -> list[Any]:
        """The inputs of the plan that runs the batch; one without news is not read."""
        if self._scanned is None:
            leaves = self._plan().collectLeaves()
            found = [leaves.apply(index) for index in range(leaves.size())]
            self._scanned = [leaf for leaf in found if leaf.getClass().getSimpleName() == _SCAN]
        return self._scanned

    def _plan(self) -> Any:
        """The plan that runs the batch."""
        self._attached()
        return self._execution.lastExecution().executedPlan()


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for index in range(children.size()):
        yield from _nodes(children.apply(index))
