"""The state of one partition of a stateful function: a local copy of its changelog.

The truth is the changelog, a partition of a compacted topic, written in the same transaction as
the function's rows. The copy is an SQLite file on the machine where the task runs, which may be
behind, or lost: `catch_up` reads what it misses. It never runs ahead, because changes go into it
only after their transaction was committed.

Keys are texts that stand for the key; a value is what the function keeps for it. `due` is when the
key's timer rings, in microseconds, `named` when others ring that have names. In the log a value is
`due|state`, either part possibly empty; with names, `due` is a JSON object of all timers.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range

if TYPE_CHECKING:
    from collections.abc import Iterator

NEWEST_KEY = b"newest"
"""Key of the record that holds the newest event time seen; other keys begin with a bracket."""
_CATCH_UP_SECONDS = 90.0
_KEEP_POSITION_EVERY = 50
_KEYS_AT_ONCE = 500
"""One statement for many keys: to ask for each alone takes five times as long."""
_TABLES = """
CREATE TABLE IF NOT EXISTS state (
  key BLOB PRIMARY KEY, value BLOB, due INTEGER, timers BLOB) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS timers ON state (due) WHERE due IS NOT NULL;
CREATE TABLE IF NOT EXISTS facts (
  one INTEGER PRIMARY KEY CHECK (one = 1), epoch TEXT, version INTEGER, batch INTEGER,
  position INTEGER, newest INTEGER, keys INTEGER);
"""


class Kept(NamedTuple):
    """What stands in the store for a key."""

    value: bytes | None = None
    due: int | None = None
    named: tuple[tuple[str, int], ...] = ()
    """In the order of the names."""

    @property
    def empty(self) -> bool:
        """True when nothing is to be kept any more."""
        return self.value is None and self.due is None and not self.named

    @property
    def next_due(self) -> int | None:
        """When the first of the timers rings."""
        times = [time for _, time in self.named]
        return min([*times, *([] if self.due is None else [self.due])], default=None)

    @property
    def timers(self) -> bytes:
        """All timers as the changelog has them."""
        if not self.named:
            return b"" if self.due is None else b"%d" % self.due
        times = dict(self.named) if self.due is None else {"": self.due, **dict(self.named)}
        return json.dumps(times).replace("|", "\\u007c").encode()

    def to_record(self) -> bytes | None:
        """The value in the changelog; None deletes."""
        if self.empty:
            return None
        return b"%s|%s" % (self.timers, self.value or b"")

    @staticmethod
    def from_record(record: bytes | None) -> Kept:
        """What a value of the changelog says."""
        if record is None:
            return Kept()
        timers, _, value = record.partition(b"|")
        return Kept.of(value or None, timers)

    @staticmethod
    def of(value: bytes | None, timers: bytes) -> Kept:
        """A value, and timers as the changelog has them."""
        if not timers.startswith(b"{"):
            return Kept(value, int(timers) if timers else None)
        times = json.loads(timers)
        return Kept(value, times.pop("", None), tuple(sorted(times.items())))


Changes = Mapping[bytes, Kept]


def changelog_topic(name: str, partitions: int, replication_factor: int) -> TopicSpec:
    """The topic of a stateful function's changes: the latest of each key is kept."""
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": str(64 * 1024 * 1024),
        "min.cleanable.dirty.ratio": "0.3",
    }
    return TopicSpec(name, partitions, replication_factor, config)


