"""One task of an event function: runs inside a Python worker, on some partitions of the input.

What happens to its part of a batch, within the writer's steps (`log.task_writer`):

a. The function is called for the records, in the order of the log; a call that fails is tried again
   after a pause, and no further record is read meanwhile. Crash: the whole part runs again, so the
   function may be called again for records that it has seen. That is why it is given their ids.
b. Its rows or receipts, the records that it failed for (to the quarantine) and the commit token go
   into one transaction. Crash before the commit: as after a; behind it: nothing is called again.
"""

from __future__ import annotations

import json
import time
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from mainstem.definitions.model import Handler
from mainstem.engine.aside import put_aside
from mainstem.engine.function_rows import key_writer, record_maker
from mainstem.engine.function_values import giver, inner_type, taker
from mainstem.engine.function_worker import USER_ERRORS, load, problem_of
from mainstem.engine.json_text import writer
from mainstem.engine.records_for import OFFSET, PARTITION, TOPIC
from mainstem.log.connection import Connection
from mainstem.log.task_writer import Rows, TaskResult, TaskWrite
from mainstem.schemas.arrow_types import arrow_type

_LONGEST_PAUSE = 60.0


@dataclass(frozen=True, slots=True)
class HandlerWork:
    """What the driver tells the tasks of one batch; plain values, so that it travels to workers."""

    connection: Mapping[str, Any]
    handler: Handler
    row_key: tuple[str, ...]
    now: float

    def task(self, task: TaskWrite, number: int) -> HandlerTask:
        """The task of a part of the input."""
        return HandlerTask(self, task)


class HandlerTask:
    """One task of one batch."""

    def __init__(self, work: HandlerWork, task: TaskWrite) -> None:
        self._work = work
        self._task = task
        self.made = 0
        """Rows for the function's own stream."""
        self.aside = 0
        """Records for which it failed."""

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Rows]:
        """What is to be written when the function was called for all records."""
        taken = [batch for batch in batches if batch.num_rows]
        if not taken:
            return
        order = [(name, "ascending") for name in (TOPIC, PARTITION, OFFSET)]
        table = pa.Table.from_batches(taken).sort_by(order)
        calls = HandlerCalls(self._work.handler, time.sleep)
        calls.call(table)
        write = writer(self._work.handler.function.returns)
        key = key_writer(self._work.handler.function.returns, self._work.row_key)
        self.made = len(calls.rows)
        values = [write(row).encode() for row in calls.rows]
        yield Rows(None, [key(row) for row in calls.rows], values)
        if calls.failed:
            self.aside = len(calls.failed)
            places = table.select([TOPIC, PARTITION, OFFSET]).take(list(calls.failed)).to_pylist()
            where = (tuple(place.values()) for place in places)
            yield put_aside(
                Connection.from_dict(self._work.connection),
                dict(zip(where, calls.failed.values(), strict=True)),
                name=self._work.handler.function.name,
                flow=self._task.flow,
                at=self._work.now,
            )

    def done(self, result: TaskResult) -> str | None:
        """The batch is in the log: what the driver should know."""
        return None if result.skipped else json.dumps({"aside": self.aside})


class HandlerCalls:
    """Calls a function for records, again if need be."""

    def __init__(self, handler: Handler, sleep: Callable[[float], None]) -> None:
        function = handler.function
        self._handler = handler
        self._sleep = sleep
        self._function = load(function)
        self._take = taker(function)
        self._row_type = arrow_type(function.returns)
        hint = inner_type(typing.get_type_hints(self._function)[function.parameters[0].name])
        self._event = typing.get_args(hint)[0] if handler.batch else hint
        self.rows: list[Any] = []
        """What the function gave, or receipts."""
        self.failed: dict[int, str] = {}
        """Records for which it failed, and why."""

    def call(self, table: pa.Table) -> None:
        """Calls the function for all records."""
        fields = typing.get_type_hints(self._event).values()
        columns = [giver(hint)(table.column(i)) for i, hint in enumerate(fields)]
        make = record_maker(self._event)
        events = [make(*values) for values in zip(*columns, strict=True)]
        places = [table.column(name).to_pylist() for name in (TOPIC, PARTITION, OFFSET)]
        ids = [f"{t}/{p}/{o}" for t, p, o in zip(*places, strict=True)]
        if self._handler.batch and len(events) > 1:
            everything = range(len(events))
            if self._try(everything, events, ids) is None:
                return
        # a list that fails as a whole is tried record by record
        for index in range(len(events)):
            problem = self._try([index], events, ids)
            if problem is not None:
                self.failed[index] = problem

    def _try(self, which: Sequence[int], events: Sequence[Any], ids: Sequence[str]) -> str | None:
        """Calls for some records until it works or is enough; says why it did not work."""
        handler, tried = self._handler, 0
        pause = handler.pause
        while True:
            tried += 1
            try:
                self.rows += self._once(which, events, ids, tried)
            except USER_ERRORS as error:
                if handler.tries and tried >= handler.tries:
                    return f"{problem_of(error)} (tried {tried} times)"
            else:
                return None
            self._sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _once(
        self, which: Sequence[int], events: Sequence[Any], ids: Sequence[str], tried: int
    ) -> list[Any]:
        handler = self._handler
        given: list[Any] = [[events[i] for i in which], [ids[i] for i in which]]
        if not handler.batch:
            given = [part[0] for part in given]
        result = self._function(*given[: len(handler.function.parameters)])
        if handler.function.nullable:
            return [{"id": ids[i], "tries": tried} for i in which]
        rows = [self._take(row) for row in result]
        pa.array(rows, type=self._row_type)
        return rows
