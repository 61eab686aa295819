"""A flow in micro-batches: what Spark reads, and what becomes of each batch, by kind of flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from mainstem.catalog.entry import Entry
from mainstem.catalog.fingerprint import core_of
from mainstem.config import SparkSettings
from mainstem.definitions.count_windows import count_window_of
from mainstem.definitions.expiry import expiry_of
from mainstem.definitions.flow import flow_kind
from mainstem.definitions.late import late_queries
from mainstem.definitions.model import Definition, FlowKind, Format, Kind
from mainstem.definitions.state import OutputMode, keeps_state, output_mode
from mainstem.engine import current_rows
from mainstem.engine.called import Called
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.compile import compile_stream
from mainstem.engine.counting import Counting
from mainstem.engine.decode import Intake, mentioned_metadata, read_stream
from mainstem.engine.encode import encode
from mainstem.engine.enrich import Enrichment
from mainstem.engine.expiry import ExpiredRows
from mainstem.engine.formats import Formats
from mainstem.engine.handler import HandlerFlow
from mainstem.engine.judged import BrokenRows
from mainstem.engine.keyed import KeyedFlow
from mainstem.engine.late import LateKeeper
from mainstem.engine.pacing import Pacer
from mainstem.engine.passed import Passed
from mainstem.engine.ranges import read_signals
from mainstem.engine.set_aside import left_out
from mainstem.engine.sink import SinkCalls
from mainstem.engine.small_batch import Sizes
from mainstem.engine.sources.run import run_source
from mainstem.engine.sources.source import SourceCalls, Surroundings, resolved
from mainstem.engine.table_changes import TableChanges
from mainstem.engine.table_flow import Recomputation
from mainstem.engine.tables import Tables
from mainstem.engine.target import TargetFlow
from mainstem.engine.topics import wildcard_topics
from mainstem.engine.writer import BatchWriter, Making, Split
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.vocabulary import Clock

_ASKED = "asked"


@dataclass(frozen=True, slots=True)
class Machinery:
    """What it takes to run micro-batches."""

    spark: SparkSession
    connection: Connection
    settings: SparkSettings
    checkpoints: Checkpoints
    tables: Tables
    admin: Admin
    clock: Clock
    formats: Formats
    project: Path
    """The project's folder, which paths in its definitions are relative to."""


@dataclass(frozen=True, slots=True)
class _Run:
    """What Spark reads, and how the batches are made and written."""

    rows: DataFrame
    split: Split
    making: Making | None = None
    calling: KeyedFlow | HandlerFlow | TargetFlow | SourceCalls | None = None
    pause: Callable[[], float] | None = None
    mode: OutputMode = "append"
    bounded: bool = False
    """True when a batch makes rows of its own records alone, not of what earlier ones left."""

    @property
    def measured(self) -> bool:
        """True when it can be told which batches are small, and the driver can write them."""
        return self.calling is None and (self.bounded or self.making is not None)


def start_micro_batch(
    session: SparkSession,
    entry: Entry,
    inputs: Sequence[Definition],
    machinery: Machinery,
    checkpoint: str,
    pacer: Pacer | None = None,
    **trigger: Any,
) -> tuple[StreamingQuery, BatchWriter]:
    """Starts the entry's flow, written exactly once to its topic."""
    definition = entry.definition
    for source in inputs:
        if source.format is Format.DEBEZIUM:
            parts = (machinery.connection, machinery.admin)
            machinery.formats.changes.look(source.topic, *parts)
    run = _run(session, entry, inputs, machinery, checkpoint)
    topics = wildcard_topics(entry.name, inputs, machinery.admin)
    writer = BatchWriter(
        entry.flow_id,
        definition.topic,
        machinery.connection,
        run.split,
        run.making,
        calling=run.calling,
        watch=topics.watch if topics else None,
        gone=topics.forget_lost(machinery.spark, checkpoint) if topics else 0,
        behind=_behind(entry, inputs, machinery),
        pacer=pacer,
        pause=run.pause,
        asked=definition.trigger is not None,
        limit=machinery.settings.max_records_per_batch,
        settled=machinery.checkpoints.settled(checkpoint),
        sizes=Sizes(machinery.connection.max_record_bytes) if run.measured else None,
        broken=BrokenRows(entry, inputs, machinery.connection, machinery.admin, machinery.clock)
        if definition.rules
        else None,
    )
    query = (
        run.rows.writeStream.queryName(entry.flow_id)
        .outputMode(run.mode)
        .option("checkpointLocation", checkpoint)
        .trigger(**trigger)
        .foreachBatch(Called(writer))
        .start()
    )
    writer.attach(query)
    return query, writer


def _behind(
    entry: Entry, inputs: Sequence[Definition], machinery: Machinery
) -> list[Callable[[Passed], None]]:
    """What is done behind each batch, where the windows of the flow can be told."""
    work: list[Callable[[Passed], None]] = []
    queries = late_queries(entry.definition, inputs)
    if queries is not None:
        spark, connection = machinery.spark, machinery.connection
        late = LateKeeper(entry, inputs[0], queries, spark, connection, machinery.formats)
        work.append(late)
    expiry = expiry_of(entry.definition, inputs)
    if expiry is not None:
        parts = (machinery.tables, machinery.connection, machinery.formats)
        work.append(ExpiredRows(entry, expiry, *parts))
    return work


