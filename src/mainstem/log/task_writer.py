"""The exactly-once write of one task of a micro-batch; runs in a Python worker or the driver.

Each task of a flow owns the transactional id `mainstem.{flow}.{task}`. Its rows and a commit token
(flow and task -> batch id) go into one Kafka transaction, so a batch that is run again can tell
whether this task had already committed it.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, NamedTuple

from confluent_kafka import KafkaException, Producer

from mainstem.crash import crash_point
from mainstem.log import transactions
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.delivery import Failures, produce_error, size_of
from mainstem.log.errors import is_too_large, unreachable
from mainstem.vocabulary import Offsets, Record

_TRANSACTION_SECONDS = 60.0
_COMMIT_SECONDS = 120.0
_FULL_QUEUE_SECONDS = 60.0
_TUNING = {
    "linger.ms": 5,
    "batch.size": 512 * 1024,
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 256 * 1024,
}
_CACHE_SIZE = 256
# Brokers forget a producer that is silent for long (a day by default); long before that, a new one
# costs next to nothing.
_CACHE_SECONDS = 600.0


@dataclass(frozen=True)
class TaskWrite:
    """What one task of one batch writes, and what the driver knows of the task's past."""

    flow: str
    task: str
    batch_id: int
    topic: str
    """Topic of rows that name none."""
    tokens_topic: str
    previous_batch: int | None
    """The batch that this task committed last, as far as this run of the flow knows."""
    recovering: bool
    """True when the batch may have been written before: the first one after a start."""
    epoch: str = ""
    """Identity of the flow's checkpoint. Tokens of another one mean nothing: batch ids begin anew
    with every checkpoint."""
    run: str = ""
    """Identity of this run of the flow. A producer that was kept in another one may be fenced, even
    when it wrote the batch before this one: the first batch of a run takes a new one everywhere."""
    late: bool = False
    """True when the rows are made from what earlier batches left, or making them has effects: those
    of a batch that may have been written before are asked for only when it is known that it was
    not (behind step 2)."""

    @property
    def transactional_id(self) -> str:
        """The id under which the task's producers fence each other."""
        return _transactional_id(self.flow, self.task)

    @property
    def token_key(self) -> str:
        """Key of the task's commit token."""
        return f"{self.flow}|{self.task}"

    def token(self, note: str | None = None) -> bytes:
        """The commit token: says that this batch is in the log, and what the task notes of it."""
        said = {"batch": self.batch_id, "epoch": self.epoch}
        return json.dumps(said if note is None else {**said, "note": note}).encode()


def _transactional_id(flow: str, task: str) -> str:
    return f"mainstem.{flow}.{task}"


Headers = list[tuple[str, str | bytes | None]] | None


class Rows(NamedTuple):
    """Some rows, as columns of equal length."""

    topics: str | Sequence[str] | None
    """One topic for all, one per row, or None: the task's topic."""
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    timestamps: Sequence[int | None] | None = None
    """Milliseconds since the epoch; None: now."""
    partition: int = -1
    """Where they go; -1: by their keys."""
    headers: Sequence[Headers] | None = None


@dataclass(frozen=True)
class TaskResult:
    """What a task did: rows written, or that it skipped a batch that was committed before.

    A task without rows does not touch the log: neither `wrote` nor `skipped`.
    """

    rows: int
    skipped: bool
    """True when the batch had been committed before."""
    reused: bool
    """True when the producer of an earlier batch was used again."""
    note: str | None = None
    """Of a batch that had been committed before: what the task said of it then."""

    @property
    def wrote(self) -> bool:
        """True when a token of this batch stands in the log."""
        return self.skipped or self.rows > 0


def tokens_topic(name: str, replication_factor: int) -> TopicSpec:
    """The topic of the commit tokens: few partitions, small segments, quickly compacted.

    A recovering task reads all of it, so it must stay small.
    """
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": str(4 * 1024 * 1024),
        "segment.ms": str(10 * 60 * 1000),
        "min.cleanable.dirty.ratio": "0.1",
    }
    return TopicSpec(name, 4, replication_factor, config)