class StateStore:
    """For one task at a time; another task's store of the same file may be open beside it."""

    def __init__(self, file: Path, epoch: str, topic: str, partition: int) -> None:
        self._file = file
        self._epoch = epoch
        self._version = 0
        self._batch = -1
        self._position = 0
        self._newest: int | None = None
        self._keys = 0
        self._topic = topic
        self._partition = partition
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._open()
        except sqlite3.DatabaseError:  # not a store, or a broken one: the log has all of it
            for path in file.parent.glob(f"{file.name}*"):
                path.unlink(missing_ok=True)
            self._open()

    def close(self) -> None:
        """Ends the use of the file."""
        self._database.close()

    @property
    def position(self) -> int:
        """The offset of the changelog from which on it has not been read."""
        return self._position

    @property
    def newest(self) -> int | None:
        """The newest event time that was seen, in microseconds."""
        return self._newest

    @property
    def keys(self) -> int:
        """How many keys something is kept for."""
        return self._keys

    def is_current(self, previous_batch: int | None) -> bool:
        """True when it holds all up to the batch that its task wrote last."""
        return previous_batch is not None and self._batch == previous_batch

    def catch_up(self, connection: Connection, *, committed: bool = False) -> None:
        """Takes in what the changelog has and the file misses.

        Call it when no older writer of the task can commit any more; or for what is `committed` by
        now, at any time.
        """
        admin = Admin(connection)
        try:
            # all records: behind an open transaction that the broker is just about to end, too
            end = admin.end_offsets(self._topic, committed)[self._partition]
            begin = admin.begin_offsets(self._topic)[self._partition]
        finally:
            admin.close()
        with self._change(anew=True):
            start, stop = {self._partition: max(begin, self._position)}, {self._partition: end}
            for records in read_range(
                connection, self._topic, start, stop, timeout=_CATCH_UP_SECONDS
            ):
                read = {r.key or b"": r.value for r in records}
                newest = read.pop(NEWEST_KEY, None)
                if newest is not None:
                    self._newest = int(newest)
                self._write({key: Kept.from_record(value) for key, value in read.items()})
            self._position = end
            self._keys = self._one("SELECT count(*) FROM state")
            self._batch = -1

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Kept]:
        """What is kept for these keys; nothing is there for those that are missing."""
        found: dict[bytes, Kept] = {}
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[start : start + _KEYS_AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = self._database.execute(
                f"SELECT key, value, timers FROM state WHERE key IN ({marks})",  # noqa: S608
                some,
            )
            found.update((key, Kept.of(value, timers)) for key, value, timers in rows)
        return found

    def due(self, until: int, most: int = -1) -> list[bytes]:
        """The keys of which a timer rings up to a time, the earliest first; -1: all of them."""
        rows = self._database.execute(
            "SELECT key FROM state WHERE due <= ? ORDER BY due, key LIMIT ?", (until, most)
        )
        return [key for (key,) in rows]

    def next_due(self) -> int | None:
        """When the next timer rings."""
        found: int | None = self._one("SELECT min(due) FROM state WHERE due IS NOT NULL")
        return found

    def apply(
        self, changes: Changes, batch: int, newest: int | None, keys: int, begin: int | None
    ) -> bool:
        """Takes in what a committed batch changed.

        `begin` is where the changelog ended before the batch, if that is known. When another task
        has changed the file meanwhile, this one is a left-over, and does nothing: False.
        """
        with self._change() as mine:
            if not mine:
                return False
            self._write(changes)
            self._batch = batch
            self._newest = newest
            self._keys = keys
            if begin is not None:
                self._position = begin
        return True

    @property
    def wants_position(self) -> bool:
        """True once in a while: re-reading the log from an old position takes long."""
        return self._version % _KEEP_POSITION_EVERY == _KEEP_POSITION_EVERY - 1

    def _open(self) -> None:
        # its owner may go from thread to thread, one at a time
        self._database = sqlite3.connect(
            self._file, timeout=60, isolation_level=None, check_same_thread=False
        )
        # with a write-ahead log a crash of the machine costs the last changes, not the file
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.executescript(_TABLES)
        if self._one("SELECT count(*) FROM facts WHERE epoch = ?", self._epoch) == 0:
            fresh = (self._epoch, 0, -1, 0, None, 0)
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute("DELETE FROM state")
            self._database.execute("REPLACE INTO facts VALUES (1, ?, ?, ?, ?, ?, ?)", fresh)
            self._database.execute("COMMIT")
        self._read_facts()

    def _read_facts(self) -> None:
        query = "SELECT version, batch, position, newest, keys FROM facts"
        facts = self._database.execute(query).fetchone()
        self._version, self._batch, self._position, self._newest, self._keys = facts

    @contextmanager
    def _change(self, *, anew: bool = False) -> Iterator[bool]:
        """A transaction over the file as this store knows it; False when it is another by now.

        With `anew` the store gets to know it again first.
        """
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            if anew:
                self._read_facts()
            mine = self._one("SELECT version FROM facts") == self._version
            yield mine
            if mine:
                self._version += 1
                database.execute(
                    "UPDATE facts SET version = ?, batch = ?, position = ?, newest = ?, keys = ?",
                    (self._version, self._batch, self._position, self._newest, self._keys),
                )
            database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            raise

    def _write(self, changes: Changes) -> None:
        gone = [(key,) for key, kept in changes.items() if kept.empty]
        there: Iterable[tuple[Any, ...]] = (
            (key, kept.value, kept.next_due, kept.timers)
            for key, kept in changes.items()
            if not kept.empty
        )
        self._database.executemany("REPLACE INTO state VALUES (?, ?, ?, ?)", there)
        self._database.executemany("DELETE FROM state WHERE key = ?", gone)

    def _one(self, query: str, *values: Any) -> Any:
        return self._database.execute(query, values).fetchone()[0]
