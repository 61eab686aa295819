"""What must be decided once, whichever gateway is asked: entries, written with their records.

The ledger is a compacted topic. Each of its partitions has one writer at a time, the owner of a
transactional id, who knows all its entries from a local copy. A request is decided upon the copy,
and its records and entries are one transaction:

1. Own the partition. Whoever takes it over fences the owner before, ends what that one left open,
   and reads what its copy misses. Crash: nothing was written.
2. Decide upon the copy. A refusal counts only when the copy has all entries by then; an owner who
   was fenced without knowing goes back to 1. Crash: nothing was written.
3. Write records and entries, and commit. Fenced: back to 1. If the commit had gone through all the
   same, the entries say so: they carry the mark of the request. Crash: the next owner aborts what
   was not committed, or finds it committed.
4. Put the entries into the copy. Crash: the next owner reads them from the log.
"""

from __future__ import annotations

import random
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mainstem.errors import MainstemError
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.delivery import Place, check_size, size_of
from mainstem.log.producer import Outgoing, TransactionalProducer
from mainstem.log.state_store import Kept, StateStore
from mainstem.vocabulary import LEDGER_TOPIC, Clock, SystemClock

PARTITIONS = 8
_CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": str(64 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.3",
}
_TRANSACTION_SECONDS = 10.0
_PATIENCE_SECONDS = 20.0
_PAUSE_SECONDS = 0.05
_LOST = ("WRITER_FENCED", "LOG_FAILED")
"""How the producer of an owner fails that was fenced, or forgotten by the broker after a rest."""
_MOST_FORGOTTEN = 200
"""So many entries whose time is over are deleted along with what a request writes."""

Look = Callable[[Sequence[bytes]], Mapping[bytes, Kept]]
"""The entries of some keys; those that are missing are left out."""


@dataclass(frozen=True, slots=True)
class Writing:
    """Records to be written, each with its topic, and the entries that go with them."""

    records: Sequence[Outgoing]
    entries: Callable[[Sequence[Place]], Mapping[bytes, Kept]]
    """From the places of the records."""


Decide = Callable[[Look], Writing | None]
"""Upon the entries of the partition: what to write, or nothing; or it raises what is wrong.

May be called more than once for a request: a second time it must know its own entries.
"""


class Ledger:
    """Safe to use from several threads and processes; calls block.

    `folder` is for the copies, which may be lost at any time. The topic is made with the first use.
    """

    def __init__(
        self,
        connection: Connection,
        admin: Admin,
        folder: Path,
        replication_factor: int,
        topic: str = LEDGER_TOPIC,
        clock: Clock | None = None,
    ) -> None:
        self._connection = connection
        self._admin = admin
        self._folder = folder
        self._spec = TopicSpec(topic, PARTITIONS, replication_factor, _CONFIG)
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._slots: list[_Slot] = []

    def write(self, key: bytes, decide: Decide) -> list[Place] | None:
        """Decide and write, as the owner of the partition of `key`; the places of the records.

        All entries that `decide` looks at or makes must belong with `key`.
        """
        return self._slot(key).write(decide)

    def look(self, key: bytes, keys: Sequence[bytes]) -> Mapping[bytes, Kept]:
        """Entries that belong with `key`, as they are by now, without owning their partition."""
        return self._slot(key).look(keys)

    def close(self) -> None:
        """End; safe to call twice."""
        with self._lock:
            for slot in self._slots:
                slot.close()
            self._slots = []

    def _slot(self, key: bytes) -> _Slot:
        with self._lock:
            if not self._slots:
                self._slots = self._open()
            return self._slots[zlib.crc32(key) % len(self._slots)]

    def _open(self) -> list[_Slot]:
        topic = self._spec.name
        self._admin.ensure_topic(self._spec)
        epoch, partitions = self._admin.topic_id(topic), len(self._admin.begin_offsets(topic))
        return [
            _Slot(
                self._connection,
                self._admin,
                StateStore(self._folder / f"ledger-{p}.db", epoch, topic, p),
                topic,
                p,
                self._clock,
            )
            for p in range(partitions)
        ]


class _Slot:
    """One partition of the ledger."""

    def __init__(
        self,
        connection: Connection,
        admin: Admin,
        store: StateStore,
        topic: str,
        partition: int,
        clock: Clock,
    ) -> None:
        self._connection = connection
        self._admin = admin
        self._store = store
        self._topic = topic
        self._partition = partition
        self._clock = clock
        self._lock = threading.Lock()
        self._producer: TransactionalProducer | None = None
        self._own_end = -1

    def write(self, decide: Decide) -> list[Place] | None:
        with self._lock:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while True:
                kept = self._producer is not None
                # 1.
                producer = self._own()
                # 2.
                try:
                    writing = decide(self._store.get)
                except MainstemError:
                    if not kept or self._is_current():
                        raise
                    self._leave()
                    continue
                if writing is None:
                    return None
                for record in writing.records:
                    size = size_of(record.key, record.value)
                    check_size(self._connection, record.topic or "", size)
                # 3. and 4.
                try:
                    return self._write(producer, writing)
                except MainstemError as error:
                    self._leave()
                    lost = error.code == _LOST[0] or (kept and error.code in _LOST)
                    if not lost or time.monotonic() > deadline:
                        raise
                # two that take it from each other at once would never end
                time.sleep(random.uniform(0, _PAUSE_SECONDS))

    def look(self, keys: Sequence[bytes]) -> Mapping[bytes, Kept]:
        with self._lock:
            if not self._is_current(committed=True):
                self._store.catch_up(self._connection, committed=True)
            return self._store.get(keys)

    def close(self) -> None:
        with self._lock:
            self._leave()
            self._store.close()

    def _own(self) -> TransactionalProducer:
        if self._producer is None:
            name = f"mainstem.{self._topic}-{self._partition}"
            self._producer = TransactionalProducer(self._connection, name, _TRANSACTION_SECONDS)
            try:
                self._store.catch_up(self._connection)
            except BaseException:
                self._leave()
                raise
        return self._producer

    def _leave(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _is_current(self, *, committed: bool = False) -> bool:
        """True when the copy has all that was begun, or committed, by now."""
        end = self._admin.end_offsets(self._topic, committed)[self._partition]
        return end <= self._store.position or end == self._own_end

    def _write(self, producer: TransactionalProducer, writing: Writing) -> list[Place]:
        now = int(self._clock.now() * 1_000_000)
        with producer.transaction(placing=True) as transaction:
            transaction.send("", writing.records)
            places = transaction.placed()
            entries = dict.fromkeys(self._store.due(now, _MOST_FORGOTTEN), Kept())
            entries |= writing.entries(places)
            transaction.send(
                self._topic,
                [Outgoing(k, v.to_record(), partition=self._partition) for k, v in entries.items()],
            )
        last = transaction.deliveries.last[self._topic][self._partition]
        # the log has the entries: a copy that did not take them has to read them there
        taken = False
        with suppress(sqlite3.Error):
            taken = self._store.apply(entries, 0, None, 0, last + 1)
        if taken:
            self._own_end = last + 2  # behind them is the marker of the transaction, and no more
        else:
            self._leave()
        return places