def write_task(
    connection: Mapping[str, Any],
    task: TaskWrite,
    rows: Iterable[Rows],
    note: Callable[[], str | None] = lambda: None,
) -> TaskResult:
    """Write the rows of one task of one batch, exactly once.

    `connection` is `Connection.to_dict()`. The steps, and what a crash after each one means:

    1. Take the producer of the task's transactional id: the one that this process kept, if it made
       the last commit that the driver knows of, else a new one. A new one fences the older writer
       and finishes what that one left. Crash: nothing was written; the batch runs again.
    2. When recovering, look for the task's token. If it names this batch or a later one of the
       same checkpoint, the rows are in the log: write nothing. Crash: as after 1. Only behind this
       step the rows of a `late` task are asked for: what they are made from is then settled.
    3. Begin a transaction and produce the rows. Crash: they are in the log, but in an open
       transaction that no reader of committed records sees; the next writer's step 1 aborts it.
    4. Produce the token into the same transaction and wait until the broker has all. Crash: as
       after 3; the token is aborted together with the rows.
    5. Commit. Crash before the broker has it: as after 4. Crash behind that: rows and token are
       visible; the batch runs again and step 2 skips this task.
    6. Keep the producer for the next batch. Crash: a new one is made.

    `note` gives what the token says of the batch, when all rows have been asked for.

    Raises WRITER_FENCED when a newer writer of the same task exists (this one is a left-over and
    must end), RECORD_TOO_LARGE, UNKNOWN_TOPIC, LOG_UNREACHABLE, LOG_FAILED. After any error nothing
    of the batch is visible, or (LOG_UNREACHABLE in step 5) the next attempt finds the token.

    Workers run one task at a time; still, several threads may write for different tasks.
    """
    return _TaskWriter(Connection.from_dict(connection), task).run(rows, note)


def finish(connection: Connection, flow: str, tasks: Iterable[str]) -> None:
    """Ends what earlier writers of some tasks of a flow left open, as step 1 does.

    For who has to see all that they have committed before it makes its own rows.
    """
    for task in tasks:
        transactions.open_producer(
            connection,
            _transactional_id(flow, task),
            transaction_seconds=_TRANSACTION_SECONDS,
            tuning=_TUNING,
        )


class _TaskWriter:
    def __init__(self, connection: Connection, task: TaskWrite) -> None:
        self._connection = connection
        self._task = task
        self._id = task.transactional_id

    def run(self, rows: Iterable[Rows], note: Callable[[], str | None]) -> TaskResult:
        task = self._task
        filled = (some for some in rows if len(some.values))
        wait = task.late and task.recovering
        first = None if wait else next(filled, None)
        if first is None and not wait:
            # a replay of the batch has no rows for this task either
            return TaskResult(0, skipped=False, reused=False)

        # 1. the producer
        kept = _take_kept(self._connection, task)
        held = kept or self._open()
        crash_point("after_init", task.flow, task.batch_id)

        # 2. has this batch been committed before?
        if task.recovering:
            token = committed_token(self._connection, task)
            crash_point("after_token_read", task.flow, task.batch_id)
            if token is not None:
                _keep(self._connection, task, held)
                said = token.get("note")
                return TaskResult(0, skipped=True, reused=kept is not None, note=said)
        if first is None:
            first = next(filled, None)
            if first is None:
                return TaskResult(0, skipped=False, reused=kept is not None)

        producer = held.producer
        try:
            # 3. the rows
            producer.begin_transaction()
            count = self._produce_all(producer, chain((first,), filled))
            crash_point("after_produce", task.flow, task.batch_id)

            # 4. the token, and wait: a crash point behind this line finds all of it in the log
            self._produce_token(producer, note())
            transactions.flush(producer, held.failures, _COMMIT_SECONDS)
            crash_point("after_token", task.flow, task.batch_id)
        except KafkaException as error:
            raise transactions.abort_because(
                producer, error, self._connection, self._id, held.failures
            ) from None
        except BaseException:
            transactions.abort(producer)
            raise

        # 5. the commit
        transactions.commit(producer, self._connection, self._id, held.failures, _COMMIT_SECONDS)
        crash_point("after_commit", task.flow, task.batch_id)

        # 6. for the next batch
        _keep(self._connection, task, held)
        return TaskResult(count, skipped=False, reused=kept is not None)

    def _open(self) -> _Held:
        failures = Failures()
        producer = transactions.open_producer(
            self._connection,
            self._id,
            transaction_seconds=_TRANSACTION_SECONDS,
            tuning=_TUNING,
            on_delivery=failures.add,
        )
        return _Held(producer, failures, time.monotonic())

    def _produce_all(self, producer: Producer, rows: Iterable[Rows]) -> int:
        produce = producer.produce
        count = 0
        for topics, keys, values, timestamps, partition, headers in rows:
            names: Iterable[str] = (
                repeat(topics or self._task.topic)
                if topics is None or isinstance(topics, str)
                else topics
            )
            times: Iterable[int | None] = repeat(0) if timestamps is None else timestamps
            heads: Iterable[Headers] = repeat(None) if headers is None else headers
            for topic, key, value, timestamp, head in zip(
                names, keys, values, times, heads, strict=False
            ):
                try:
                    produce(topic, value, key, partition, None, None, timestamp or 0, head)
                except BufferError:
                    row = (topic, value, key, partition, timestamp or 0, head)
                    self._produce_when_possible(producer, *row)
                except KafkaException as error:
                    if not is_too_large(error):
                        raise
                    size = size_of(key, value)
                    raise produce_error(error, self._connection, topic, size) from None
            count += len(values)
        return count

    def _produce_when_possible(self, producer: Producer, *row: Any) -> None:
        """The queue is full: wait until the broker has taken some of it."""
        topic, value, key, partition, timestamp, headers = row
        deadline = time.monotonic() + _FULL_QUEUE_SECONDS
        while True:
            transactions.serve_reports(producer, 0.05)
            try:
                producer.produce(topic, value, key, partition, None, None, timestamp, headers)
                return
            except BufferError:
                if time.monotonic() > deadline:
                    raise unreachable(self._connection.servers) from None

    def _produce_token(self, producer: Producer, note: str | None) -> None:
        task = self._task
        key, token = task.token_key.encode(), task.token(note)
        self._produce_when_possible(producer, task.tokens_topic, token, key, -1, 0, None)


