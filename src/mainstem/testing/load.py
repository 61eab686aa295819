"""An even load of numbered records, with an account of what the log has acknowledged.

The account is one half of a proof that nothing is lost or doubled; `checker` is the other.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from mainstem.errors import MainstemError
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer

_RECORDS_PER_SEND = 50
_RECORDS_PER_BURST_SEND = 5_000
_PAUSE_AFTER_FAILURE_SECONDS = 0.2


class Numbered(NamedTuple):
    """A record of the load: `seq` rises by one for each record of a key, `id` is its own."""

    k: str
    seq: int
    id: str


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of the records that were sent, by id."""

    acknowledged: frozenset[str]
    """In the log for certain."""
    uncertain: frozenset[str]
    """The answer got lost: each of them may or may not be in the log, but never twice."""


class Load:
    """Writes records `{"k", "seq", "id"}` with key `k`; a lost broker is waited for.

    A record whose outcome is not known is never sent again, since that could double it. All
    methods may be called from any thread.
    """

    def __init__(
        self, connection: Connection, topic: str, *, keys: int = 40, per_second: int = 1_000
    ) -> None:
        self._producer = Producer(connection)
        self._topic = topic
        self._keys = [f"k{number}" for number in range(keys)]
        self._per_second = per_second
        self._count = 0
        self._acknowledged: set[str] = set()
        self._uncertain: set[str] = set()
        # one send at a time: numbers of a key are to stand in the log in their order
        self._sending = threading.Lock()

    @contextmanager
    def running(self) -> Iterator[None]:
        """The even load, while the block runs."""
        stop = threading.Event()
        thread = threading.Thread(target=self._run, args=(stop,), name="load", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def burst(self, count: int) -> None:
        """Writes so many records at once, beside the even load."""
        for first in range(0, count, _RECORDS_PER_BURST_SEND):
            self._send(min(_RECORDS_PER_BURST_SEND, count - first))

    def sent(self) -> Sent:
        """The account up to now."""
        with self._sending:
            return Sent(frozenset(self._acknowledged), frozenset(self._uncertain))

    def close(self) -> None:
        """Ends the producer."""
        self._producer.close()

    def _run(self, stop: threading.Event) -> None:
        due = time.monotonic()
        while not stop.wait(max(0.0, due - time.monotonic())):
            wrote = self._send(_RECORDS_PER_SEND)
            # after an outage the load goes on evenly; it does not make up for lost time
            due = max(due, time.monotonic() - 1.0) + _RECORDS_PER_SEND / self._per_second
            if not wrote:
                stop.wait(_PAUSE_AFTER_FAILURE_SECONDS)

    def _send(self, count: int) -> bool:
        with self._sending:
            records = [self._next() for _ in range(count)]
            ids = [record.id for record in records]
            try:
                self._producer.send(self._topic, [_outgoing(record) for record in records])
            except MainstemError:
                self._uncertain.update(ids)
                return False
            self._acknowledged.update(ids)
            return True

    def _next(self) -> Numbered:
        seq, key = divmod(self._count, len(self._keys))
        record = Numbered(self._keys[key], seq, f"n{self._count}")
        self._count += 1
        return record


def _outgoing(record: Numbered) -> Outgoing:
    return Outgoing(record.k.encode(), json.dumps(record._asdict()).encode())
