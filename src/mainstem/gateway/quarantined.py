"""How many records are in the quarantine, and of which stream or table: counted by reading it.

Offsets would not tell: the markers of transactions take up some.
"""

from __future__ import annotations

import logging
import threading

from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.log.quarantine import ensure_quarantine
from mainstem.vocabulary import QUARANTINE_TOPIC, Record

_LOG = logging.getLogger(__name__)
_RETRY_SECONDS = 2.0


class QuarantineCount:
    """Follows the quarantine topic in a thread of its own."""

    def __init__(self, connection: Connection, admin: Admin, replication_factor: int) -> None:
        self._connection = connection
        self._admin = admin
        self._replication_factor = replication_factor
        self._counts: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="quarantine-count", daemon=True)

    def start(self) -> None:
        """Begin to count."""
        self._thread.start()

    def close(self) -> None:
        """Count no more; safe to call twice."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def counts(self) -> dict[str, int]:
        """Records by the object that was reading them."""
        return dict(self._counts)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except MainstemError as error:
                _LOG.warning("the quarantine cannot be counted: %s", error.message)
                self._stop.wait(_RETRY_SECONDS)

    def _follow(self) -> None:
        ensure_quarantine(self._admin, self._replication_factor, self._connection.max_record_bytes)
        start = self._admin.begin_offsets(QUARANTINE_TOPIC)
        reader = Reader(self._connection, {QUARANTINE_TOPIC: start})
        counts: dict[str, int] = {}
        self._counts = counts
        try:
            while not self._stop.is_set():
                for record in reader.poll(1000, 0.5):
                    name = _object_of(record)
                    counts[name] = counts.get(name, 0) + 1
        finally:
            reader.close()


def _object_of(record: Record) -> str:
    for name, value in record.headers:
        if name == "object" and value is not None:
            return value.decode("utf-8", "replace")
    return "?"
