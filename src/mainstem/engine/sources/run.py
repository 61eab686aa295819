"""Starts the source of a flow: by connector, what Spark reads, and what makes records of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from mainstem.engine.sources import kafka_copy
from mainstem.engine.sources.files import FileBatches
from mainstem.engine.sources.formats import as_records, read_format
from mainstem.engine.sources.jdbc import JdbcBatches
from mainstem.engine.sources.kafka_copy import read_topics
from mainstem.engine.sources.source import Asked, SourceCalls, Surroundings, ticks
from mainstem.engine.writer import Split


@dataclass(frozen=True, slots=True)
class SourceRun:
    """What Spark reads for a source, and how the batches are made and written."""

    rows: DataFrame
    calls: SourceCalls
    asked: Asked | None = None
    """None: the stream itself has the records."""
    interval: float = 0.0
    """Seconds from one question to the next."""
    split: Split = Split.BY_STATE

    def pause(self) -> float:
        """How long it rests after a batch."""
        return 0.0 if self.asked is None or self.asked.more else self.interval


def run_source(session: SparkSession, at: Surroundings, largest: int) -> SourceRun:
    """The source of an entry that `source_flows` gives; `largest` is what the log takes."""
    captures = at.entry.definition.captures
    assert captures is not None, f"{at.entry.name} is no source"
    return RUNS[captures.connector](session, at, largest)


def _files(session: SparkSession, at: Surroundings, largest: int) -> SourceRun:
    files = FileBatches(at)
    calls = _calls(at, largest)
    calls.diagnose = files.diagnose
    return _asked(session, at, files, calls)


def _jdbc(session: SparkSession, at: Surroundings, largest: int) -> SourceRun:
    return _asked(session, at, JdbcBatches(session, at), _calls(at, largest))


def _kafka(session: SparkSession, at: Surroundings, largest: int) -> SourceRun:
    rows = read_topics(session, at.options, at.settings.max_records_per_batch)
    calls = _calls(at, largest)
    calls.as_records = kafka_copy.as_records
    return SourceRun(rows, calls, split=Split.BY_INPUT)


def _spark(session: SparkSession, at: Surroundings, largest: int) -> SourceRun:
    rows = read_format(session, at.options, at.project, at.settings)
    stream = at.entry.definition
    # what a task of it holds nobody knows: a batch is one transaction
    return SourceRun(as_records(rows, stream, at.formats), _calls(at, largest), split=Split.WHOLE)


def _asked(session: SparkSession, at: Surroundings, asked: Asked, calls: SourceCalls) -> SourceRun:
    calls.tell = lambda: asked.told
    return SourceRun(ticks(session), calls, asked, at.options["interval"] / 1000)


def _calls(at: Surroundings, largest: int) -> SourceCalls:
    return SourceCalls(at.entry.name, at.entry.definition.topic, largest, at.clock)


RUNS: Mapping[str, Callable[[SparkSession, Surroundings, int], SourceRun]] = {
    "files": _files,
    "jdbc-poll": _jdbc,
    "kafka": _kafka,
    "spark": _spark,
}
"""By connector."""
