"""Records out of quarantine on a real broker: each once, whatever crashes and whoever comes too."""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from mainstem.crash import VARIABLE
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Producer
from mainstem.log.quarantine import (
    Quarantined,
    ensure_quarantine,
    quarantined,
    read_quarantined,
)
from mainstem.log.settle import REPLAY_HEADER, Settlement, State, read_state, replay_of, settle
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import QUARANTINE_STATES_TOPIC, QUARANTINE_TOPIC, Record

pytestmark = pytest.mark.kafka

CHILD = """
import pickle, sys
from mainstem.log.connection import Connection
from mainstem.log.settle import settle
connection, settlements, known = pickle.load(sys.stdin.buffer)
settle(Connection.from_dict(connection), settlements, known, 0.0)
"""


class Ward:
    """A topic, records of it that are in quarantine, and what became of them."""

    def __init__(self, connection: Connection, admin: Admin, topic: str) -> None:
        self.connection, self.admin, self.topic = connection, admin, topic
        ensure_quarantine(admin, 1, connection.max_record_bytes)
        self.crashed = False
        """True while a transaction may be open."""
        self.known = admin.end_offsets(QUARANTINE_STATES_TOPIC)[0]

    def put(self, *origins: Record) -> list[Quarantined]:
        """Put records into quarantine."""
        begin = self.admin.end_offsets(QUARANTINE_TOPIC)
        producer = Producer(self.connection)
        producer.send(
            QUARANTINE_TOPIC,
            [
                quarantined(o, stage="decode", reader=self.topic, code="C", cause="bad", at=0.0)
                for o in origins
            ],
        )
        producer.close()
        return [read_quarantined(record) for record in self.read(QUARANTINE_TOPIC, begin)]

    def origin(self, offset: int, key: bytes = b"k", partition: int = 0) -> Record:
        return Record(self.topic, partition, offset, key, b"bad", 1_700_000_000_000 + offset)

    def read(self, topic: str, begin: dict[int, int] | None = None) -> list[Record]:
        """What readers of committed records see; a commit gets there a moment after its call."""
        start, ends = begin or self.admin.begin_offsets(topic), self.admin.end_offsets
        if not self.crashed:
            eventually(lambda: ends(topic) == ends(topic, committed=False))
        end = ends(topic)
        return [r for batch in read_range(self.connection, topic, start, end) for r in batch]

    def states(self) -> list[tuple[int, str]]:
        found = [read_state(r) for r in self.read(QUARANTINE_STATES_TOPIC, {0: self.known})]
        return [(state[0], state[1]["state"]) for state in found if state is not None]

    def settle(self, *settlements: Settlement) -> frozenset[int]:
        self.crashed = False
        return settle(self.connection, settlements, self.known, 0.0).ids

    def settle_elsewhere(self, *settlements: Settlement, crash: str) -> None:
        """Settle in a process that is killed at that point."""
        self.crashed = True
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        environment[VARIABLE] = f"{crash}:quarantine:0"
        done = subprocess.run(
            [sys.executable, "-c", CHILD],
            input=pickle.dumps((self.connection.to_dict(), settlements, self.known)),
            capture_output=True,
            env=environment,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def replayed(entry: Quarantined, value: bytes = b"{}") -> Settlement:
    return replay_of(entry, entry.origin.key, value, partitions=2)


@pytest.fixture
def ward(connection: Connection, admin: Admin, topic: Callable[..., str]) -> Ward:
    return Ward(connection, admin, topic("origin", partitions=2))


def test_a_replayed_record_and_its_state_stand_together(ward: Ward) -> None:
    [entry] = ward.put(ward.origin(5, partition=1))
    assert ward.settle(replayed(entry)) == {entry.id}
    [record] = ward.read(ward.topic)
    assert (record.partition, record.key, record.value) == (1, b"k", b"{}")
    assert record.timestamp == entry.origin.timestamp
    assert record.headers == ((REPLAY_HEADER, f"{ward.topic}/1/5".encode()),)
    [state] = ward.read(QUARANTINE_STATES_TOPIC, {0: ward.known})
    assert state.key == str(entry.id).encode()
    assert json.loads(state.value or b"")["changed"] is True
    # who still believes that it is held finds out
    assert ward.settle(replayed(entry)) == frozenset()
    assert ward.settle(Settlement(entry, State.DISCARDED)) == frozenset()
    assert len(ward.read(ward.topic)) == 1


def test_only_what_is_held_is_settled(ward: Ward) -> None:
    first, second = ward.put(ward.origin(1), ward.origin(2))
    assert ward.settle(Settlement(first, State.DISCARDED)) == {first.id}
    assert ward.settle(replayed(first), replayed(second)) == {second.id}
    assert ward.states() == [(first.id, "discarded"), (second.id, "replayed")]
    assert len(ward.read(ward.topic)) == 1


def test_records_come_in_the_order_of_their_offsets(ward: Ward) -> None:
    offsets = list(range(200))
    random.Random(7).shuffle(offsets)
    entries = ward.put(*(ward.origin(n, b"k%d" % (n % 3), n % 2) for n in offsets))
    assert len(ward.settle(*(replayed(e, b"%d" % e.origin.offset) for e in entries))) == 200
    for partition in (0, 1):
        values = [int(r.value or b"") for r in ward.read(ward.topic) if r.partition == partition]
        assert values == [n for n in range(200) if n % 2 == partition]


@pytest.mark.parametrize(
    ("point", "committed"),
    [
        ("after_init", False),
        ("after_produce", False),
        ("after_states", False),
        ("after_commit", True),
    ],
)
def test_a_crash_at_each_step_neither_loses_nor_doubles(
    ward: Ward, point: str, committed: bool
) -> None:
    entries = ward.put(ward.origin(1), ward.origin(2))
    settlements = [replayed(entry, b"%d" % entry.origin.offset) for entry in entries]
    ward.settle_elsewhere(*settlements, crash=point)
    assert len(ward.settle(*settlements)) == (0 if committed else 2)
    assert [r.value for r in ward.read(ward.topic)] == [b"1", b"2"]
    assert ward.states() == [(entry.id, "replayed") for entry in entries]


def test_a_crash_leaves_records_that_nobody_sees(ward: Ward) -> None:
    """Without this, the crash after the states would prove little."""
    [entry] = ward.put(ward.origin(1))
    ward.settle_elsewhere(replayed(entry), crash="after_states")
    assert sum(ward.admin.end_offsets(ward.topic, committed=False).values()) == 1
    assert ward.read(ward.topic) == []
    assert ward.states() == []
    assert ward.settle(replayed(entry)) == {entry.id}  # which ends that transaction


def test_of_many_at_the_same_moment_one_succeeds(ward: Ward) -> None:
    [entry] = ward.put(ward.origin(1))
    done: list[frozenset[int]] = []
    errors: list[str] = []
    together = threading.Barrier(4)

    def one() -> None:
        together.wait()
        try:
            done.append(ward.settle(replayed(entry)))
        except MainstemError as error:
            errors.append(error.code)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(errors) <= {"QUARANTINE_BUSY"}
    ward.settle(replayed(entry))  # whoever was told to do it again may
    assert len(ward.read(ward.topic)) == 1
    assert ward.states() == [(entry.id, "replayed")]
    assert len([ids for ids in done if ids]) <= 1


def test_a_call_that_was_overtaken_writes_nothing(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is stopped in the middle, and goes on when another one is done."""
    [entry] = ward.put(ward.origin(1))
    overtaken: list[frozenset[int]] = []

    def pause(name: str, flow: str, batch: int) -> None:
        if name == "after_produce" and not overtaken:
            overtaken.append(frozenset())
            overtaken[0] = ward.settle(replayed(entry, b"the other"))

    monkeypatch.setattr("mainstem.log.settle.crash_point", pause)
    with pytest.raises(MainstemError) as caught:
        ward.settle(replayed(entry, b"the first"))
    assert caught.value.code == "QUARANTINE_BUSY"
    assert overtaken == [{entry.id}]
    assert [r.value for r in ward.read(ward.topic)] == [b"the other"]


def test_a_record_that_the_topic_refuses_stays_held(ward: Ward, topic: Callable[..., str]) -> None:
    narrow = topic("narrow", max_message_bytes="2000")
    [entry] = ward.put(Record(narrow, 0, 1, b"k", b"bad", 1000))
    with pytest.raises(MainstemError) as caught:
        ward.settle(replayed(entry, os.urandom(5000)))
    assert caught.value.code == "RECORD_TOO_LARGE"
    assert ward.states() == []
    assert ward.settle(replayed(entry, b"{}")) == {entry.id}
