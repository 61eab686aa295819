"""Writing and reading on a real broker: order, groups, ranges, transactions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable

import pytest

from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import GroupConsumer, Reader, read_range
from mainstem.log.producer import Outgoing, Producer, TransactionalProducer
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import Record

pytestmark = pytest.mark.kafka
Topic = Callable[..., str]


@pytest.fixture
def producer(connection: Connection):
    producer = Producer(connection)
    yield producer
    producer.close()


def read_all(connection: Connection, admin: Admin, topic: str, committed: bool = True):
    if committed:  # a commit returns a moment before its marker can be read
        eventually(lambda: admin.end_offsets(topic) == admin.end_offsets(topic, committed=False))
    begin, end = admin.begin_offsets(topic), admin.end_offsets(topic, committed)
    return [r for batch in read_range(connection, topic, begin, end, committed) for r in batch]


def values(records: list[Record]) -> list[bytes | None]:
    return [r.value for r in records]


def take(reader: Reader, count: int) -> list[bytes | None]:
    """The values of the next records, at least so many."""
    found: list[bytes | None] = []
    eventually(lambda: found.extend(values(reader.poll())) or len(found) >= count)
    return found


# -- plain


def test_a_record_comes_back_whole(
    connection: Connection, admin: Admin, producer: Producer, topic: Topic
) -> None:
    name = topic()
    sent = Outgoing(b"k", None, timestamp=1234, headers=(("h", b"1"), ("h", None)))
    assert producer.send(name, [sent]) == {0: 0}
    assert read_all(connection, admin, name) == [
        Record(name, 0, 0, b"k", None, 1234, (("h", b"1"), ("h", None)))
    ]


def test_order_per_key_with_many_threads(
    connection: Connection, admin: Admin, producer: Producer, topic: Topic
) -> None:
    name = topic(partitions=3)

    def write(thread: int) -> None:
        for n in range(20):
            key = b"%d" % thread
            producer.send(name, [Outgoing(key, b"%d" % (n * 50 + i)) for i in range(50)])

    threads = [threading.Thread(target=write, args=(t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by_key = defaultdict(list)
    for record in read_all(connection, admin, name):
        by_key[record.key].append(int(record.value or b""))
    assert by_key == {b"%d" % t: list(range(1000)) for t in range(4)}


def test_records_may_name_their_own_topic(
    connection: Connection, admin: Admin, producer: Producer, topic: Topic
) -> None:
    first, second = topic("first"), topic("second")
    offsets = producer.send(first, [Outgoing(None, b"a"), Outgoing(None, b"b", topic=second)])
    assert offsets == {0: 0}
    assert values(read_all(connection, admin, second)) == [b"b"]


def test_ten_megabytes_are_refused_and_nothing_is_sent(
    connection: Connection, admin: Admin, producer: Producer, topic: Topic
) -> None:
    name = topic()
    with pytest.raises(MainstemError) as caught:
        producer.send(name, [Outgoing(None, b"small"), Outgoing(None, bytes(10_000_000))])
    assert caught.value.code == "RECORD_TOO_LARGE"
    assert caught.value.params["size"] == 10_000_000
    assert admin.end_offsets(name) == {0: 0}


def test_the_limit_of_a_topic_is_named(
    connection: Connection, producer: Producer, topic: Topic
) -> None:
    name = topic(max_message_bytes="2000")
    with pytest.raises(MainstemError) as caught:
        producer.send(name, [Outgoing(None, os.urandom(5000))])
    assert caught.value.code == "RECORD_TOO_LARGE"
    assert caught.value.params == {"size": 5000, "limit": 2000, "topic": name}
    assert producer.send(name, [Outgoing(None, b"goes on")]) == {0: 0}


def test_an_unknown_topic(producer: Producer, prefix: str) -> None:
    with pytest.raises(MainstemError) as caught:
        producer.send(f"{prefix}.absent", [Outgoing(None, b"x")])
    assert caught.value.code == "UNKNOWN_TOPIC"


# -- reader


def test_long_poll_returns_when_a_record_comes(
    connection: Connection, producer: Producer, topic: Topic
) -> None:
    name = topic()
    reader = Reader(connection, {name: {0: 0}})
    try:
        began = time.monotonic()
        assert reader.poll(timeout=0.3) == []
        assert time.monotonic() - began > 0.25
        timer = threading.Timer(0.3, producer.send, (name, [Outgoing(None, b"x")]))
        timer.start()
        began = time.monotonic()
        assert values(reader.poll(timeout=120)) == [b"x"]
        assert time.monotonic() - began < 60
        timer.join()
    finally:
        reader.close()


def test_reader_adds_removes_and_knows_its_positions(
    connection: Connection, producer: Producer, topic: Topic
) -> None:
    first, second = topic("first"), topic("second")
    for name in (first, second):
        producer.send(name, [Outgoing(None, b"%d" % n) for n in range(5)])
    reader = Reader(connection, {first: {0: 3}})
    try:
        assert take(reader, 2) == [b"3", b"4"]
        assert reader.positions() == {first: {0: 5}}
        reader.add(second, {0: 4})
        reader.remove(first)
        producer.send(first, [Outgoing(None, b"unseen")])
        assert take(reader, 1) == [b"4"]
        assert reader.positions() == {second: {0: 5}}
    finally:
        reader.close()


def test_reader_goes_on_at_the_first_record_that_is_left(
    connection: Connection, admin: Admin, producer: Producer, topic: Topic
) -> None:
    name = topic()
    producer.send(name, [Outgoing(None, b"old")] * 3)
    admin.truncate(name)
    producer.send(name, [Outgoing(None, b"new")])
    reader = Reader(connection, {name: {0: 0}})
    try:
        assert take(reader, 1) == [b"new"]
        assert reader.positions() == {name: {0: 4}}
    finally:
        reader.close()


# -- transactions


def test_an_aborted_transaction_leaves_nothing_visible(
    connection: Connection, admin: Admin, topic: Topic, prefix: str
) -> None:
    name = topic()
    writer = TransactionalProducer(connection, f"{prefix}.tx")
    try:
        with pytest.raises(ZeroDivisionError), writer.transaction() as tx:
            tx.send(name, [Outgoing(None, b"aborted")] * 3)
            raise ZeroDivisionError
        with writer.transaction() as tx:
            tx.send(name, [Outgoing(None, b"committed")] * 2)
    finally:
        writer.close()
    assert values(read_all(connection, admin, name)) == [b"committed"] * 2


def test_offsets_are_part_of_the_transaction(
    connection: Connection, admin: Admin, topic: Topic, prefix: str
) -> None:
    name, group = topic(), f"{prefix}.group"
    writer = TransactionalProducer(connection, f"{prefix}.tx")
    try:
        with pytest.raises(ZeroDivisionError), writer.transaction() as tx:
            tx.offsets(group, {name: {0: 3}})
            raise ZeroDivisionError
        assert admin.group_offsets(group, name) == {}
        with writer.transaction() as tx:
            tx.send(name, [Outgoing(None, b"x")])
            tx.offsets(group, {name: {0: 7}})
    finally:
        writer.close()
    # the marker is written a moment later
    eventually(lambda: admin.group_offsets(group, name) == {0: 7})
    admin.delete_group(group)


def test_a_newer_writer_fences_the_older(
    connection: Connection, admin: Admin, topic: Topic, prefix: str
) -> None:
    name = topic()
    older = TransactionalProducer(connection, f"{prefix}.tx")
    with pytest.raises(MainstemError) as caught, older.transaction() as tx:
        tx.send(name, [Outgoing(None, b"older")])
        newer = TransactionalProducer(connection, f"{prefix}.tx")
    assert caught.value.code == "WRITER_FENCED"
    with newer.transaction() as tx:
        tx.send(name, [Outgoing(None, b"newer")])
    with pytest.raises(MainstemError) as caught, older.transaction() as tx:
        tx.send(name, [Outgoing(None, b"older")])
    assert caught.value.code == "WRITER_FENCED"
    newer.close()
    older.close()
    assert values(read_all(connection, admin, name)) == [b"newer"]


def test_a_transaction_that_is_too_large_names_the_record(
    connection: Connection, admin: Admin, topic: Topic, prefix: str
) -> None:
    name = topic(max_message_bytes="2000")
    writer = TransactionalProducer(connection, f"{prefix}.tx")
    with pytest.raises(MainstemError) as caught, writer.transaction() as tx:
        tx.send(name, [Outgoing(None, b"small"), Outgoing(None, os.urandom(5000))])
    writer.close()
    assert caught.value.code == "RECORD_TOO_LARGE"
    assert caught.value.params == {"size": 5000, "limit": 2000, "topic": name}
    again = TransactionalProducer(connection, f"{prefix}.tx")
    with again.transaction() as tx:
        tx.send(name, [Outgoing(None, b"goes on")])
    again.close()
    assert values(read_all(connection, admin, name)) == [b"goes on"]


# -- ranges


def test_a_range_that_ends_in_markers_ends(
    connection: Connection, admin: Admin, topic: Topic, prefix: str
) -> None:
    name = topic(partitions=2)
    writer = TransactionalProducer(connection, f"{prefix}.tx")
    try:
        for n in range(3):
            with writer.transaction() as tx:
                tx.send(name, [Outgoing(None, b"%d" % n, partition=0)])
        with pytest.raises(ZeroDivisionError), writer.transaction() as tx:
            tx.send(name, [Outgoing(None, b"x", partition=p) for p in (0, 1)])
            eventually(lambda: admin.end_offsets(name, committed=False) == {0: 7, 1: 1})
            raise ZeroDivisionError
    finally:
        writer.close()
    # records 0 2 4 6, each with its marker
    eventually(lambda: admin.end_offsets(name) == {0: 8, 1: 2})
    assert values(read_all(connection, admin, name)) == [b"0", b"1", b"2"]
    inner = read_range(connection, name, {0: 1, 1: 0}, {0: 4, 1: 1})
    assert values([r for part in inner for r in part]) == [b"1"]
    assert list(read_range(connection, name, {0: 5}, {0: 8})) == []
    assert list(read_range(connection, name, {0: 8, 1: 2}, {0: 8, 1: 2})) == []


def test_a_range_with_compacted_holes_ends(
    connection: Connection, admin: Admin, producer: Producer, topic: Topic
) -> None:
    name = topic(
        cleanup_policy="compact",
        segment_ms="50",
        min_cleanable_dirty_ratio="0.001",
        max_compaction_lag_ms="50",
    )
    # Two keys, many values: compaction removes nearly all; the wait is for the broker's cleaner.
    producer.send(name, [Outgoing(b"a", b"%d" % n) for n in range(50)])
    deadline = time.monotonic() + 120
    while True:
        end = producer.send(name, [Outgoing(b"b", b"tick")])[0] + 1
        records = [r for part in read_range(connection, name, {0: 0}, {0: end}) for r in part]
        offsets = [r.offset for r in records]
        if len(offsets) < end - 5:
            break
        assert time.monotonic() < deadline, "the broker compacted nothing"
        threading.Event().wait(0.1)
    assert (b"a", b"49") in [(r.key, r.value) for r in records]
    hole = next(n for n in range(end) if n not in offsets)
    assert list(read_range(connection, name, {0: hole}, {0: hole + 1})) == []


def test_a_range_of_uncommitted_records(
    connection: Connection, admin: Admin, topic: Topic, prefix: str
) -> None:
    name = topic()
    writer = TransactionalProducer(connection, f"{prefix}.tx")
    try:
        with writer.transaction() as tx:
            tx.send(name, [Outgoing(None, b"open")])
            eventually(lambda: admin.end_offsets(name, committed=False) != {0: 0})
            assert admin.end_offsets(name) == {0: 0}
            assert values(read_all(connection, admin, name, committed=False)) == [b"open"]
    finally:
        writer.close()


# -- groups

MEMBER = """
import sys
from mainstem.log.connection import Connection
from mainstem.log.consumer import GroupConsumer
servers, group, topic = sys.argv[1:]
member = GroupConsumer(Connection(servers, {"session.timeout.ms": "6000"}), group, [topic])
while True:
    for record in member.poll(1, 1.0):
        print(record.value.decode(), flush=True)
        if record.value == b"4":
            member.commit()
            print("committed", flush=True)
