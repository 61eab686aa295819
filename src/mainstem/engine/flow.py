"""One flow: a Spark streaming query that is started, watched, restarted with back-off and stopped.

A flow's own failures stay its own: nothing here raises into the runner.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from mainstem.catalog.backfill import HANDING_OVER
from mainstem.catalog.entry import Entry
from mainstem.catalog.plan import TopicNeed
from mainstem.definitions.flow import flow_kind
from mainstem.definitions.model import Definition, FlowKind, Kind, Lane
from mainstem.definitions.state import keeps_state
from mainstem.engine.apply_late import corrections_of
from mainstem.engine.compile import compile_stream, flow_session
from mainstem.engine.decode import intake_of
from mainstem.engine.encode import encode
from mainstem.engine.formats import AWAITED
from mainstem.engine.idle import StreamTimes, move_watermark
from mainstem.engine.micro_batch import Machinery, start_micro_batch
from mainstem.engine.new_schemas import meet_schemas
from mainstem.engine.offset_log import OffsetLog
from mainstem.engine.pacing import Pacer
from mainstem.engine.progress import Progress, ProgressListener, range_of
from mainstem.engine.quarantine import Keeper, Report
from mainstem.engine.realtime import CHECKPOINT_EVERY, obstacles
from mainstem.engine.set_aside import set_aside
from mainstem.engine.sources.source import SourceCalls, without_secrets
from mainstem.engine.spark_errors import flow_error
from mainstem.engine.status import FlowState, FlowStatus, iso
from mainstem.engine.streamed import patient
from mainstem.engine.take_over import TakeOver, is_pending
from mainstem.engine.target import RETRIED
from mainstem.engine.writer import BatchWriter, TaskMaking
from mainstem.errors import MainstemError
from mainstem.log.late import Ledger
from mainstem.log.producer import TransactionalProducer
from mainstem.vocabulary import TICKS_PREFIX, Offsets, group_of

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
_HEALTHY_AFTER_SECONDS = 60.0

EndsOf = Callable[[Definition], Mapping[str, Offsets]]


@dataclass(frozen=True, slots=True)
class FlowServices(Machinery):
    """What every flow of an engine shares."""

    keeper: Keeper
    ledger: Ledger
    pacer: Pacer
    in_background: Callable[[Callable[[], None]], None]
    """Runs a short piece of work in another thread, in order."""
    make_topic: Callable[[TopicNeed], None]
    """Makes a topic; nothing happens when it exists."""

    def ends_of(self, source: Definition) -> Mapping[str, Offsets]:
        """Where the topics of an input end now."""
        return self.admin.all_end_offsets(self.admin.topics_of(source))


class Flow:
    """A flow of the catalog in this engine. Only the runner's thread calls its methods, except
    `_on_progress`, which Spark calls from its listener thread.
    """

    def __init__(
        self, entry: Entry, inputs: tuple[Definition, ...], services: FlowServices
    ) -> None:
        self.entry = entry
        self.inputs = inputs
        self._services = services
        self._query: StreamingQuery | None = None
        self._writer: BatchWriter | None = None
        self._pause = _FIRST_PAUSE_SECONDS
        self._retry_at: float | None = None
        self._started_at = 0.0
        self._newest: float | None = None
        self._written_before = 0
        # an enrich flow reads its tables beside the stream, wherever they are
        whole = flow_kind(inputs) is FlowKind.TABLE
        self._streamed = [i for i in inputs if whole or i.kind is Kind.STREAM]
        self._set_aside = 0
        self._retrying = False
        """True while the target of a sink fails, or what a source asks."""
        self._times = StreamTimes()
        self._taking_over: TakeOver | None = None
        self.handing_over: dict[str, Any] | None = None
        """What the status says while the flow takes over from a backfill."""
        self.group = group_of(entry.name)
        lane = entry.definition.lane.value
        self.status = FlowStatus(entry.name, entry.generation, lane, entry.fingerprint)

    @property
    def running(self) -> bool:
        """True while the flow's query runs."""
        return self._query is not None and self._query.isActive

    def start(self) -> None:
        """Starts the query; a failure is recorded and tried again later."""
        self._retry_at = None
        self.status.next_retry = None
        try:
            if not self._takes_over():
                self._start()
        except (MainstemError, PySparkException) as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 - a flow's failure must not reach the others
            _LOG.exception("flow %s: start failed", self.entry.name)
            self._failed(error)

    def stop(self, state: FlowState = FlowState.STOPPED) -> None:
        """Stops the query and waits until it has ended; a running batch is abandoned, not torn."""
        query, self._query = self._query, None
        self._retry_at = None
        self.status.next_retry = None
        self.status.state = state
        self.status.input_rate = self.status.process_rate = 0.0
        if self._taking_over is not None:
            self._taking_over.join()
            self._taking_over = None
        if self._writer is not None:
            self._writer.stop()
        if query is not None:
            try:
                query.stop()
            except PySparkException as error:
                _LOG.warning("flow %s: stop: %s", self.entry.name, flow_error(error, "").message)
        if self._writer is not None:
            self._written_before += self._writer.rows_written
            self._set_aside += self._writer.aside
            self._writer = None

    def tick(self) -> None:
        """Looks whether the query has died, and whether it is time to try again."""
        now = self._services.clock.now()
        running = self.running
        if self._query is not None and not running:
            error = self._query.exception()
            writer = self._writer
            failure = None if writer is None else writer.failure
            self.stop()
            aside = failure is not None and self._put_aside(failure)
            if aside or (error is not None and self._meets(error, writer)):
                self.start()
            else:
                self._failed(error if error is not None else RuntimeError("the query ended"))
        elif self._taking_over is not None and self._taking_over.ended:
            problem, self._taking_over = self._taking_over.error, None
            if problem is None:
                self.start()
            else:
                self._failed(problem)
        elif self._retry_at is not None and now >= self._retry_at:
            self.status.restarts += 1
            self.start()
        elif running and now - self._started_at > _HEALTHY_AFTER_SECONDS:
            self._pause = _FIRST_PAUSE_SECONDS
        if self._writer is not None and self._writer.calling is not None:
            self._ring(self._writer.calling)

    def hold(self) -> bool:
        """Lets no further batch begin; True when the flow is held behind a whole batch."""
        return self.running and self._writer is not None and self._writer.gate.hold()

    def release(self) -> None:
        """Lets a flow that is held go on."""
        if self._writer is not None:
            self._writer.gate.release()

    def measure(self, ends_of: EndsOf | None = None) -> None:
        """Brings lag and counts up to date with the log.

        `ends_of` says where an input ends, if that is known already.
        """
        ends_of = ends_of or self._services.ends_of
        if self._writer is not None:
            self.status.rows_out_total = self._written_before + self._writer.rows_written
            if self._writer.calling is not None:
                self.status.state_rows = self._writer.calling.keys
        streams = [source for source in self.inputs if source.kind is Kind.STREAM]
        decoded = sum(self._services.keeper.kept(source.name) for source in streams)
        aside = 0 if self._writer is None else self._writer.aside
        self.status.quarantined = decoded + self._set_aside + aside
        late = self._services.ledger.of(self.entry.flow_id)
        self.status.late_waiting, self.status.late_sample = len(late.entries), late.sample
        if self.entry.definition.captures is not None:
            self._measure_source()
            return
        if self.entry.definition.lane is Lane.REAL_TIME:
            return  # between its checkpoints Spark does not tell where such a flow is
        if self.entry.definition.kind is Kind.STREAM and not self.status.began:
            began = self._services.checkpoints.begin(self.checkpoint)
            self.status.began = {
                topic: {str(p): o for p, o in at.items()} for topic, at in began.items()
            }
        lag = 0
        read = set()
        positions = self.status.positions
        for source in self._streamed:
            ends = ends_of(source)
            new = [topic for topic in ends if topic not in positions]
            if self.entry.definition.start == "latest" and not any(map(source.reads, positions)):
                new = []  # it has not begun, and what is there now is not for it
            begins = self._services.admin.all_begin_offsets(new)
            before = lag
            for topic, end in ends.items():
                at = positions.get(topic)
                if at is None and topic in begins:
                    at = {str(p): o for p, o in begins[topic].items()}
                if at is not None:
                    lag += sum(max(0, o - at.get(str(p), 0)) for p, o in end.items())
            if lag == before:
                read.add(source.name)
        self.status.lag_records = lag
        self._let_time_go_on(read)
        if lag == 0:
            self.status.lag_seconds = 0.0
        elif self._newest is not None:
            self.status.lag_seconds = round(self._services.clock.now() - self._newest, 3)

    def _measure_source(self) -> None:
        """What a source tells of itself; its position is in no topic of ours."""
        calls = None if self._writer is None else self._writer.calling
        if isinstance(calls, SourceCalls):
            self.status.source = dict(calls.tell())

    def _let_time_go_on(self, read: set[str]) -> None:
        now = self._services.clock.now()
        self.status.streams = self._times.status()
        # an empty state has no window that could close
        if self._query is not None and self._times.can_idle and self.status.state_rows:
            move_watermark(self._query, self._times, now, read)

    def _start(self) -> None:
        services, definition = self._services, self.entry.definition
        self.status.state = FlowState.STARTING
        session = flow_session(services.spark, services.settings.shuffle_partitions)
        self._make_way()
        self._take_up_position()
        session.streams.addListener(ProgressListener(self._on_progress))
        services.spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.entry.name)
        if definition.lane is Lane.REAL_TIME:
            self._query = self._start_realtime(session)
        else:
            self._query = self._start_micro_batch(session)
        self._started_at = services.clock.now()
        self.handing_over = None
        if self._retrying:  # until a batch has gone through, nothing is known to be better
            self.status.state = FlowState.RETRYING
        else:
            self.status.state = FlowState.RUNNING
            self.status.error = None
        _LOG.info("flow %s: running, generation %s", self.entry.name, self.entry.generation)

    def _start_micro_batch(self, session: SparkSession) -> StreamingQuery:
        inputs = [patient(self.entry.definition, source) for source in self.inputs]
        self._times = StreamTimes.of(inputs, self._services.clock.now())
        if self._times.can_idle and keeps_state(self.entry.definition, self.inputs):
            begins = self._services.admin.all_begin_offsets
            OffsetLog(self._services.spark, self.checkpoint).run_last_again(begins)
        trigger = self.entry.definition.trigger or self._services.settings.trigger
        query, self._writer = start_micro_batch(
            session,
            self.entry,
            self.inputs,
            self._services,
            self.checkpoint,
            self._services.pacer,
            processingTime=trigger,
        )
        return query

    def _start_realtime(self, session: SparkSession) -> StreamingQuery:
        definition = self.entry.definition
        limit = self._services.settings.max_records_per_batch
        connection, formats = self._services.connection, self._services.formats
        rows = compile_stream(session, definition, self.inputs, connection, limit, formats, {})
        reasons = obstacles(definition, self.inputs, rows)
        if reasons:
            raise MainstemError(
                "REALTIME_NOT_POSSIBLE", name=self.entry.name, reason="; ".join(reasons)
            )
        # PySpark's own type hints do not know the trigger yet
        trigger: dict[str, Any] = {"realTime": CHECKPOINT_EVERY}
        return (
            encode(rows, definition, formats)
            .writeStream.queryName(self.entry.flow_id)
            .format("kafka")
            .options(**self._services.connection.spark_options())
            .option("topic", definition.topic)
            .option("kafka.linger.ms", "0")
            .option("kafka.compression.type", "lz4")
            .option("checkpointLocation", self.checkpoint)
            .outputMode("update")
            .trigger(**trigger)
            .start()
        )

    @property
    def checkpoint(self) -> str:
        """Where the flow keeps its offsets and state."""
        return self._services.checkpoints.folder(self.entry)

    def _takes_over(self) -> bool:
        """Begins to take over the result of a backfill, if there is one; `tick` goes on then."""
        if not is_pending(self.entry, self._services.checkpoints):
            return False
        take_over = TakeOver(self.entry, self.inputs, self._services)
        self.status.state = FlowState.STARTING
        self.handing_over = {"state": HANDING_OVER, "generation": self.entry.generation}
        self._taking_over = take_over
        take_over.start()
        return True

    def _make_way(self) -> None:
        """Clears away what other generations have left, before the flow writes its first record.

        1. After a rebuild, empty the topic, and forget the group's position. Crash: the old
           checkpoint is still there, so this runs again. What a backfill replaced, or what became
           of one that was cancelled, has nothing of its own in the topic.
        2. Remove the other checkpoints. Crash: nothing is left to do.
        3. The new generation starts, and says so in its status: views wait for that.
        """
        entry, services = self.entry, self._services
        others = services.checkpoints.others(entry)
        if entry.backfill is not None and entry.backfill.active:
            others.pop(entry.backfill.generation, None)
        if any(generation < entry.served_generation for generation in others):
            # ends a correction of the old table that has not been committed
            TransactionalProducer(services.connection, corrections_of(entry.name)).close()
            if entry.definition.record is None:  # else a topic of others', too; nothing is rebuilt
                services.admin.truncate(entry.definition.topic)
            services.admin.delete_group(self.group)
        for folder in others.values():
            services.checkpoints.delete(folder)

    def _take_up_position(self) -> None:
        """What an earlier run had read: not behind, but the keeper may not have looked through."""
        admin, group = self._services.admin, self.group
        for source in self._streamed:
            ends = {topic: admin.group_offsets(group, topic) for topic in admin.topics_of(source)}
            ends = {topic: end for topic, end in ends.items() if end}
            for topic, end in ends.items():
                self.status.positions.setdefault(topic, {str(p): o for p, o in end.items()})
            if ends:
                self._report(source, {}, ends, None)

    def _report(
        self,
        source: Definition,
        start: Mapping[str, Offsets],
        end: Mapping[str, Offsets],
        bad: int | None,
    ) -> None:
        """Tells the keeper what was read; who serves a table keeps that one's bad records."""
        if source.kind is Kind.STREAM:
            self._services.keeper.report(Report(source, start, end, bad))

    def _ring(self, calling: TaskMaking) -> None:
        """Lets a timer of the flow's function ring, if one is due."""
        try:
            calling.ring()
        except MainstemError as error:
            _LOG.warning("flow %s: %s", self.entry.name, error.message)

    def _put_aside(self, failure: MainstemError) -> bool:
        """Keeps the records for which a function failed; True when the flow can go on."""
        services = self._services
        try:
            count = set_aside(failure, self.entry, self.inputs, services.connection, services.clock)
        except MainstemError as error:
            _LOG.warning("flow %s: %s", self.entry.name, error.message)
            return False
        self._set_aside += count
        return count > 0

    def _meets(self, error: BaseException, writer: BatchWriter | None) -> bool:
        """Gets to know the schemas of a batch; True when their lack was why it failed."""
        between = None if writer is None else writer.failed_between
        services = self._services
        try:
            return meet_schemas(flow_error(error, self.entry.name), self.inputs, services, between)
        except (MainstemError, PySparkException) as problem:
            _LOG.warning("flow %s: %s", self.entry.name, flow_error(problem, "").message)
            return False

    def _failed(self, error: BaseException) -> None:
        problem = flow_error(error, self.entry.name)
        if self.entry.definition.captures is not None:
            problem = without_secrets(problem, self.entry.definition, self._services.project)
        now = self._services.clock.now()
        if problem.code == AWAITED:
            self._await(problem, now)
            return
        definition = self.entry.definition
        sink_waits = definition.target is not None and problem.code in RETRIED
        self._retrying = sink_waits or definition.captures is not None
        self._retry_at = now + max(self._pause, float(problem.params.get("retry_after", 0)))
        self.status.state = FlowState.RETRYING if self._retrying else FlowState.FAILED
        self.status.error = problem.problem()
        self.status.next_retry = iso(self._retry_at)
        wait = self._retry_at - now
        _LOG.error("flow %s: %s; next try in %.0f s", self.entry.name, problem.message, wait)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)

    def _await(self, problem: MainstemError, now: float) -> None:
        """Nothing is wrong: the catalog gets the columns, and so this flow ends, or it looks again.

        The records stay where they are, and the flow begins with the first that has the columns.
        """
        if self.status.error is None:
            _LOG.info("flow %s: %s", self.entry.name, problem.message)
        self._retry_at = now + _FIRST_PAUSE_SECONDS
        self.status.state = FlowState.STARTING
        self.status.error = problem.problem()

    def _on_progress(self, progress: Progress) -> None:
        status = self.status
        if self._retrying and self._query is not None:
            self._retrying = False
            self._pause = _FIRST_PAUSE_SECONDS
            status.state, status.error = FlowState.RUNNING, None
        status.batch_id = progress.batch_id
        rested = 0.0 if self._writer is None else self._writer.rested
        status.batch_seconds = round(max(0.0, progress.seconds - rested), 3)
        run = round(max(0.0, progress.split["run"] - rested), 3)
        status.batch_split = {**progress.split, "run": run}
        if self.entry.definition.captures is not None:
            # where it is in another system is no position in our log
            told = [source for source in progress.sources if source.latest]
            status.lag_records = sum(source.behind for source in told) if told else None
            return
        status.input_rate = progress.input_rate
        status.process_rate = round(progress.input_rows / max(status.batch_seconds, 0.001), 1)
        status.watermark = progress.watermark
        status.event_time = progress.event_time
        operators = progress.operators
        if operators:
            status.state_rows = sum(operator["numRowsTotal"] for operator in operators)
            status.state_bytes = sum(operator["memoryUsedBytes"] for operator in operators)
            status.late_dropped += sum(o["numRowsDroppedByWatermark"] for o in operators)
        observed = {d.name: progress.observed.get(intake_of(d)) for d in self.inputs}
        status.rows_in_total += progress.input_rows
        newest = [seen["newest"] for seen in observed.values() if seen and "newest" in seen]
        if newest:
            self._newest = max(newest) / 1000
        committed: dict[str, dict[int, int]] = {}
        moved = 0
        for source in progress.sources:
            starts, ends = source.start, source.end
            for topic in starts.keys() - ends.keys():  # deleted
                status.positions.pop(topic, None)
            for topic, end in ends.items():
                if topic.startswith(TICKS_PREFIX):
                    continue  # no input of the user's
                known = committed.get(topic, {})
                committed[topic] = at = {p: min(o, known.get(p, o)) for p, o in end.items()}
                status.positions[topic] = {str(p): o for p, o in at.items()}
                start = starts.get(topic, {})
                moved += sum(max(0, o - start.get(p, 0)) for p, o in end.items()) if start else 0
        for definition in self.inputs:
            read = range_of(progress.sources, definition.reads)
            if read.start != read.end:
                seen = observed[definition.name]
                time = None if seen is None else seen.get("event_time")
                self._times.saw(definition.name, time, self._services.clock.now())
                # of places that only another source of the topic has read, the count says nothing
                bad = seen["bad"] if seen is not None and read.alike else None
                self._report(definition, read.start, read.end, bad)
        if committed and (progress.input_rows or moved):
            self._services.in_background(
                lambda: self._services.admin.commit_offsets(self.group, committed)
            )