def _run(
    session: SparkSession,
    entry: Entry,
    inputs: Sequence[Definition],
    machinery: Machinery,
    checkpoint: str,
) -> _Run:
    definition, connection = entry.definition, machinery.connection
    if definition.captures is not None:
        return _source(session, entry, machinery, checkpoint)
    query = definition.query
    assert query is not None
    mentioned = mentioned_metadata(query.columns_read)
    limit = machinery.settings.max_records_per_batch
    tables, checkpoints, formats = machinery.tables, machinery.checkpoints, machinery.formats
    if definition.target is not None:
        given = (connection, formats, machinery.admin, machinery.clock, machinery.project)
        sink = TargetFlow(entry, definition.target, inputs[0], *given)
        rows = sink.read(session, definition.start, limit)
        return _Run(rows, Split.BY_INPUT, calling=sink)
    if definition.source is not None:
        changes = current_rows.with_marks(inputs[0], definition)
        rows = _stream_of(session, definition, [changes], machinery, current_rows.METADATA)
        current = current_rows.CurrentRows(entry, changes, tables, formats, connection)
        return _Run(rows, Split.BY_INPUT, current)
    match flow_kind(inputs):
        case FlowKind.STREAM:
            if definition.stateful is not None:
                keyed = KeyedFlow(
                    entry,
                    definition.stateful,
                    inputs[0],
                    connection,
                    formats,
                    machinery.clock,
                    checkpoints,
                    checkpoint,
                )
                keyed.prepare(machinery.admin, machinery.settings.shuffle_partitions)
                rows = keyed.read(session, definition.start, limit)
                return _Run(rows, Split.BY_STATE, calling=keyed)
            if definition.handler is not None:
                handler = HandlerFlow(
                    entry, definition.handler, inputs[0], connection, formats, machinery.clock
                )
                rows = handler.read(session, definition.start, limit)
                return _Run(rows, Split.BY_STATE, calling=handler)
            if definition.sink is not None:
                rows = _stream_of(session, definition, inputs, machinery, mentioned)
                return _Run(rows, Split.WHOLE, SinkCalls(entry, definition.sink, formats))
            counts = count_window_of(query)
            if counts is not None:
                rows = _stream_of(session, definition, inputs, machinery, mentioned)
                tasks = machinery.settings.shuffle_partitions
                parts = (entry, counts, inputs[0], checkpoints, checkpoint, tasks, formats)
                return _Run(rows, Split.BY_STATE, Counting(*parts))
            excluded = left_out(entry, inputs, connection, machinery.admin)
            rows = compile_stream(session, definition, inputs, connection, limit, formats, excluded)
            split = Split.BY_STATE if keeps_state(definition, inputs) else Split.BY_INPUT
            mode = output_mode(definition)
            # with every change, an aggregate writes at most the groups of the batch's records
            bounded = split is Split.BY_INPUT or mode == "update"
            return _Run(encode(rows, definition, formats), split, mode=mode, bounded=bounded)
        case FlowKind.ENRICH:
            rows = _stream_of(session, definition, inputs, machinery, mentioned)
            enrichment = Enrichment(entry, inputs, tables, checkpoints, checkpoint, formats)
            return _Run(rows, enrichment.split(session), enrichment)
        case FlowKind.TABLE:
            if definition.kind is Kind.STREAM:
                rows = read_signals(session, inputs, connection, definition.start)
                told = TableChanges(entry, inputs, tables, checkpoints, checkpoint)
                return _Run(rows, Split.WHOLE, told)
            _begin_anew_if_changed(entry, checkpoints, checkpoint)
            rows = read_signals(session, inputs, connection, "earliest")
            making = Recomputation(entry, inputs, tables, checkpoints, checkpoint, formats)
            return _Run(rows, Split.WHOLE, making)


def _source(session: SparkSession, entry: Entry, machinery: Machinery, checkpoint: str) -> _Run:
    options, secrets = resolved(entry.definition, machinery.project)
    at = Surroundings(
        entry,
        options,
        secrets,
        machinery.settings,
        machinery.checkpoints,
        checkpoint,
        machinery.formats,
        machinery.clock,
        machinery.project,
    )
    run = run_source(session, at, machinery.connection.max_record_bytes)
    pause = None if run.asked is None else run.pause
    return _Run(run.rows, run.split, run.asked, calling=run.calls, pause=pause)


def _begin_anew_if_changed(entry: Entry, checkpoints: Checkpoints, folder: str) -> None:
    """A changed table flow reads its tables from the beginning, and writes what is different.

    Its checkpoint is a position only. Crash at any point: the note is not there, so it begins anew.
    """
    core = core_of(entry.fingerprint)
    if checkpoints.read_note(folder, _ASKED, 0) != core:
        checkpoints.delete(folder)
        checkpoints.write_note(folder, _ASKED, 0, core)


def _stream_of(
    session: SparkSession,
    definition: Definition,
    inputs: Sequence[Definition],
    machinery: Machinery,
    metadata: Sequence[str],
) -> DataFrame:
    """The only stream among the inputs, decoded."""
    [stream] = [source for source in inputs if source.kind is Kind.STREAM]
    intake = Intake(
        machinery.connection,
        machinery.formats,
        start=definition.start,
        until=definition.until,
        max_records=machinery.settings.max_records_per_batch,
        metadata=metadata,
    )
    return read_stream(session, stream, intake)
