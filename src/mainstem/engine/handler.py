"""A flow of an event function: the driver's part. `handler_task` is what its tasks do."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Definition, Handler
from mainstem.engine.decode import Intake
from mainstem.engine.formats import Formats
from mainstem.engine.handler_task import HandlerWork
from mainstem.engine.records_for import PARTITION, TOPIC, records_for
from mainstem.log.connection import Connection
from mainstem.vocabulary import Clock

_TASKS = 4
"""So many records may be worked on at the same time; those of one partition one after the other.
Part of the protocol: a replayed batch must be split as it was, so the number may not change."""


class HandlerFlow:
    """One run of the flow of an event function; Spark's thread calls it, batch by batch."""

    keys = 0
    """It keeps no state."""

    def __init__(
        self,
        entry: Entry,
        handler: Handler,
        source: Definition,
        connection: Connection,
        formats: Formats,
        clock: Clock,
    ) -> None:
        self._handler = handler
        self._row_key = entry.definition.key
        self._source = source
        self._connection = connection
        self._formats = formats
        self._clock = clock
        self._aside = 0

    def read(self, session: SparkSession, start: str, limit: int) -> DataFrame:
        """The input: what the function takes, and where each record stands."""
        most = min(limit, self._handler.most)
        intake = Intake(self._connection, self._formats, start=start, max_records=most)
        return records_for(session, self._handler.function, self._source, intake, {})

    def divided(self, batch: DataFrame) -> DataFrame:
        """The batch as its tasks take it, each partition of the input in one."""
        return batch.repartition(_TASKS, TOPIC, PARTITION)

    def work(self) -> HandlerWork:
        """What the tasks of the batch have to do."""
        connection = self._connection.to_dict()
        return HandlerWork(connection, self._handler, self._row_key, self._clock.now())

    def learn(self, notes: Sequence[str]) -> None:
        """Counts what was put aside."""
        self._aside += sum(json.loads(note)["aside"] for note in notes)

    @property
    def aside(self) -> int:
        """Records that this run has put into the quarantine."""
        return self._aside

    def ring(self) -> bool:
        """It waits for no time."""
        return False
