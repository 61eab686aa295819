"""Follows the quarantine, the states of its records and the counts of broken rules in the log."""

from __future__ import annotations

import logging
import threading

from mainstem.errors import MainstemError
from mainstem.gateway.quarantine_index import QuarantineIndex
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.log.errors import unreachable
from mainstem.log.quarantine import ensure_quarantine, read_quarantined
from mainstem.log.rule_counts import read_counted
from mainstem.log.settle import State, read_state
from mainstem.vocabulary import (
    QUARANTINE_COUNTS_TOPIC,
    QUARANTINE_STATES_TOPIC,
    QUARANTINE_TOPIC,
    Record,
)

_LOG = logging.getLogger(__name__)
_RETRY_SECONDS = 2.0
_READY_SECONDS = 5.0
_PARTITION = 0
_TOPICS = (QUARANTINE_TOPIC, QUARANTINE_STATES_TOPIC, QUARANTINE_COUNTS_TOPIC)


class QuarantineFollower:
    """Reads the topics in a thread of its own."""

    def __init__(self, connection: Connection, admin: Admin, replication_factor: int) -> None:
        self._connection = connection
        self._admin = admin
        self._replication_factor = replication_factor
        self._index = QuarantineIndex(0)
        self._position = 0
        self._ready = False
        self._moved = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="quarantine", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """Read no more; safe to call twice."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def glance(self) -> QuarantineIndex:
        """What is known so far, which at the start may not be all."""
        return self._index

    def index(self) -> tuple[QuarantineIndex, int]:
        """All that was there at the start, and since; and the position in the states' topic.

        QUARANTINE_NOT_READY while the topics are still being read for the first time.
        """
        with self._moved:
            if not self._moved.wait_for(lambda: self._ready, _READY_SECONDS):
                raise MainstemError("QUARANTINE_NOT_READY", records=self._index.end)
            return self._index, self._position

    def wait_for(self, position: int, timeout: float = 10.0) -> None:
        """Wait until the states before this offset are known."""
        with self._moved:
            if not self._moved.wait_for(lambda: self._position >= position, timeout):
                raise unreachable(self._connection.servers)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except MainstemError as error:
                _LOG.warning("the quarantine cannot be read: %s", error.message)
                self._stop.wait(_RETRY_SECONDS)

    def _follow(self) -> None:
        ensure_quarantine(self._admin, self._replication_factor, self._connection.max_record_bytes)
        begin = {topic: self._admin.begin_offsets(topic) for topic in _TOPICS}
        ends = {topic: self._admin.end_offsets(topic)[_PARTITION] for topic in _TOPICS}
        index = QuarantineIndex(begin[QUARANTINE_TOPIC][_PARTITION])
        with self._moved:
            self._index, self._position, self._ready = index, 0, False
        reader = Reader(self._connection, begin)
        try:
            while not self._stop.is_set():
                for record in reader.step(500, 0.5):
                    _apply(index, record)
                positions = {topic: p[_PARTITION] for topic, p in reader.positions().items()}
                with self._moved:
                    self._position = positions[QUARANTINE_STATES_TOPIC]
                    self._ready = all(positions[topic] >= ends[topic] for topic in _TOPICS)
                    self._moved.notify_all()
        finally:
            reader.close()


def _apply(index: QuarantineIndex, record: Record) -> None:
    if record.topic == QUARANTINE_TOPIC:
        entry = read_quarantined(record)
        index.add(entry)
        index.arrivals.add(entry.reader, record.timestamp)
        return
    if record.topic == QUARANTINE_COUNTS_TOPIC:
        counted = read_counted(record)
        if counted is not None:
            index.count_rules(counted[0], counted[1].records)
        return
    state = read_state(record)
    if state is not None:
        id, document = state
        index.settle(id, State(document["state"]), record.offset)
