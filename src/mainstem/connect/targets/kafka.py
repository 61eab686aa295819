"""Rows of a sink as records of topics, of another cluster or our own, exactly once.

What happens to a part of a batch, and what a crash after each step means:

1. The task takes a transactional id of its own there, which ends what an older one left open. The
   first time after a start it looks for its token: a token of this batch means that the records
   are there, and none is written. Crash: nothing was written.
2. Records and token go into one transaction. Crash: the next task's step 1 aborts it.
3. Commit. Crash: the part comes again, and step 1 finds the token.

Which rows are too large is told the same whether they are written or known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from mainstem.connect.kafka_cluster import connection_of
from mainstem.connect.targets.routes import NoRouteError, Routes, key_of
from mainstem.connect.targets.target import (
    ID,
    OFFSET,
    OWN_LOG,
    PARTITION,
    ROW,
    TIME,
    TOPIC,
    Form,
    Part,
    Poison,
    Shape,
    refused,
    unreachable,
)
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import MAX_RECORD_BYTES, Connection
from mainstem.log.delivery import check_size, size_of
from mainstem.log.producer import Outgoing, Transaction, TransactionalProducer
from mainstem.log.task_writer import TaskWrite, committed_token, tokens_topic
from mainstem.vocabulary import COMMITS_TOPIC

GUARANTEE = "exactly once: records and a token of the batch are one transaction of that cluster"
KEYED = False

_MICROSECONDS = 1000
_AROUND = 512
"""What Kafka puts around a key and a value, and counts."""


def form(options: Mapping[str, Any]) -> Form:
    """Texts."""
    return Form.JSON


def check(options: Mapping[str, Any], shape: Shape) -> None:
    """Whether the cluster answers and lets us in; our own does."""
    routes = Routes.of(options, shape)
    if options["servers"] is None:
        return
    with _told(options):
        admin = Admin(_connection(options))
        try:
            admin.topic(routes.topic if routes.fixed else COMMITS_TOPIC)
        finally:
            admin.close()


def open_target(options: Mapping[str, Any], shape: Shape) -> KafkaTarget:
    """The target for one task."""
    return KafkaTarget(options, shape)


class KafkaTarget:
    """One part of a batch: one transaction."""

    def __init__(self, options: Mapping[str, Any], shape: Shape) -> None:
        self._options = options
        self._shape = shape
        self._routes = Routes.of(options, shape)
        self._made: set[str] = set()
        """Topics that are there."""
        self._connection = _connection(options)
        self._task: TaskWrite | None = None
        self._read: frozenset[str] = frozenset()
        self._known = False
        """True when the records are there."""
        self._producer: TransactionalProducer | None = None
        self._block: AbstractContextManager[Transaction] | None = None
        self._transaction: Transaction | None = None

    def open(self, part: Part) -> None:
        """Connects, and looks whether the part is there."""
        self._read = frozenset(part.topics)
        # an id of its own, should that cluster be another Mainstem's, or ours
        flow = f"sink.{part.flow}.{part.epoch}"
        task = self._task = TaskWrite(
            flow=flow,
            task=part.task,
            batch_id=part.batch,
            topic=self._routes.topic,
            tokens_topic=COMMITS_TOPIC,
            previous_batch=None,
            recovering=part.recovering,
            epoch=part.epoch,
            run=part.run,
        )
        with _told(self._options):
            self._prepare(make=part.recovering)
            self._producer = TransactionalProducer(self._connection, task.transactional_id)
            token = committed_token(self._connection, task) if part.recovering else None
            self._known = token is not None
            if not self._known:
                self._block = self._producer.transaction()
                self._transaction = self._block.__enter__()

    def write(self, rows: pa.Table) -> Sequence[Poison]:
        """Adds the rows to the transaction."""
        poison = []
        names = (TOPIC, PARTITION, OFFSET, ID, ROW)
        times = rows[TIME].cast(pa.int64()).to_pylist()
        with _told(self._options):
            for topic, partition, offset, id_, row, time in zip(
                *(rows[name].to_pylist() for name in names), times, strict=True
            ):
                try:
                    out = self._outgoing(id_, row, time)
                    to = out.topic or self._routes.topic
                    if self._options["servers"] is None and to in self._read:
                        raise NoRouteError(f'the sink reads the topic "{to}" itself')
                    check_size(self._connection, to, size_of(out.key, out.value))
                except (MainstemError, NoRouteError) as error:
                    cause = error.message if isinstance(error, MainstemError) else str(error)
                    poison.append(Poison(topic, partition, offset, cause))
                    continue
                if self._transaction is not None:
                    if not self._routes.fixed and to not in self._made:
                        self._make(to)
                    self._transaction.send(to, [out])
        return poison

    def finish(self) -> Sequence[Poison]:
        """Adds the token, and commits."""
        block, self._block = self._block, None
        if block is not None:
            assert self._transaction is not None
            assert self._task is not None
            token = Outgoing(self._task.token_key.encode(), self._task.token())
            with _told(self._options):
                self._transaction.send(COMMITS_TOPIC, [token])
                block.__exit__(None, None, None)
        return []

    def close(self) -> None:
        """Aborts what is not finished, and ends the client."""
        if self._block is not None:
            with suppress(_UnfinishedError, MainstemError):  # else the broker aborts it in a while
                self._block.__exit__(_UnfinishedError, _UnfinishedError(), None)
        if self._producer is not None:
            self._producer.close()

    def _prepare(self, *, make: bool) -> None:
        """Makes topics that are missing, and asks how large a record may be."""
        admin = Admin(self._connection)
        try:
            if make:
                admin.ensure_topic(tokens_topic(COMMITS_TOPIC, -1))
                if self._routes.fixed:
                    admin.ensure_topic(self._spec(self._routes.topic))
            limit = admin.record_limit(self._routes.topic) if self._routes.fixed else None
        finally:
            admin.close()
        if limit is not None:
            options = {**self._connection.options, MAX_RECORD_BYTES: str(limit - _AROUND)}
            self._connection = replace(self._connection, options=options)

    def _make(self, topic: str) -> None:
        """Makes a topic that a row goes to, if it is missing."""
        admin = Admin(self._connection)
        try:
            admin.ensure_topic(self._spec(topic))
        finally:
            admin.close()
        self._made.add(topic)

    def _spec(self, topic: str) -> TopicSpec:
        compacted = {"cleanup.policy": "compact"} if self._shape.deletes else {}
        return TopicSpec(topic, int(self._options["partitions"]), config=compacted)

    def _outgoing(self, id_: str | None, row: str | None, time: int | None) -> Outgoing:
        at = None if time is None else max(0, time // _MICROSECONDS)
        return self._routes.record(key_of(self._shape, id_), id_, row, at)


class _UnfinishedError(Exception):
    """A part that ends without `finish`."""


def _connection(options: Mapping[str, Any]) -> Connection:
    if options["servers"] is None:
        return Connection.from_dict(options[OWN_LOG])
    return connection_of(options)


@contextmanager
def _told(options: Mapping[str, Any]) -> Iterator[None]:
    """The log's errors as a target's."""
    what = f"Kafka at {options['servers'] or 'home'}"
    try:
        yield
    except MainstemError as error:
        if error.code == "LOG_UNREACHABLE":
            raise unreachable(what, "no broker answers") from None
        raise refused(what, error.message) from None
