"""A flow of a sink with a target: the driver's part. `target_task` is what its tasks do.

The input's partitions are the tasks, so the records of a key come to the target in their order. A
table's topic is read as it is, with each upsert and each delete. Of a target that takes a batch as
a whole, the parts are committed here (step d of `target_task`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.catalog.entry import Entry
from mainstem.connect.catalogue import spec_of
from mainstem.connect.secrets import Secrets
from mainstem.connect.spec import Role
from mainstem.connect.targets.beside import beside_options
from mainstem.connect.targets.target import (
    GONE,
    ID,
    OFFSET,
    PARTITION,
    REFUSED,
    ROW,
    TIME,
    TOPIC,
    Committer,
    Form,
    Shape,
    committer_of,
    module_of,
)
from mainstem.definitions.model import Connection as Outside
from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.state import event_time_of
from mainstem.engine.decode import Intake, mentioned_metadata, read_stream
from mainstem.engine.encode import JSON_OPTIONS, row_id
from mainstem.engine.formats import Formats
from mainstem.engine.ranges import offsets_text
from mainstem.engine.table_records import read_change_stream
from mainstem.engine.target_places import Places
from mainstem.engine.target_task import TargetWork, asked
from mainstem.engine.transforms import PASSED, transformed
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.vocabulary import Clock

RETRIED = ("CONNECTOR_UNREACHABLE", "TARGET_REFUSED", "SECRET_MISSING")
"""Failures of a target, not of a flow: the same batch is tried until it works."""

_NESTED = ("array", "struct", "map", "variant")
_T = TypeVar("_T")


class TargetFlow:
    """One run of the flow of a sink; Spark's thread calls it, batch by batch."""

    keys = 0
    """It keeps no state."""

    def __init__(
        self,
        entry: Entry,
        target: Outside,
        source: Definition,
        connection: Connection,
        formats: Formats,
        admin: Admin,
        clock: Clock,
        project: Path,
    ) -> None:
        self._entry = entry
        self._target = target
        self._source = source
        self._connection = connection
        self._formats = formats
        self._admin = admin
        self._clock = clock
        self._project = project
        self._written = dict(target.options)
        self._places: Places | None = None
        """Where the place beside has yet to be made."""
        if target.beside is not None:
            self._places = Places.of(entry, source, project)
            self._written = beside_options(
                target.connector, self._written, source.name, target.beside
            )
        self._options = _validated(target)
        self._transforms = entry.definition.transforms
        self._shape = Shape.of(self._options, source, self._transforms)
        self._secrets = Secrets(project, os.environ)
        self._topics: dict[str, str] = {}
        """Ids by name. A topic that is made anew ends the run, so they stay as they are."""
        self._aside = 0
        self._committer: Committer | None = None
        self._prepared: str | None = None

    def read(self, session: SparkSession, start: str, limit: int) -> DataFrame:
        """The input as it is, and where each record stands."""
        intake = Intake(
            self._connection, self._formats, start=self._offsets_at(start), max_records=limit
        )
        if self._source.kind is Kind.TABLE:
            rows = read_change_stream(session, self._source, intake)
            gone, time = F.col("_gone"), "_timestamp"
        else:
            time = event_time_of(self._source)
            metadata = mentioned_metadata({"_topic", "_partition", "_offset", time})
            rows = read_stream(session, self._source, replace(intake, metadata=metadata))
            gone = F.lit(False)
        return rows.select(
            *(F.col(_quoted(column.name)) for column in self._source.columns),
            F.col("_topic").alias(TOPIC),
            F.col("_partition").alias(PARTITION),
            F.col("_offset").alias(OFFSET),
            F.col(_quoted(time)).cast("timestamp").alias(TIME),
            gone.alias(GONE),
        )

    def _offsets_at(self, start: str) -> str:
        """Where a sink that begins at a time begins now; once it has, its checkpoint counts."""
        if not start[0].isdigit():
            return start
        ends = self._admin.all_end_offsets(self._admin.topics_of(self._source))
        at = int(datetime.fromisoformat(start).timestamp() * 1000)
        return offsets_text(self._admin.all_offsets_at(at, ends))

    def divided(self, batch: DataFrame) -> DataFrame:
        """The batch as the target wants it, each partition in one piece.

        Transforms are done here and not in `read`: Spark tells the plan of a query that fails, and
        this one may have a salt in it.
        """
        rows, shape, more = batch, self._shape, []
        if self._transforms:
            rows = transformed(
                batch, self._source.columns, self._transforms, shape.name, self._secrets.resolve
            )
            more.append(F.col(REFUSED))
        gone = F.col(GONE)
        if self._transforms and shape.deletes:
            gone = gone | ~F.col(PASSED)
        elif self._transforms:
            rows = rows.filter(F.col(PASSED) | F.col(REFUSED).isNotNull())
        id_ = F.lit(None).cast("string")
        if shape.upserts:
            id_ = row_id(replace(self._source, key=shape.key))
        return rows.select(
            *self._columns(gone),
            *map(F.col, (TOPIC, PARTITION, OFFSET, TIME)),
            gone.alias(GONE),
            id_.alias(ID),
            *more,
        )

    def work(self) -> TargetWork:
        """What the tasks of the batch have to do."""
        if self._places is not None:
            self._places.prepare()
            self._places = None
        for topic in self._admin.topics_of(self._source):
            if topic not in self._topics:
                self._topics[topic] = self._admin.topic_id(topic)
        if self._prepared is None:
            self._prepared = self._prepare()
        return TargetWork(
            connection=self._connection.to_dict(),
            sink=self._entry.name,
            connector=self._target.connector,
            options=tuple(self._written.items()),
            project=str(self._project),
            shape=self._shape,
            topics=dict(self._topics),
            now=self._clock.now(),
            prepared=self._prepared,
        )

    def learn(self, notes: Sequence[str]) -> None:
        """Commits what the tasks have staged, and counts what they put aside."""
        said = [json.loads(note) for note in notes]
        staged = [one["staged"] for one in said if one["staged"] is not None]
        if staged and self._committer is not None:
            self._ask(self._committer.commit, staged)
        self._aside += sum(one["aside"] for one in said)

    def _prepare(self) -> str:
        """What the committer tells the tasks; nothing when there is none."""
        connector = self._target.connector
        options = spec_of(Role.SINK, connector).resolve(self._written, self._secrets)
        parts = (connector, options, self._shape, self._entry.name)
        self._committer = self._ask(committer_of, *parts)
        return "" if self._committer is None else self._ask(self._committer.prepare)

    def _ask(self, question: Callable[..., _T], *given: Any) -> _T:
        return asked(self._target.connector, self._secrets, question, *given)

    @property
    def aside(self) -> int:
        """Records that this run has put into the quarantine."""
        return self._aside

    def ring(self) -> bool:
        """It waits for no time."""
        return False

    def _columns(self, gone: SparkColumn) -> list[SparkColumn]:
        form = module_of(self._target.connector).form(self._options)
        names = [column.name for column in self._shape.columns]
        if form is Form.JSON:
            row = F.to_json(F.struct(*(F.col(_quoted(name)) for name in names)), JSON_OPTIONS)
            return [F.when(~gone, row).alias(ROW)]
        texts = ("variant",) if form is Form.COLUMNS else _NESTED
        return [
            F.to_json(F.col(_quoted(c.name)), JSON_OPTIONS).alias(c.name)
            if c.type.lower().startswith(texts)
            else F.col(_quoted(c.name))
            for c in self._shape.columns
        ]


def explained_target(definition: Definition, source: Definition) -> dict[str, Any]:
    """The flow in words."""
    assert definition.target is not None
    connector = definition.target.connector
    shape = Shape.of(_validated(definition.target), source, definition.transforms)
    key = f" by {', '.join(shape.key)}" if shape.key else ""
    each = "each record is one more row"
    if shape.deletes:
        each = "each upsert and each delete is one more row"
    if shape.upserts and module_of(connector).KEYED:
        each = f"rows are upserted{key}" + (", and deleted" if shape.deletes else "")
    return {
        "lane": definition.lane.value,
        "kind": f"sink to {connector}",
        "reasons": [
            module_of(connector).GUARANTEE,
            each,
            *(f"transform: {transform.shown}" for transform in definition.transforms),
            "a row that the target does not take goes to the quarantine; while the target fails, "
            "the same batch is tried again",
            "cannot run in real time: it writes batches",
        ],
        "plan": f"{source.kind} {source.name} -> {connector}",
    }


def _validated(target: Outside) -> dict[str, Any]:
    """The options, secrets as references."""
    return spec_of(Role.SINK, target.connector).validate(dict(target.options))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
