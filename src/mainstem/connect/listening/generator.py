"""The source `generator` at work: records that are made up, numbered, at a given rate. One thread.

1. A producer takes over the source's transactional id. From here on no other process, and no older
   run, can write; what one left unfinished is thrown away. Crash: nothing has changed.
2. The number to go on with is read from the end of the topic. Crash: as before.
3. A transaction with the next records, each with its number in a header. Crash: no reader sees any
   of them, and step 2 of the next run finds the number before them.
4. The commit. Crash before the broker has it: as before; behind that: step 2 finds their last one.

After any error it begins with step 1. A generator that another gateway has taken the id from stands
by, and begins again when the topic has stopped to grow.
"""

from __future__ import annotations

import json
import time
from typing import Any

from mainstem.connect.listening.column_list import read_columns
from mainstem.connect.listening.last_number import NUMBER_HEADER, next_number
from mainstem.connect.listening.made_values import row_maker
from mainstem.connect.listening.running import Log, Task, Told
from mainstem.connect.listening.trying import Trying
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.producer import Outgoing, TransactionalProducer
from mainstem.schemas.edge import key_json

FINISHED = "finished"
_FENCED = "WRITER_FENCED"
_MOST_AT_ONCE = 5_000
_TICK_SECONDS = 0.05
_STAND_BY_SECONDS = 15.0
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Generator:
    """A `RunningSource`."""

    def __init__(self, task: Task, log: Log) -> None:
        options = task.options
        self.told = Told(task.name)
        self._name = task.name
        self._stream = task.stream
        self._log = log
        self._id = f"mainstem.generator.{task.flow_id}"
        self._rate: float = options["rate"]
        self._count: int | None = options["count"]
        self._row = row_maker(read_columns(options["columns"], made=True), options["seed"])
        self._making = Trying(f"made-{task.name}", self.told, self._run)
        self._stopping = self._making.stopping

    # -- life

    def start(self) -> None:
        """Begin where the stream ends."""
        self._making.start()

    def stop(self) -> None:
        """End, between two transactions."""
        self._making.stop()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._generate()
            except MainstemError as error:
                if error.code != _FENCED:
                    raise
                self._stand_by()
            else:
                return

    # -- records

    def _generate(self) -> None:
        """Until it is to stop, or all are made."""
        producer = TransactionalProducer(self._log.connection, self._id)  # 1.
        try:
            number = next_number(self._log.connection, self._stream.topic)  # 2.
            self.told.running()
            began, first = time.monotonic(), number
            while not self._stopping.is_set():
                self.told.detail = {"rate": self._rate, "next": number}
                if self._count is not None and number >= self._count:
                    self.told.state = FINISHED
                    return
                due = first + int((time.monotonic() - began) * self._rate) + 1
                end = min(due, number + _MOST_AT_ONCE, self._count or due)
                if end <= number:
                    wait = (number - first) / self._rate - (time.monotonic() - began)
                    self._stopping.wait(max(wait, _TICK_SECONDS))
                    continue
                now = time.time()
                with producer.transaction() as transaction:  # 3.
                    transaction.send(
                        self._stream.topic, [self._record(n, now) for n in range(number, end)]
                    )
                # 4. was the end of the block
                self.told.records += end - number
                number = end
        finally:
            producer.close()

    def _record(self, number: int, now: float) -> Outgoing:
        row = self._row(number, now)
        headers = ((NUMBER_HEADER, b"%d" % number),)
        return Outgoing(self._key(row), _encode(row).encode(), headers=headers)

    def _key(self, row: dict[str, Any]) -> bytes | None:
        key = self._stream.key
        if not key:
            return None
        if len(key) == 1:
            value = row[key[0]]
            return value.encode() if isinstance(value, str) else _encode(value).encode()
        columns = [c for name in key if (c := self._stream.column(name)) is not None]
        return key_json(columns, {name: _encode(row[name]) for name in key})

    # -- another one has taken over

    def _stand_by(self) -> None:
        """Until the topic has stopped to grow."""
        self.told.failed(MainstemError("GENERATOR_ELSEWHERE", name=self._name))
        patience = max(_STAND_BY_SECONDS, 5 / self._rate)
        before: object = None
        while not self._stopping.wait(patience):
            admin = Admin(self._log.connection)
            try:
                ends = admin.end_offsets(self._stream.topic)
            except MainstemError:
                continue
            finally:
                admin.close()
            if ends == before:
                return
            before = ends
