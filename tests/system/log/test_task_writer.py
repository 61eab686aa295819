"""The exactly-once writer of a task, on a real broker: every crash, every replay, every zombie."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from mainstem.crash import VARIABLE
from mainstem.errors import MainstemError
from mainstem.log import task_writer
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing, TransactionalProducer
from mainstem.log.task_writer import Rows, TaskResult, TaskWrite, tokens_topic, write_task
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import Record

pytestmark = pytest.mark.kafka

CHILD = """
import pickle, sys
from mainstem.log.task_writer import write_task
result = write_task(*pickle.load(sys.stdin.buffer))
sys.stdout.buffer.write(pickle.dumps(result))
"""


class Flow:
    """A flow whose tasks the test runs, in this process or in one that dies."""

    def __init__(self, connection: Connection, admin: Admin, prefix: str, topic: str) -> None:
        self.connection, self.admin, self.topic = connection, admin, topic
        self.name = f"{prefix}-flow"
        self.tokens = f"{prefix}.tokens"
        admin.ensure_topic(tokens_topic(self.tokens, 1))

    def task(self, batch: int, previous: int | None = None, recovering: bool = False) -> TaskWrite:
        return TaskWrite(self.name, "0", batch, self.topic, self.tokens, previous, recovering)

    def rows(self, batch: int) -> list[Rows]:
        numbers = range(batch * 10, batch * 10 + 10)
        return [Rows(None, [b"k"] * 10, [b"%d" % n for n in numbers])]

    def write(self, task: TaskWrite) -> TaskResult:
        return write_task(self.connection.to_dict(), task, self.rows(task.batch_id))

    def write_elsewhere(self, task: TaskWrite, crash: str | None = None) -> TaskResult | None:
        """Write in another process; None when that process was killed."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        if crash is not None:
            environment[VARIABLE] = f"{crash}:{task.flow}:{task.batch_id}"
        done = subprocess.run(
            [sys.executable, "-c", CHILD],
            input=pickle.dumps((self.connection.to_dict(), task, self.rows(task.batch_id))),
            capture_output=True,
            env=environment,
            check=False,
        )
        if done.returncode == -signal.SIGKILL:
            return None
        assert done.returncode == 0, done.stderr.decode()
        result = pickle.loads(done.stdout)
        assert isinstance(result, TaskResult)
        return result

    def records(self, topic: str | None = None, committed: bool = True) -> list[Record]:
        topic = topic or self.topic
        start, end = self.admin.begin_offsets(topic), self.admin.end_offsets(topic, committed)
        return [
            record
            for records in read_range(self.connection, topic, start, end, committed)
            for record in records
        ]

    def numbers(self) -> list[int]:
        """What a reader of committed records sees, once all is written."""
        self.settle(self.topic)
        return [int(record.value or b"") for record in self.records()]

    def settle(self, topic: str) -> None:
        """Wait for the end of all transactions: a commit returns a moment before its marker."""
        ends = self.admin.end_offsets
        eventually(lambda: ends(topic) == ends(topic, committed=False), what="no open transaction")


@pytest.fixture
def flow(connection: Connection, admin: Admin, prefix: str, topic: Callable[..., str]):
    flow = Flow(connection, admin, prefix, topic())
    yield flow
    admin.delete_topic(flow.tokens)


def test_batches_follow_each_other_with_one_producer(flow: Flow) -> None:
    assert flow.write(flow.task(0)) == TaskResult(10, skipped=False, reused=False)
    for batch in range(1, 5):
        result = flow.write(flow.task(batch, previous=batch - 1))
        assert result == TaskResult(10, skipped=False, reused=True)
    assert flow.numbers() == list(range(50))
    flow.settle(flow.tokens)
    tokens = [(r.key, json.loads(r.value or b"")) for r in flow.records(flow.tokens)]
    assert tokens[-1] == (f"{flow.name}|0".encode(), {"batch": 4, "epoch": ""})


def test_what_a_task_said_of_a_batch_stands_in_its_token(flow: Flow) -> None:
    connection, rows = flow.connection.to_dict(), flow.rows(0)
    assert write_task(connection, flow.task(0), rows, lambda: "all of it").note is None
    again = write_task(connection, flow.task(0, recovering=True), rows, lambda: "something else")
    assert (again.skipped, again.note) == (True, "all of it")


