"""One task of a stateful function: runs inside a Python worker, on one partition of the state.

What happens to its part of a batch, within the writer's steps (`log.task_writer`):

a. Behind the writer's step 2 the store is brought up to date: it holds what was committed, all of
   it and nothing else.
b. The function is called for each record. What it keeps is changed in memory only. What a call
   that fails has changed is undone. Crash: nothing was written.
c. Rows, changes of the state, records for which the function failed (to the quarantine) and commit
   token go into one transaction (the writer's 3 to 5).
d. After the commit the changes go into the store. Crash before that: the store is behind, and the
   next task reads from the changelog what it misses.

Times are in microseconds since the epoch.
"""

from __future__ import annotations

import gc
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mainstem.definitions.model import Stateful, TimerClock
from mainstem.engine.aside import put_aside
from mainstem.engine.keyed_calls import Caller
from mainstem.engine.records_for import OFFSET, PARTITION, TIME, TOPIC
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.state_store import NEWEST_KEY, Changes, StateStore
from mainstem.log.task_writer import Rows, TaskResult, TaskWrite
from mainstem.vocabulary import Column

_LONG_AGO = -(10**17)
_OBJECTS_PER_COLLECTION = 200_000


@dataclass(frozen=True, slots=True)
class KeyedWork:
    """What the driver tells the tasks of one batch; plain values, so that it travels to workers."""

    connection: Mapping[str, Any]
    stateful: Stateful
    key: tuple[Column, ...]
    """What state is kept for; these columns stand before the last four of the input."""
    row_key: tuple[str, ...]
    """Key of the rows that the function gives."""
    changelog: str
    folder: str
    """Where on the worker's machine stores are kept."""
    delay: int
    """By how much records may be late."""
    now: int
    newest: int | None
    """The newest event time of all earlier batches."""

    def task(self, task: TaskWrite, number: int) -> KeyedTask:
        """The task of one partition of the state."""
        return KeyedTask(self, task, number)


class KeyedTask:
    """One task of one batch."""

    def __init__(self, work: KeyedWork, task: TaskWrite, number: int) -> None:
        self._work = work
        self._task = task
        self._number = number
        self._store: StateStore | None = None
        self._changes: Changes = {}
        self._keys = 0
        self._begin: int | None = None
        self._newest: int | None = None
        self.made = 0
        """Rows that the function gave."""
        self.aside = 0
        """Records for which it failed."""

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Rows]:
        """What is to be written: the function's rows, and the changes of the state."""
        table = _whole(batches)
        store = self._store = self._open()
        table = self._ordered(table)
        with _rarely_collected():
            caller = self._call(store, table, {})
            while misfits := caller.misfits():
                caller = self._call(store, table, {**caller.failed, **misfits})
            outputs = caller.outputs()
            self._changes, self._keys = caller.changes()
        self.made = len(outputs)
        yield Rows(None, [key for key, _ in outputs], [value for _, value in outputs])
        records = {key: kept.to_record() for key, kept in self._changes.items()}
        timed = self._work.stateful.clock is TimerClock.EVENT
        if timed and self._newest is not None and self._newest != store.newest:
            records[NEWEST_KEY] = b"%d" % self._newest
        topic, partition = self._work.changelog, self._number
        yield Rows(topic, list(records), list(records.values()), partition=partition)
        if caller.failed and table is not None:
            self.aside = len(caller.failed)
            yield self._put_aside(table, caller.failed)

    def done(self, result: TaskResult) -> str | None:
        """The transaction was committed, or there was none: what the driver should know."""
        store = self._store
        if store is None:
            return None  # the batch had been written before
        try:
            if result.wrote:
                batch = self._task.batch_id
                store.apply(self._changes, batch, self._newest, self._keys, self._begin)
            note = {"newest": store.newest, "due": store.next_due(), "keys": store.keys}
            return json.dumps({**note, "aside": self.aside})
        finally:
            store.close()

    def _open(self) -> StateStore:
        work, task = self._work, self._task
        root = Path(work.folder)
        if not root.parent.is_dir():  # a machine that is set up in another way than the driver's
            root = Path(tempfile.gettempdir()) / root.name
        file = root / work.changelog / f"{self._number}.sqlite"
        store = StateStore(file, f"{task.flow} {task.epoch}", work.changelog, self._number)
        connection = Connection.from_dict(work.connection)
        if not store.is_current(task.previous_batch):
            store.catch_up(connection)
        if store.wants_position:
            admin = Admin(connection)
            self._begin = admin.end_offsets(work.changelog, committed=False)[self._number]
            admin.close()
        return store

    def _ordered(self, table: pa.Table | None) -> pa.Table | None:
        """The records in the order of the log, or of time where that lets timers ring."""
        by_time = self._work.stateful.clock is TimerClock.EVENT
        order = (TIME, TOPIC, PARTITION, OFFSET) if by_time else (TOPIC, PARTITION, OFFSET)
        return None if table is None else table.sort_by([(name, "ascending") for name in order])

    def _call(self, store: StateStore, table: pa.Table | None, failed: Mapping[int, str]) -> Caller:
        """Calls the function for all records but those that failed, and for timers."""
        work = self._work
        clock, delay, reached = work.stateful.clock, work.delay, work.now
        by_time = clock is TimerClock.EVENT
        self._newest = _newest(store.newest, work.newest)
        if by_time:
            reached = _LONG_AGO if self._newest is None else self._newest - delay
        caller = Caller(work.stateful, work.key, work.row_key, store, failed)
        if table is not None:
            times: Sequence[int | None] = [None] * table.num_rows
            if by_time:
                column = pc.cast(table.column(TIME), pa.int64())
                self._newest = _newest(self._newest, pc.max(column).as_py())
                times = column.to_pylist()
            reached = caller.call(table, times, reached, delay)
        if clock is not None:
            caller.ring(reached)
        return caller

    def _put_aside(self, table: pa.Table, failed: Mapping[int, str]) -> Rows:
        """The records for which the function failed, for the quarantine."""
        places = table.select([TOPIC, PARTITION, OFFSET]).take(list(failed)).to_pylist()
        problems = dict(zip((tuple(p.values()) for p in places), failed.values(), strict=True))
        return put_aside(
            Connection.from_dict(self._work.connection),
            problems,
            name=self._work.stateful.function.name,
            flow=self._task.flow,
            at=self._work.now / 1_000_000,
        )


@contextmanager
def _rarely_collected() -> Iterator[None]:
    """Python's collector looks at all rows and states again and again while they become more."""
    usual = gc.get_threshold()
    gc.set_threshold(_OBJECTS_PER_COLLECTION, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _whole(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    taken: Sequence[pa.RecordBatch] = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(taken) if taken else None


def _newest(one: int | None, other: int | None) -> int | None:
    return max((t for t in (one, other) if t is not None), default=None)