def committed_token(connection: Connection, task: TaskWrite) -> dict[str, Any] | None:
    """The last committed token of the task, if it names this batch or a later one.

    Call it when no older writer of the task can commit any more (after step 1). An open transaction
    of another flow may hold back committed records behind it. So the token is first looked for in
    all records; only if one is there, the reader of committed records must get up to that place,
    for which it waits, if need be, until the other transaction has ended.
    """
    admin = Admin(connection)
    try:
        ends = admin.end_offsets(task.tokens_topic, committed=False)
        begins = admin.begin_offsets(task.tokens_topic)
    finally:
        admin.close()
    key = task.token_key.encode()

    def candidates(start: Offsets, end: Offsets, committed: bool) -> Iterator[Record]:
        for records in read_range(
            connection,
            task.tokens_topic,
            start,
            end,
            committed,
            timeout=_TRANSACTION_SECONDS + 30,
        ):
            for record in records:
                if record.key == key and _covers(record.value, task):
                    yield record

    first: dict[int, int] = {}
    behind: dict[int, int] = {}
    for record in candidates(begins, ends, committed=False):
        first.setdefault(record.partition, record.offset)
        behind[record.partition] = record.offset + 1
    found = [record.value for record in candidates(first, behind, committed=True)]
    return json.loads(found[-1] or b"null") if found else None


def _covers(token: bytes | None, task: TaskWrite) -> bool:
    if token is None:
        return False
    document = json.loads(token)
    return document["epoch"] == task.epoch and int(document["batch"]) >= task.batch_id


# -- producers that this process keeps between batches


@dataclass
class _Held:
    producer: Producer
    failures: Failures
    used_at: float
    batch: int = -1
    run: str = ""


_kept: OrderedDict[tuple[int, str, str], _Held] = OrderedDict()
_kept_lock = threading.Lock()


def _take_kept(connection: Connection, task: TaskWrite) -> _Held | None:
    """The kept producer, unless another process may have written for the task since.

    It is taken out, so that a producer with which something went wrong is never kept.
    """
    with _kept_lock:
        held = _kept.pop(_place(connection, task), None)
    if held is None or (held.run, held.batch) != (task.run, task.previous_batch):
        return None
    return held if time.monotonic() - held.used_at < _CACHE_SECONDS else None


def _keep(connection: Connection, task: TaskWrite, held: _Held) -> None:
    held.run, held.batch = task.run, task.batch_id
    held.used_at = time.monotonic()
    dropped = []  # librdkafka takes a moment to close a producer that is freed
    with _kept_lock:
        _kept[_place(connection, task)] = held
        oldest = held.used_at - _CACHE_SECONDS
        while len(_kept) > _CACHE_SIZE or next(iter(_kept.values())).used_at < oldest:
            dropped.append(_kept.popitem(last=False))


def _place(connection: Connection, task: TaskWrite) -> tuple[int, str, str]:
    # With the process id: a producer does not live on in a forked child.
    return (os.getpid(), connection.servers, task.transactional_id)