def test_topics_and_times_per_row(
    flow: Flow, connection: Connection, topic: Callable[..., str]
) -> None:
    other = topic("other")
    rows = [
        Rows([flow.topic, other], [b"a", None], [b"1", b"2"], [1000, None]),
        Rows(other, [b"b"], [None], [3000]),
    ]
    assert write_task(connection.to_dict(), flow.task(0), rows).rows == 3
    for name in (flow.topic, other):
        flow.settle(name)
    assert [(r.key, r.value, r.timestamp) for r in flow.records()] == [(b"a", b"1", 1000)]
    first, second = flow.records(other)
    assert (first.key, first.value, second.key, second.value) == (None, b"2", b"b", None)
    assert first.timestamp > 1_000_000_000_000
    assert second.timestamp == 3000


def test_replay_of_a_committed_batch_is_skipped(flow: Flow) -> None:
    flow.write_elsewhere(flow.task(0))
    assert flow.write(flow.task(0, recovering=True)) == TaskResult(0, skipped=True, reused=False)
    assert flow.write(flow.task(1, previous=0)).reused
    assert flow.numbers() == list(range(20))


def test_a_new_batch_after_a_restart_is_written(flow: Flow) -> None:
    flow.write_elsewhere(flow.task(0))
    assert not flow.write_elsewhere(flow.task(1, recovering=True)).skipped  # type: ignore[union-attr]
    assert flow.numbers() == list(range(20))


def test_tokens_of_another_checkpoint_mean_nothing(flow: Flow) -> None:
    flow.write_elsewhere(replace(flow.task(5), epoch="old"))
    result = flow.write(replace(flow.task(0, recovering=True), epoch="new"))
    assert result == TaskResult(10, skipped=False, reused=False)


def test_a_task_without_rows_does_not_touch_the_log(flow: Flow) -> None:
    nothing = Connection("127.0.0.1:1").to_dict()
    result = write_task(nothing, flow.task(0), [Rows(None, [], [])])
    assert (result.rows, result.wrote) == (0, False)


@pytest.mark.parametrize(
    ("point", "committed"),
    [
        ("after_init", False),
        ("after_token_read", False),
        ("after_produce", False),
        ("after_token", False),
        ("after_commit", True),
    ],
)
def test_a_crash_at_each_step(flow: Flow, point: str, committed: bool) -> None:
    flow.write_elsewhere(flow.task(0))
    assert flow.write_elsewhere(flow.task(1, recovering=True), crash=point) is None
    result = flow.write(flow.task(1, recovering=True))
    assert result.skipped is committed
    flow.write(flow.task(2, previous=1))
    assert flow.numbers() == list(range(30))


def test_a_crash_leaves_rows_that_nobody_sees(flow: Flow) -> None:
    """Without this, the crash after the token would prove little."""
    flow.write_elsewhere(flow.task(0), crash="after_token")
    assert len(flow.records(committed=False)) == 10
    assert flow.records() == []


def test_a_producer_that_another_process_has_fenced_is_not_used(flow: Flow) -> None:
    flow.write(flow.task(0))
    flow.write_elsewhere(flow.task(1, previous=0))
    result = flow.write(flow.task(2, previous=1))
    assert not result.reused
    assert flow.numbers() == list(range(30))


def test_a_producer_of_another_run_is_not_used(flow: Flow) -> None:
    """Its batch may be the last one that was committed, and its place be taken all the same."""
    flow.write(replace(flow.task(0), run="first"))
    flow.write_elsewhere(replace(flow.task(0, recovering=True), run="second"))
    result = flow.write(replace(flow.task(1, previous=0), run="second"))
    assert not result.reused
    assert flow.numbers() == list(range(20))


def test_a_zombie_is_fenced(flow: Flow) -> None:
    """A task that was given up, but lives and writes when its successor is done."""
    flow.write(flow.task(0))

    def rows_of_a_slow_task():
        yield from flow.rows(1)
        assert flow.write_elsewhere(flow.task(1, recovering=True)).rows == 10  # type: ignore[union-attr]
        yield from flow.rows(1)

    with pytest.raises(MainstemError) as caught:
        write_task(flow.connection.to_dict(), flow.task(1, previous=0), rows_of_a_slow_task())
    assert caught.value.code == "WRITER_FENCED"
    with pytest.raises(MainstemError) as caught:
        zombie = flow.task(0)  # a driver that believes to be alone
        task_writer._keep(flow.connection, zombie, _fenced_producer(flow, zombie))
        flow.write(flow.task(1, previous=0))
    assert caught.value.code == "WRITER_FENCED"
    assert flow.numbers() == list(range(20))


