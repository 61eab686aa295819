"""A source at work in the engine: what Spark reads for it, and how that becomes records."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from mainstem.catalog.entry import Catalog, Entry
from mainstem.config import SparkSettings
from mainstem.connect.catalogue import spec_of
from mainstem.connect.on_spark import runs_on_spark
from mainstem.connect.secrets import Secrets
from mainstem.connect.spec import Role
from mainstem.definitions.model import Definition, Kind
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.formats import Formats
from mainstem.engine.sources.records import Diagnose, SourceWork
from mainstem.errors import MainstemError
from mainstem.vocabulary import Clock

_TICKS = "rate-micro-batch"
"""Gives each batch a row, so that there is one whenever it is time."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a source in the engine stands on."""

    entry: Entry
    """The source, with the topic, the columns and the key of its stream."""
    options: Mapping[str, Any]
    """Those of the connector's description, secrets filled in."""
    secrets: Secrets
    settings: SparkSettings
    checkpoints: Checkpoints
    checkpoint: str
    formats: Formats
    clock: Clock
    project: Path


class Asked(Protocol):
    """A source that has to be asked for news: the `Making` of its batches, and when they are."""

    few: bool

    def result(self, batch: DataFrame, batch_id: int) -> DataFrame | None:
        """The records of a batch (`records.COLUMNS`); None when there is no news."""
        ...

    def release(self) -> None:
        """The batch is in the log, or has failed."""
        ...

    @property
    def more(self) -> bool:
        """True when the last batch has left some news."""
        ...

    @property
    def told(self) -> Mapping[str, Any]:
        """How far it is, for people."""
        ...


def source_flows(catalog: Catalog) -> list[Entry]:
    """The sources that run here, each as the entry of a flow; by name."""
    streams = {(e.definition.source or "").lower(): e.definition for e in catalog.entries.values()}
    return [
        flow_of(entry, streams[entry.name.lower()])
        for entry in catalog.of_kind(Kind.SOURCE)
        if entry.definition.captures is not None
        and runs_on_spark(entry.definition.captures.connector)
        and entry.name.lower() in streams
    ]


def flow_of(source: Entry, stream: Definition) -> Entry:
    """A source with what its stream is like, as what a flow is to run."""
    own = source.definition
    definition = Definition(
        name=source.name,
        kind=Kind.SOURCE,
        topic=stream.topic,
        location=own.location,
        text=own.text,
        columns=stream.columns,
        key=stream.key,
        format=stream.format,
        captures=own.captures,
    )
    return Entry(definition, source.fingerprint, source.generation, paused=source.paused)


def resolved(definition: Definition, project: Path) -> tuple[dict[str, Any], Secrets]:
    """The options of a source, secrets filled in, and what takes these out of texts again."""
    assert definition.captures is not None, f"{definition.name} has no connector"
    secrets = Secrets(project, os.environ)
    spec = spec_of(Role.SOURCE, definition.captures.connector)
    return spec.resolve(dict(definition.captures.options), secrets), secrets


def without_secrets(error: MainstemError, definition: Definition, project: Path) -> MainstemError:
    """An error of a source, whose texts may quote what it logs in with."""
    try:
        _, secrets = resolved(definition, project)
    except MainstemError:
        return error  # nothing was filled in, and so nothing can be told
    params: dict[str, Any] = {
        name: secrets.mask(value) if isinstance(value, str) else value
        for name, value in error.params.items()
    }
    return MainstemError(error.code, **params)


def ticks(session: SparkSession) -> DataFrame:
    """A stream that has a batch whenever one is asked for."""
    options = {"rowsPerBatch": "1", "numPartitions": "1"}
    return session.readStream.format(_TICKS).options(**options).load()


@dataclass(slots=True)
class SourceCalls:
    """The `TaskMaking` of all sources: batches are records, which tasks write."""

    source: str
    topic: str
    largest: int
    clock: Clock
    diagnose: Diagnose | None = None
    as_records: Callable[[DataFrame], DataFrame] = field(default=lambda batch: batch)
    tell: Callable[[], Mapping[str, Any]] = dict
    """How far the source is, for people."""
    aside: int = 0
    """Records that this run has put into the quarantine."""
    keys: int = 0

    def divided(self, batch: DataFrame) -> DataFrame:
        """The batch as its tasks take it."""
        return self.as_records(batch)

    def work(self) -> SourceWork:
        """What the tasks of the batch have to do."""
        now = self.clock.now()
        return SourceWork(self.source, self.topic, now, self.largest, self.diagnose)

    def ring(self) -> bool:
        """It waits for no time."""
        return False

    def learn(self, notes: Sequence[str]) -> None:
        """Counts what was put aside."""
        self.aside += sum(json.loads(note)["aside"] for note in notes)
