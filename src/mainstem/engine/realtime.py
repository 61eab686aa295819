"""The real-time lane: which flows may run in it, and what it promises."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from mainstem.definitions.model import Definition, Kind
from mainstem.engine.spark_errors import short

CHECKPOINT_EVERY = "5 minutes"
"""A real-time batch is as long as this; each boundary stalls the flow for about a second."""

_SESSION_WINDOW = re.compile(r"\bsession_window\s*\(", re.IGNORECASE)


def obstacles(definition: Definition, inputs: Sequence[Definition], rows: DataFrame) -> list[str]:
    """Why the flow cannot run in real time; empty when it can."""
    query = definition.query
    found: list[str] = []
    if query is None:
        return ["it has no query"]
    if _SESSION_WINDOW.search(query.canonical):
        found.append("session windows are not available in Spark's real-time mode")
    if any(source.pattern is not None for source in inputs):
        found.append(f"a new topic would be found only every {CHECKPOINT_EVERY}")
    problem = streaming_complaint(rows, "update", realtime=True)
    if problem:
        found.append(problem)
    return found


def slots_needed(input_partitions: int, shuffle_partitions: int, definition: Definition) -> int:
    """Task slots that the flow holds all the time."""
    stateful = definition.query is not None and definition.query.aggregates
    return input_partitions + (shuffle_partitions if stateful else 0)


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
    jvm: Any = rows.sparkSession._jvm
    plan = rows._jdf.queryExecution().analyzed()
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    output_mode = modes.Update() if mode == "update" else modes.Append()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        checker.checkForStreaming(plan, output_mode)
        if realtime:
            checker.checkAdditionalRealTimeModeConstraints(plan, output_mode)
    except PySparkException as error:
        return short(error)
    return None