def _fenced_producer(flow: Flow, task: TaskWrite) -> task_writer._Held:
    held = task_writer._TaskWriter(flow.connection, task)._open()
    TransactionalProducer(flow.connection, task.transactional_id).close()
    return held


def test_rows_that_fail_leave_nothing(flow: Flow) -> None:
    def broken():
        yield from flow.rows(0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_task(flow.connection.to_dict(), flow.task(0), broken())
    assert flow.write(flow.task(0, recovering=True)).rows == 10
    assert flow.numbers() == list(range(10))


def test_records_too_large_for_the_client_and_for_the_topic(
    flow: Flow, topic: Callable[..., str]
) -> None:
    narrow = topic("narrow", max_message_bytes="2000")
    for size, limit in ((10_000_000, flow.connection.max_record_bytes), (5000, 2000)):
        rows = [Rows(narrow, [None, None], [b"small", os.urandom(size)])]
        with pytest.raises(MainstemError) as caught:
            write_task(flow.connection.to_dict(), flow.task(0), rows)
        assert caught.value.code == "RECORD_TOO_LARGE"
        assert caught.value.params == {"size": size, "limit": limit, "topic": narrow}
    assert flow.records(narrow) == []
    assert flow.write(flow.task(0, recovering=True)).rows == 10


def test_a_refused_record_is_told_of_though_others_could_not_be_sent_yet(
    flow: Flow, topic: Callable[..., str]
) -> None:
    """The token waits for a topic that is not there when the broker refuses the rows."""
    narrow = topic("narrow", max_message_bytes="2000")
    task = replace(flow.task(0), tokens_topic=f"{flow.tokens}.absent")
    with pytest.raises(MainstemError) as caught:
        write_task(flow.connection.to_dict(), task, [Rows(narrow, [None], [os.urandom(5000)])])
    assert caught.value.code == "RECORD_TOO_LARGE"


def test_an_unknown_topic(flow: Flow) -> None:
    absent = f"{flow.topic}.absent"
    with pytest.raises(MainstemError) as caught:
        write_task(flow.connection.to_dict(), flow.task(0), [Rows(absent, [None], [b"x"])])
    assert caught.value.code == "UNKNOWN_TOPIC"
    assert caught.value.params["topic"] == absent


def test_anothers_open_transaction_hides_no_token(flow: Flow, connection: Connection) -> None:
    """The token lies behind an open transaction of another flow: it must be waited for."""
    other = TransactionalProducer(connection, f"{flow.name}-other", transaction_seconds=120)
    opened = other.transaction()
    tx = opened.__enter__()
    tx.send(flow.tokens, [Outgoing(b"other", b'{"batch": 1}', partition=p) for p in range(4)])
    there = flow.admin.end_offsets
    eventually(lambda: sum(there(flow.tokens, committed=False).values()) == 4)

    # No token of the batch is there, hidden or not: no reason to wait for the other flow.
    began = time.monotonic()
    assert flow.write_elsewhere(flow.task(0, recovering=True)).rows == 10  # type: ignore[union-attr]
    assert time.monotonic() - began < 60

    # Now it is there, committed, but readers of committed records do not get to it.
    assert flow.records(flow.tokens) == []
    finisher = threading.Timer(1.0, opened.__exit__, (None, None, None))
    finisher.start()
    assert flow.write(flow.task(0, recovering=True)).skipped
    finisher.join()
    other.close()
    assert flow.numbers() == list(range(10))


def test_a_dead_broker(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainstem.log.transactions.OPEN_SECONDS", 1.0)
    task = TaskWrite("f", "0", 0, "t", "tokens", None, False)
    with pytest.raises(MainstemError) as caught:
        write_task(Connection("127.0.0.1:1").to_dict(), task, [Rows(None, [None], [b"x"])])
    assert caught.value.code == "LOG_UNREACHABLE"


def test_throughput(flow: Flow) -> None:
    count, step = 200_000, 10_000
    keys = [b"user-%d" % (n % 5000) for n in range(step)]
    values = [os.urandom(50).hex().encode() for _ in range(step)]
    previous = None
    for batch in range(2):
        began = time.process_time()
        rows = [Rows(None, keys, values)] * (count // step)
        assert write_task(flow.connection.to_dict(), flow.task(batch, previous), rows).rows == count
        rate = count / (time.process_time() - began)
        previous = batch
    print(f"{rate:,.0f} rows of 100 bytes per CPU-second")
    assert rate > 20_000
