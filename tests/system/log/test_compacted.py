"""StateLog on a real broker: agreement, read-your-writes, compare-and-write, recovery."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.compacted import StateLog
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer, TransactionalProducer

pytestmark = pytest.mark.kafka
Make = Callable[..., StateLog[Any]]


@pytest.fixture
def state(connection: Connection, admin: Admin, prefix: str) -> Iterator[Make]:
    """Makes and starts state logs of one topic."""
    made: list[StateLog[Any]] = []

    def make(on_change: Callable[[str, Any], None] | None = None) -> StateLog[Any]:
        log: StateLog[Any] = StateLog(
            connection, f"{prefix}.state", json.loads, lambda v: json.dumps(v).encode(), on_change
        )
        log.start()
        made.append(log)
        return log

    yield make
    for log in made:
        log.close()
    admin.delete_topic(f"{prefix}.state")


def test_read_your_writes_and_agreement(state: Make) -> None:
    one, two = state(), state()
    behind = one.write({"a": 1, "b": 2})
    assert one.items() == {"a": 1, "b": 2}
    two.wait_for(behind)
    assert two.items() == one.items()
    behind = two.write({"a": None, "c": [3]})
    assert two.items() == {"b": 2, "c": [3]}
    one.wait_for(behind)
    assert one.get("a") is None
    assert one.items() == two.items()


def test_listener_hears_everything_in_order(state: Make) -> None:
    first = state()
    first.write({"a": 1})
    heard: list[tuple[str, Any]] = []
    second = state(lambda key, value: heard.append((key, value)))
    assert heard == [("a", 1)]
    second.write({"a": 2})
    second.write({"a": None})
    assert heard == [("a", 1), ("a", 2), ("a", None)]


def test_a_listener_that_fails_does_not_stop_it(state: Make) -> None:
    def listen(key: str, value: Any) -> None:
        raise ValueError(key)

    log = state(listen)
    log.write({"a": 1})
    log.write({"b": 2})
    assert log.items() == {"a": 1, "b": 2}


def test_recovery_from_scratch(state: Make) -> None:
    log = state()
    for n in range(50):
        log.write({f"k{n % 7}": n}, wait=False)
    behind = log.replace({"k0": None, "last": 1}, log.write({"k1": "x"}))
    expected = log.items()
    fresh = state()
    assert fresh.items() == expected
    assert fresh.offset >= behind
    assert "k0" not in expected


def test_a_record_that_cannot_be_decoded_is_skipped(
    state: Make, connection: Connection, prefix: str
) -> None:
    log = state()
    producer = Producer(connection)
    try:
        producer.send(f"{prefix}.state", [Outgoing(b"bad", b"{not json"), Outgoing(b"\xff", b"1")])
    finally:
        producer.close()
    log.write({"good": 1})
    assert log.items() == {"good": 1}
    assert state().items() == {"good": 1}


def test_replace_with_an_old_offset_is_stale(state: Make) -> None:
    one, two = state(), state()
    decided_upon = two.offset
    one.replace({"a": 1}, one.offset)
    with pytest.raises(MainstemError) as caught:
        two.replace({"a": 2}, decided_upon)
    assert caught.value.code == "STALE_PLAN"
    assert caught.value.params["planned"] == decided_upon
    two.wait_for(one.offset)
    two.replace({"a": 3}, two.offset)
    assert two.items() == {"a": 3}


def test_catching_up(state: Make) -> None:
    """All that is committed is known behind it, and what is decided then is not stale."""
    one, two = state(), state()
    for number in range(4):
        for log in (one, two):
            end = log.catch_up()
            seen = log.get("n")
            log.replace({"n": (seen or 0) + 1, log_name(log): number}, end)
    assert one.catch_up() == two.catch_up()
    assert one.items() == two.items()
    assert one.get("n") == 8


def log_name(log: StateLog[Any]) -> str:
    return f"log-{id(log)}"


def test_a_transaction_that_a_dead_writer_left_open(
    state: Make, connection: Connection, prefix: str
) -> None:
    log = state()
    decided_upon = log.replace({"a": 1}, log.offset)
    dead = TransactionalProducer(connection, f"mainstem.{prefix}.state")
    opened = dead.transaction()
    transaction = opened.__enter__()
    transaction.send(f"{prefix}.state", [Outgoing(b"a", b"99", partition=0)])
    transaction.flush()
    # the broker would give it up after a minute, which is longer than any wait here
    log.replace({"a": 2}, decided_upon)
    assert log.items() == {"a": 2}
    with pytest.raises(MainstemError) as caught:
        opened.__exit__(None, None, None)
    assert caught.value.code == "WRITER_FENCED"
    dead.close()


def test_a_snapshot_keeps_its_offset_until_the_next_change(state: Make) -> None:
    """Whoever decides upon it twice decides the same, though the marker comes in between."""
    log = state()
    behind = log.replace({"a": 1}, log.offset)
    assert log.snapshot() == ({"a": 1}, behind)
    log.wait_for(behind + 1)
    assert log.snapshot() == ({"a": 1}, behind)
    log.replace({"a": 2}, behind)


def test_replace_after_a_failed_one_is_not_stale(
    state: Make, connection: Connection, prefix: str
) -> None:
    """A crashed writer leaves records and, once aborted, a marker; neither is a change."""
    log = state()
    decided_upon = log.replace({"a": 1}, log.offset)
    crashed = TransactionalProducer(connection, f"mainstem.{prefix}.state")
    opened = crashed.transaction()
    opened.__enter__().send(f"{prefix}.state", [Outgoing(b"a", b"99", partition=0)])
    log.replace({"a": 2}, decided_upon)
    assert log.items() == {"a": 2}
    with pytest.raises(MainstemError) as caught:
        opened.__exit__(None, None, None)
    assert caught.value.code == "WRITER_FENCED"
    crashed.close()


def test_of_two_concurrent_replaces_exactly_one_wins(state: Make) -> None:
    logs = [state(), state()]
    for round in range(5):
        for log in logs:
            log.wait_for(max(other.offset for other in logs))
        decided_upon = max(log.offset for log in logs)
        gate = threading.Barrier(2)
        outcomes: list[str] = []

        def apply(number: int, gate=gate, outcomes=outcomes, at=decided_upon, round=round) -> None:
            gate.wait()
            try:
                logs[number].replace({"winner": number, f"r{round}": number}, at)
                outcomes.append("won")
            except MainstemError as error:
                outcomes.append(error.code)

        threads = [threading.Thread(target=apply, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes.count("won") == 1, outcomes
        assert set(outcomes) <= {"won", "STALE_PLAN", "CONCURRENT_APPLY"}
    final = max(log.offset for log in logs)
    for log in logs:
        log.wait_for(final)
    assert logs[0].items() == logs[1].items()


def test_a_follower_never_sees_half_a_replace(state: Make) -> None:
    writer, follower = state(), state()
    stop = threading.Event()
    torn: list[dict[str, Any]] = []

    def watch() -> None:
        while not stop.is_set():
            items = follower.items()
            if len(set(items.values())) > 1:
                torn.append(items)

    watcher = threading.Thread(target=watch)
    watcher.start()
    behind = writer.offset
    for n in range(5):
        behind = writer.replace({f"k{i}": n for i in range(300)}, behind)
    follower.wait_for(behind)
    stop.set()
    watcher.join()
    assert torn == []
    assert set(follower.items().values()) == {4}


def test_wait_for_what_never_comes(state: Make) -> None:
    log = state()
    began = time.monotonic()
    with pytest.raises(MainstemError) as caught:
        log.wait_for(log.offset + 1000, timeout=0.2)
    assert caught.value.code == "LOG_UNREACHABLE"
    assert time.monotonic() - began < 20


def test_start_without_a_broker() -> None:
    log: StateLog[Any] = StateLog(Connection("127.0.0.1:1"), "t", json.loads, lambda v: b"")
    began = time.monotonic()
    with pytest.raises(MainstemError) as caught:
        log.start(timeout=1)
    assert caught.value.code == "LOG_UNREACHABLE"
    assert time.monotonic() - began < 20