"""


def poll_until(member: GroupConsumer, count: int, seconds: float = 120) -> list[Record]:
    records: list[Record] = []
    deadline = time.monotonic() + seconds
    while len(records) < count:
        assert time.monotonic() < deadline, f"only {len(records)} records"
        records += member.poll(timeout=0.5)
    return records


def test_another_member_takes_over_when_one_dies(
    connection: Connection, admin: Admin, producer: Producer, topic: Topic, prefix: str
) -> None:
    name, group = topic(), f"{prefix}.group"
    producer.send(name, [Outgoing(None, b"%d" % n) for n in range(10)])
    first = subprocess.Popen(
        [sys.executable, "-c", MEMBER, connection.servers, group, name],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout is not None
    for line in first.stdout:
        if line == "committed\n":
            break
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = GroupConsumer(connection, group, [name])
    try:
        records = poll_until(second, 5)
        assert values(records) == [b"5", b"6", b"7", b"8", b"9"]
        second.commit()
        assert admin.group_offsets(group, name) == {0: 10}
    finally:
        second.close()
        first.stdout.close()


def test_two_members_share_and_the_leaver_hands_over(
    connection: Connection, producer: Producer, topic: Topic, prefix: str
) -> None:
    name, group = topic(partitions=2), f"{prefix}.group"
    first = GroupConsumer(connection, group, [name])
    second = GroupConsumer(connection, group, [name])
    try:
        deadline = time.monotonic() + 120
        while {len(m.assignment().get(name, [])) for m in (first, second)} != {1}:
            assert time.monotonic() < deadline
            first.poll(timeout=0.1)
            second.poll(timeout=0.1)
        first.close()
        producer.send(name, [Outgoing(None, b"%d" % n, partition=n) for n in range(2)])
        deadline = time.monotonic() + 120
        seen: set[bytes | None] = set()
        while seen != {b"0", b"1"}:
            assert time.monotonic() < deadline
            seen.update(values(second.poll(timeout=0.5)))
    finally:
        second.close()


def test_seek_to_an_offset_and_to_a_time(
    connection: Connection, admin: Admin, producer: Producer, topic: Topic, prefix: str
) -> None:
    name = topic()
    producer.send(name, [Outgoing(None, b"%d" % n, timestamp=1000 + n) for n in range(10)])
    member = GroupConsumer(connection, f"{prefix}.group", [name])
    try:
        assert len(poll_until(member, 10)) == 10
        member.seek(name, 0, 7)
        assert values(poll_until(member, 3)) == [b"7", b"8", b"9"]
        member.seek(name, 0, admin.offsets_at(name, 1002)[0])
        assert values(poll_until(member, 8))[0] == b"2"
        member.seek(name, 0, 4)
        member.commit()
        assert admin.group_offsets(f"{prefix}.group", name) == {0: 4}
        with pytest.raises(MainstemError) as caught:
            member.seek(name, 5, 0)
        assert caught.value.code == "LOG_FAILED"
    finally:
        member.close()


def test_a_group_may_start_at_the_end(
    connection: Connection, producer: Producer, topic: Topic, prefix: str
) -> None:
    name = topic()
    producer.send(name, [Outgoing(None, b"old")])
    member = GroupConsumer(connection, f"{prefix}.group", [name], start="latest")
    try:
        deadline = time.monotonic() + 120
        seen: list[bytes | None] = []
        while not seen:  # records that are written before the start position is known are not read
            assert time.monotonic() < deadline
            producer.send(name, [Outgoing(None, b"new")])
            seen = values(member.poll(timeout=0.5))
        assert set(seen) == {b"new"}
    finally:
        member.close()
