"""A backfilled table goes on with the new result: its topic gets what is different.

When the catalog says that a backfill is done, the flow of its generation starts so:

1. Take the transactional id of corrections (`apply_late`): one of the old result that hangs ends.
   Crash: nothing has changed.
2. Compare, by key, what the table's topic holds with what the backfill's topic holds, and write the
   differences to the table's topic, deletes for rows that are no more among them, in one
   transaction. Crash before the commit: nothing has changed; behind it: there is no difference.
3. Make the backfill's position that of the table's group, for people and tools. Note in the
   checkpoint that the table has all. Crash before: steps 1 to 3 are done again, and find nothing to
   write, as nobody else writes to the table's topic.
4. Delete the backfill's topic. Crash before: the next start of the engine deletes it.
5. The checkpoint of the old generation goes, and the flow starts from the backfill's checkpoint,
   writing to the table's topic (`flow`). Its tokens are those of the backfill: a batch that the
   backfill had written before it was held writes nothing again.

Where a sink was built anew, steps 1 and 2 let its new target take the old one's place
(`target_places`), which can be done twice, too.

So readers of the topic, and the view, see the old result until they see the new one, as changes
like all others; the topic is never emptied.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.catalog.backfill import topic_beside
from mainstem.catalog.entry import BackfillState, Entry
from mainstem.crash import crash_point
from mainstem.definitions.model import Definition
from mainstem.engine.apply_late import corrections_of
from mainstem.engine.batch_tasks import write_whole
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.micro_batch import Machinery
from mainstem.engine.ranges import read_raw
from mainstem.engine.target_places import Places
from mainstem.errors import MainstemError
from mainstem.log.producer import TransactionalProducer
from mainstem.vocabulary import group_of

_LOG = logging.getLogger(__name__)
_TASK = "take-over"
_NOTE = "taken-over"
_MADE = "place-beside"


def backfill_group(entry: Entry) -> str:
    """The consumer group under which tools see the position of a backfill."""
    return group_of(f"{entry.flow_id}.backfill")


def is_pending(entry: Entry, checkpoints: Checkpoints) -> bool:
    """True when the table has yet to get what its backfill has computed."""
    backfill = entry.backfill
    return (
        backfill is not None
        and backfill.state is BackfillState.DONE
        and backfill.generation == entry.generation
        and checkpoints.read_note(checkpoints.folder(entry), _NOTE, 0) is None
    )


class TakeOver:
    """Steps 1 to 4 for one table, in a thread of their own."""

    def __init__(self, entry: Entry, inputs: Sequence[Definition], machinery: Machinery) -> None:
        self._entry = entry
        self._inputs = inputs
        self._machinery = machinery
        self._beside = topic_beside(entry.definition.topic, entry.generation)
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="take-over", daemon=True)

    def start(self) -> None:
        """Begins; returns at once."""
        self._thread.start()

    @property
    def ended(self) -> bool:
        """True when it is done, or has failed (`error`)."""
        return not self._thread.is_alive()

    def join(self) -> None:
        """Waits for the end."""
        self._thread.join()

    def _run(self) -> None:
        try:
            self._do()
        except Exception as error:  # noqa: BLE001 - the flow tells it, and tries again
            self.error = error

    def _do(self) -> None:
        entry, machinery = self._entry, self._machinery
        if entry.definition.target is not None:
            self._switch()
        else:
            self._correct()
        self._move_group()
        folder = machinery.checkpoints.folder(entry)
        machinery.checkpoints.write_note(folder, _NOTE, 0, self._beside)
        machinery.admin.delete_topic(self._beside)
        crash_point("take-over-end", entry.flow_id, 0)

    def _switch(self) -> None:
        """Steps 1 and 2 of a sink. That there is a place beside is noted before the switch: from
        then on, one that is not there has been switched.
        """
        entry, checkpoints = self._entry, self._machinery.checkpoints
        places = Places.of(entry, self._inputs[0], self._machinery.project)
        folder = checkpoints.folder(entry)
        if checkpoints.read_note(folder, _MADE, 0) is None:
            places.prepare()  # a sink that had nothing to write has made none
            checkpoints.write_note(folder, _MADE, 0, "made")
        crash_point("take-over-begin", entry.flow_id, 0)
        places.switch()
        crash_point("take-over-written", entry.flow_id, 0)

    def _correct(self) -> None:
        """Steps 1 and 2 of a table."""
        entry, machinery = self._entry, self._machinery
        TransactionalProducer(machinery.connection, corrections_of(entry.name)).close()
        crash_point("take-over-begin", entry.flow_id, 0)
        topic = entry.definition.topic
        session = machinery.spark.newSession()
        different = differences(self._latest(session, self._beside), self._latest(session, topic))
        write_whole(different, machinery.connection, entry.flow_id, _TASK, topic)
        crash_point("take-over-written", entry.flow_id, 0)

    def _latest(self, session: SparkSession, topic: str) -> DataFrame:
        """The rows that a table's topic holds, as key and value."""
        admin = self._machinery.admin
        end = admin.end_offsets(topic)
        if end != admin.end_offsets(topic, committed=False):
            # a transaction is open, and its end is not far: the flow will try again
            raise MainstemError("TOPIC_NOT_SETTLED", topic=topic)
        raw = read_raw(session, topic, self._machinery.connection, admin.begin_offsets(topic), end)
        last = raw.groupBy("key").agg(F.max_by(F.struct("value"), "offset").alias("last"))
        return last.select("key", "last.value").filter(F.col("value").isNotNull())

    def _move_group(self) -> None:
        """Lets the group of the table say where the backfill is."""
        admin, group = self._machinery.admin, backfill_group(self._entry)
        checkpoints = self._machinery.checkpoints
        position = checkpoints.end(checkpoints.folder(self._entry))
        try:
            admin.commit_offsets(group_of(self._entry.name), position)
            admin.delete_group(group)
        except MainstemError as error:  # the flow itself never reads them
            _LOG.warning("flow %s: %s", self._entry.name, error.message)


def differences(wanted: DataFrame, actual: DataFrame) -> DataFrame:
    """The records, key and value, that make the wanted rows of the actual ones."""
    joined = wanted.join(actual.withColumnRenamed("value", "before"), "key", "full_outer")
    return joined.filter(~F.col("value").eqNullSafe(F.col("before"))).select("key", "value")
