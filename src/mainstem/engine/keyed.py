"""A flow of a stateful function: the driver's part. `keyed_task` is what its tasks do.

Each record goes to the task that keeps the state of its key; how many tasks there are is told by
the partitions of the changelog, so it is fixed for the life of the flow. Spark runs a batch only
when there is something to read: when a timer is due, a tick is written to a topic that the flow
reads, too.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Definition, Stateful, TimerClock
from mainstem.definitions.options import milliseconds
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.decode import Intake
from mainstem.engine.formats import Formats
from mainstem.engine.keyed_task import KeyedWork
from mainstem.engine.records_for import records_for
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer
from mainstem.log.state_store import changelog_topic
from mainstem.vocabulary import CHANGELOG_PREFIX, HIDDEN_PREFIX, TICKS_PREFIX, Clock

_TICK = b"tick"
_MILLION = 1_000_000
_NEWEST = "newest"
_STORES = "mainstem-state"


class KeyedFlow:
    """One run of the flow of a stateful function.

    Spark's thread calls `divided`, `work` and `learn`, once for each batch and in this order; the
    runner's thread calls `ring`.
    """

    def __init__(
        self,
        entry: Entry,
        stateful: Stateful,
        source: Definition,
        connection: Connection,
        formats: Formats,
        clock: Clock,
        checkpoints: Checkpoints,
        folder: str,
    ) -> None:
        self._stateful = stateful
        self._row_key = entry.definition.key
        self._source = source
        self._connection = connection
        self._formats = formats
        self._clock = clock
        self._checkpoints = checkpoints
        self._checkpoint = folder
        self._changelog = changelog_of(entry.definition)
        self._ticks = ticks_of(entry.definition)
        self._delay = (milliseconds(source.watermark or "") or 0) * 1000
        self._key = tuple(c for c in map(source.column, stateful.key) if c is not None)
        self._partitions = 1
        self._stores = ""
        noted = checkpoints.read_note(folder, _NEWEST, 0)
        self._newest = None if noted is None else int(noted)
        self._due: int | None = None
        self._known = stateful.clock is None
        """False as long as no batch has told when the next timer is due."""
        self._rung = False
        self._keys = 0
        self._aside = 0

    def prepare(self, admin: Admin, partitions: int) -> None:
        """Makes the topics of the flow; what another life of the flow has left there goes.

        Call it before the flow has a checkpoint. Crash at any point: it is done again.
        """
        replicas = 1
        if (topic := admin.topic(self._source.topic)) is not None:
            replicas = topic.replication_factor
        made = admin.ensure_topic(changelog_topic(self._changelog, partitions, replicas))
        if self._stateful.clock is not None:
            compacted = {"cleanup.policy": "compact"}
            admin.ensure_topic(TopicSpec(self._ticks, 1, replicas, compacted))
        begun = any(
            name.endswith("/metadata") for name in self._checkpoints.folders(self._checkpoint)
        )
        if not made and not begun:
            admin.truncate(self._changelog)
        self._partitions = len(admin.end_offsets(self._changelog))

    def read(self, session: SparkSession, start: str, limit: int) -> DataFrame:
        """The input: what the function takes, what is the key, and where each record stands."""
        intake = Intake(
            self._connection,
            self._formats,
            start=start,
            max_records=limit,
            ticks=None if self._stateful.clock is None else self._ticks,
        )
        self._stores = stores_of(session)
        keys = dict(zip(self._names, (column.name for column in self._key), strict=True))
        return records_for(session, self._stateful.function, self._source, intake, keys)

    def divided(self, batch: DataFrame) -> DataFrame:
        """The batch in the partitions of the state."""
        return batch.repartition(self._partitions, *self._names)

    def work(self) -> KeyedWork:
        """What the tasks of the batch have to do."""
        return KeyedWork(
            connection=self._connection.to_dict(),
            stateful=self._stateful,
            key=self._key,
            row_key=self._row_key,
            changelog=self._changelog,
            folder=self._stores,
            delay=self._delay,
            now=int(self._clock.now() * _MILLION),
            newest=self._newest,
        )

    def learn(self, notes: Sequence[str]) -> None:
        """Takes what the tasks said: the newest event time, the next timer, the number of keys."""
        told = [json.loads(note) for note in notes]
        times = [note["newest"] for note in told if note["newest"] is not None]
        self._newest = max(
            [*times, *([] if self._newest is None else [self._newest])], default=None
        )
        self._due = min((note["due"] for note in told if note["due"] is not None), default=None)
        self._keys = sum(note["keys"] for note in told)
        self._aside += sum(note["aside"] for note in told)
        # a task whose batch had been written before has not looked
        self._known = self._stateful.clock is None or len(told) == self._partitions
        self._rung = False

    @property
    def keys(self) -> int:
        """For how many keys something is kept."""
        return self._keys

    @property
    def aside(self) -> int:
        """Records that this run has put into the quarantine."""
        return self._aside

    def ring(self) -> bool:
        """Writes a tick if a timer is due, or may be; True when it did."""
        if self._rung or not self._is_due():
            return False
        self._rung = True
        if self._newest is not None:
            # partitions without news learn from it how late it is, in whatever run that is
            self._checkpoints.delete_note(self._checkpoint, _NEWEST, 0)
            self._checkpoints.write_note(self._checkpoint, _NEWEST, 0, str(self._newest))
        producer = Producer(self._connection)
        try:
            producer.send(self._ticks, [Outgoing(key=_TICK, value=_TICK)])
        finally:
            producer.close()
        return True

    def _is_due(self) -> bool:
        if not self._known:
            return True
        if self._due is None:
            return False
        if self._stateful.clock is TimerClock.WALL:
            return self._due <= self._clock.now() * _MILLION
        return self._newest is not None and self._due <= self._newest - self._delay

    @property
    def _names(self) -> list[str]:
        return [f"{HIDDEN_PREFIX}key{number}" for number in range(len(self._key))]


def forget_state(definition: Definition, spark: SparkSession, admin: Admin) -> None:
    """Deletes what the flow of a stateful function has kept, here and in the log."""
    shutil.rmtree(Path(stores_of(spark)) / changelog_of(definition), ignore_errors=True)
    for topic in (changelog_of(definition), ticks_of(definition)):
        admin.delete_topic(topic)


def stores_of(spark: SparkSession) -> str:
    """Where workers have their copies of what is kept: beside Spark's own files."""
    local = spark.sparkContext.getConf().get("spark.local.dir") or "."
    return f"{local.split(',')[0]}/{_STORES}"


def changelog_of(definition: Definition) -> str:
    """The topic of what a stateful function keeps."""
    return CHANGELOG_PREFIX + definition.topic


def ticks_of(definition: Definition) -> str:
    """The topic that wakes a stateful function."""
    return TICKS_PREFIX + definition.topic
