"""The real-time lane: which flows may run in it, and what it promises."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from mainstem.definitions.count_windows import count_window_of
from mainstem.definitions.model import Definition, Format, Kind
from mainstem.definitions.state import mentions
from mainstem.engine.java import java_class
from mainstem.engine.plans import name_of, nodes
from mainstem.engine.spark_errors import short

CHECKPOINT_EVERY = "5 minutes"
"""A real-time batch is as long as this; each boundary stalls the flow for about a second."""

_READ_IN_PYTHON = {Format.PROTOBUF, Format.JSON_SCHEMA}
_WRITTEN = {Format.PROTOBUF}


def obstacles(definition: Definition, inputs: Sequence[Definition], rows: DataFrame) -> list[str]:
    """Why the flow cannot run in real time; empty when it can."""
    query = definition.query
    found: list[str] = []
    if query is None:
        return ["it has no query"]
    if count_window_of(query) is not None:
        return ["Spark has no windows of so many events"]
    if definition.final:
        return ["EMIT FINAL waits until windows close, and the real-time mode writes every change"]
    # Spark finds these only when the flow runs
    if query.joins:
        found.append("Spark's real-time mode has no joins of streams")
    if definition.within or (query.python is not None and _deduplicates(rows)):
        found.append("Spark's real-time mode has no deduplication within a time")
    if definition.rules:
        found.append("Spark's own writer, which it needs, cannot put aside rows that break rules")
    read = mentions(query)
    if not query.joins and len(set(read)) < len(read):
        found.append("Spark's real-time mode reads each stream once only")
    if any(source.pattern is not None for source in inputs):
        found.append(f"a new topic would be found only every {CHECKPOINT_EVERY}")
    if any(source.processing_time and source.watermark for source in inputs):
        found.append(f"the time of a batch stands still for {CHECKPOINT_EVERY}")
    if any(source.idle_timeout for source in inputs):
        found.append("an idle time-out closes windows between batches only")
    read_in = {form for source in inputs for form in (source.format, source.key_format)}
    slow = (read_in & _READ_IN_PYTHON) | ({definition.format, definition.key_format} & _WRITTEN)
    if slow:
        names = " and ".join(sorted(str(form) for form in slow))
        found.append(f"the format {names} needs Python, which Spark's real-time mode has not")
    problem = streaming_complaint(rows, "update", realtime=True)
    if problem:
        found.append(problem)
    return found


def promise(definition: Definition) -> str:
    """What a reader may rely on, for EXPLAIN."""
    if definition.kind is Kind.TABLE:
        return (
            "after a failure rows may be written again with the same key and newer values: "
            "the table stays correct"
        )
    return "at least once: after a failure records of the last minutes may be written again"


def streaming_complaint(rows: DataFrame, mode: str, *, realtime: bool = False) -> str | None:
    """What Spark's own checker says against running the plan as a stream; None: nothing."""
    plan = rows._jdf.queryExecution().analyzed()
    modes = java_class("org.apache.spark.sql.streaming.OutputMode")
    output_mode = modes.Update() if mode == "update" else modes.Append()
    checker = java_class("org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker")
    try:
        checker.checkForStreaming(plan, output_mode)
        if realtime:
            checker.checkAdditionalRealTimeModeConstraints(plan, output_mode)
    except PySparkException as error:
        return short(error)
    return None


def _deduplicates(rows: DataFrame) -> bool:
    kinds = map(name_of, nodes(rows._jdf.queryExecution().analyzed()))
    return "DeduplicateWithinWatermark" in kinds
