"""A compacted topic as a dictionary in memory: how every process of Mainstem knows shared state."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from mainstem.errors import MainstemError
from mainstem.log.admin import BROKER_DEFAULT, Admin, TopicSpec
from mainstem.log.change_groups import ChangeGroups, group_headers
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader, read_range
from mainstem.log.errors import unreachable
from mainstem.log.producer import Outgoing, Producer, TransactionalProducer
from mainstem.vocabulary import Record

V = TypeVar("V")

_logger = logging.getLogger(__name__)
_PARTITION = 0
_TRANSACTION_SECONDS = 10.0
_OUTDATED = ("CONCURRENT_APPLY", "LOG_FAILED")
"""How a kept producer fails that was fenced, or forgotten by the broker after a long rest."""
_RETRY_SECONDS = 0.5
_MOMENT_SECONDS = 1.0
"""So long a transaction is let go on; then whoever began it may be dead, and is taken over from."""
_LOOK_SECONDS = 0.02
_CONFIG = {
    "cleanup.policy": "compact",
    # Only closed segments are compacted; small ones keep the start of a process quick.
    "segment.bytes": str(16 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
}


class StateLog(Generic[V]):
    """Keys and values of a compacted topic with one partition.

    `start` reads the topic and then a thread of its own follows it; all processes that follow the
    same topic apply the same changes in the same order. All methods are safe to call from several
    threads. `on_change(key, value)` (None: deleted) is called for every change, in order, from one
    thread; during `start` for all that exists. It must return soon, must not call `wait_for`,
    `write` or `replace` (they wait for that very thread), and when it raises, that is logged.
    A record that cannot be decoded is logged and skipped.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        decode: Callable[[bytes], V],
        encode: Callable[[V], bytes],
        on_change: Callable[[str, V | None], None] | None = None,
        *,
        replication_factor: int = BROKER_DEFAULT,
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._decode = decode
        self._encode = encode
        self._on_change = on_change
        self._replication_factor = replication_factor
        self._values: dict[str, V] = {}
        self._offset = 0
        self._announced = 0
        self._written = -1
        self._revision = 0
        self._moved = threading.Condition()
        self._groups = ChangeGroups()
        self._stop = threading.Event()
        self._follower: threading.Thread | None = None
        self._producer: Producer | None = None
        self._asking: Admin | None = None
        self._writer: TransactionalProducer | None = None
        self._writing = threading.Lock()
        self._replacing = threading.Lock()

    # -- life

    def start(self, timeout: float = 30.0) -> None:
        """Make the topic if it is missing, read all of it, then follow it."""
        admin = Admin(self._connection, timeout)
        try:
            admin.ensure_topic(TopicSpec(self._topic, 1, self._replication_factor, _CONFIG))
            begin = admin.begin_offsets(self._topic)[_PARTITION]
            end = admin.end_offsets(self._topic)[_PARTITION]
        finally:
            admin.close()
        self._offset = begin
        start, stop = {_PARTITION: begin}, {_PARTITION: end}
        for records in read_range(self._connection, self._topic, start, stop, timeout=timeout):
            self._apply(records)
        # The end is the end of a transaction, even if its last record was compacted away.
        for group in self._groups.rest():
            self._apply_group(group)
        self._advance(end)
        self._revision = end
        self._follower = threading.Thread(
            target=self._follow, name=f"mainstem-follow-{self._topic}", daemon=True
        )
        self._follower.start()

    def close(self) -> None:
        """Stop following; safe to call twice. What was read stays readable."""
        self._stop.set()
        if self._follower is not None:
            self._follower.join(10)
        with self._writing:
            if self._producer is not None:
                self._producer.close()
                self._producer = None
            if self._asking is not None:
                self._asking.close()
                self._asking = None
        with self._replacing:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    # -- reading

    def get(self, key: str) -> V | None:
        """The value of a key, or None."""
        with self._moved:
            return self._values.get(key)

    def items(self) -> dict[str, V]:
        """All keys and values at this moment, as a copy."""
        with self._moved:
            return dict(self._values)

    def snapshot(self) -> tuple[dict[str, V], int]:
        """All keys and values, and an offset that stands for them until the next change.

        `offset` moves on behind the marker of a transaction, too, some time after its records.
        """
        with self._moved:
            return dict(self._values), self._revision

    @property
    def offset(self) -> int:
        """The next offset to be applied: everything before it is in `items`."""
        with self._moved:
            return self._offset

    def wait_for(self, offset: int, timeout: float = 10.0) -> None:
        """Wait until everything before `offset` is applied; LOG_UNREACHABLE after `timeout`."""
        with self._moved:
            if not self._moved.wait_for(lambda: self._announced >= offset, timeout):
                raise unreachable(self._connection.servers)

    def catch_up(self, timeout: float = 10.0) -> int:
        """Wait until all that is committed by now is applied, and give the offset behind it.

        `on_change` was called for everything before that offset.
        """
        end = self._admin().end_offsets(self._topic)[_PARTITION]
        with self._moved:
            applied = self._announced
            own_marker = applied == self._written and end == applied + 1
        if end > applied and not own_marker:
            # the follower hears late of markers of transactions, which are no records
            start, stop = {_PARTITION: applied}, {_PARTITION: end}
            for records in read_range(self._connection, self._topic, start, stop, timeout=timeout):
                self.wait_for(records[-1].offset + 1, timeout)
        return end

    # -- writing

    def write(self, changes: Mapping[str, V | None], wait: bool = True) -> int:
        """Write values (None deletes) and give the offset behind them.

        With `wait`, `get` and `items` have them when this returns. Several keys are not one
        transaction; for that there is `replace`.
        """
        if not changes:
            return self.offset
        with self._writing:
            if self._producer is None:
                self._producer = Producer(self._connection)
            producer = self._producer
        behind = producer.send(self._topic, self._outgoing(changes))[_PARTITION] + 1
        if wait:
            self.wait_for(behind)
        return behind

    def replace(self, changes: Mapping[str, V | None], expected_offset: int) -> int:
        """Write all changes at once, if nothing was written since `expected_offset`.

        `expected_offset` is the `offset` upon which the changes were decided. Gives the offset
        behind the changes, which are applied here when it returns; every follower sees all of
        them or none. For a topic to which only `replace` writes. The steps:

        1. Own the transactional id of the topic, by a producer that is kept for the next time.
           Taking it over means that no older `replace`, in whatever process, can commit, and ends
           what it left open; that somebody has taken it from here shows at the commit. Crash:
           nothing was written.
        2. Look at everything behind `expected_offset`: a committed record means that somebody was
           quicker, STALE_PLAN. Crash: nothing was written.
        3. Write and commit in one transaction. Fenced by a newer `replace` means CONCURRENT_APPLY;
           only a producer that was kept takes over once more and goes back to 2, for the newer one
           may have been done long ago, or be dead with its transaction open. Crash: the next
           `replace`, or the broker soon, aborts it.
        4. Wait until the changes are applied here.
        """
        if not changes:
            return self.offset
        with self._replacing:
            kept = self._writer is not None
            try:
                behind = self._replace(changes, expected_offset)
            except MainstemError as error:
                if not (kept and error.code in _OUTDATED):
                    raise
                behind = self._replace(changes, expected_offset)
        # 4.
        self.wait_for(behind)
        with self._moved:
            self._written = behind
        return behind

    # -- inside

    def _replace(self, changes: Mapping[str, V | None], expected_offset: int) -> int:
        # 1.
        writer, self._writer = self._writer, None
        patience = _MOMENT_SECONDS
        if writer is None:
            writer = TransactionalProducer(
                self._connection, f"mainstem.{self._topic}", _TRANSACTION_SECONDS
            )
            patience = _TRANSACTION_SECONDS
        try:
            # 2.
            self._check_unchanged(expected_offset, patience)
            # 3.
            behind = self._commit(writer, changes)
        except BaseException:
            writer.close()
            raise
        self._writer = writer
        return behind

    def _admin(self) -> Admin:
        with self._writing:
            if self._asking is None:
                self._asking = Admin(self._connection)
            return self._asking

    def _outgoing(self, changes: Mapping[str, V | None], group: str = "") -> list[Outgoing]:
        last = len(changes) - 1
        return [
            Outgoing(
                key.encode(),
                None if value is None else self._encode(value),
                partition=_PARTITION,
                headers=group_headers(group, index == last) if group else (),
            )
            for index, (key, value) in enumerate(changes.items())
        ]

    def _check_unchanged(self, expected_offset: int, patience: float) -> None:
        """Lets a transaction that is open go on for a while: its records cannot be read yet."""
        admin, deadline = self._admin(), time.monotonic() + patience
        end = admin.end_offsets(self._topic, committed=False)[_PARTITION]
        while admin.end_offsets(self._topic)[_PARTITION] < end:
            if time.monotonic() > deadline:
                raise MainstemError("CONCURRENT_APPLY")
            time.sleep(_LOOK_SECONDS)
        start, stop = {_PARTITION: expected_offset}, {_PARTITION: end}
        for _ in read_range(self._connection, self._topic, start, stop):
            raise MainstemError("STALE_PLAN", planned=expected_offset, actual=end)

    def _commit(self, writer: TransactionalProducer, changes: Mapping[str, V | None]) -> int:
        transaction = None
        try:
            with writer.transaction() as transaction:
                transaction.send(self._topic, self._outgoing(changes, uuid.uuid4().hex))
        except MainstemError as error:
            if error.code != "WRITER_FENCED":
                raise
            # The commit may have been on its way when the newer writer came.
            last = None if transaction is None else self._last_offset(transaction.deliveries.last)
            if last is None or not self._is_committed(last):
                raise MainstemError("CONCURRENT_APPLY") from None
            return last + 1
        last = self._last_offset(transaction.deliveries.last)
        return self.offset if last is None else last + 1

    def _last_offset(self, last: Mapping[str, Mapping[int, int]]) -> int | None:
        return last.get(self._topic, {}).get(_PARTITION)

    def _is_committed(self, offset: int) -> bool:
        start, stop = {_PARTITION: offset}, {_PARTITION: offset + 1}
        return any(True for _ in read_range(self._connection, self._topic, start, stop))

    def _follow(self) -> None:
        reader = Reader(self._connection, {self._topic: {_PARTITION: self._offset}})
        try:
            while not self._stop.is_set():
                try:
                    self._apply(reader.step(10_000, 0.2))
                    if not self._groups.open:
                        self._advance(reader.positions()[self._topic][_PARTITION])
                except MainstemError as error:
                    _logger.error("following %s failed: %s", self._topic, error.message)
                    self._stop.wait(_RETRY_SECONDS)
        finally:
            reader.close()

    def _apply(self, records: list[Record]) -> None:
        for record in records:
            for group in self._groups.add(record):
                self._apply_group(group)

    def _apply_group(self, records: list[Record]) -> None:
        """Apply records that belong together, so that no reader sees a part of them."""
        changes = [change for record in records if (change := self._decoded(record)) is not None]
        with self._moved:
            for key, value in changes:
                if value is None:
                    self._values.pop(key, None)
                else:
                    self._values[key] = value
            self._offset = self._revision = records[-1].offset + 1
        if self._on_change is not None:
            for key, value in changes:
                self._call(self._on_change, key, value)
        self._advance(records[-1].offset + 1)

    def _advance(self, offset: int) -> None:
        """Wake those who wait for `offset`: it is applied and the listener knows it."""
        with self._moved:
            if offset > self._announced:
                self._offset = max(self._offset, offset)
                self._announced = offset
                self._moved.notify_all()

    def _decoded(self, record: Record) -> tuple[str, V | None] | None:
        try:
            key = (record.key or b"").decode()
            return key, None if record.value is None else self._decode(record.value)
        except Exception as error:  # noqa: BLE001 - whatever the decoder raises
            place = f"{record.topic}-{record.partition}@{record.offset}"
            _logger.error("%s cannot be decoded, skipped: %s", place, type(error).__name__)
            return None

    def _call(self, on_change: Callable[[str, V | None], None], key: str, value: V | None) -> None:
        try:
            on_change(key, value)
        except Exception:
            _logger.exception("a listener of %s failed", self._topic)
