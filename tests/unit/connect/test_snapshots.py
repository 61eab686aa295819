"""Snapshots of single tables: none is forgotten, and none is asked for twice without need."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from mainstem.connect.snapshots import Snapshots


class Log:
    """Topics in memory."""

    def __init__(self) -> None:
        self.topics: dict[str, list[tuple[bytes, bytes]]] = defaultdict(list)

    def send(self, topic: str, key: bytes, value: bytes) -> None:
        self.topics[topic].append((key, value))

    def read(self, topic: str, start: int) -> tuple[list[bytes], int]:
        values = [value for _, value in self.topics[topic]]
        return values[start:], len(values)

    def tell(self, id: str, type_: str, **more: str) -> None:
        payload = {"id": id, "type": type_, "additional_data": more}
        self.send("notices", b"", json.dumps({"schema": {}, "payload": payload}).encode())


@pytest.fixture
def log() -> Log:
    return Log()


def of(log: Log, now: float = 0.0) -> Snapshots:
    """As a gateway that has only just begun knows them."""
    snapshots = Snapshots(log, "shop", "signals", "notices")
    snapshots.look(now)
    return snapshots


def test_asked_for_once(log: Log) -> None:
    of(log).ask("public.orders", "a", 0)
    of(log).ask("public.orders", "a", 1)
    [(key, value)] = log.topics["signals"]
    asked = json.loads(value)
    assert (key, asked["id"], asked["type"]) == (b"shop", "a", "execute-snapshot")
    assert asked["data"] == {"type": "incremental", "data-collections": [r"public\.orders"]}
    assert of(log).shown() == {"public.orders": "running"}


def test_what_was_forgotten_is_asked_for_again(log: Log) -> None:
    of(log).ask("t.a", "a", 0)
    snapshots = of(log, now=100)
    snapshots.remind(130)
    assert len(log.topics["signals"]) == 1
    log.tell("a", "IN_PROGRESS")
    snapshots.look(150)
    snapshots.remind(200)
    assert len(log.topics["signals"]) == 1, "it is heard of"
    snapshots.remind(211)
    assert [json.loads(value)["id"] for _, value in log.topics["signals"]] == ["a", "a"]
    log.tell("a", "TABLE_SCAN_COMPLETED", status="SUCCEEDED")
    snapshots.look(300)
    snapshots.remind(1000)
    assert len(log.topics["signals"]) == 2
    assert snapshots.shown() == {"t.a": "done"}


def test_what_went_wrong_is_said_until_another_ends_well(log: Log) -> None:
    snapshots = of(log)
    snapshots.ask("t.a", "a", 0)
    log.tell("a", "TABLE_SCAN_COMPLETED", status="SQL_EXCEPTION")
    snapshots.look(1)
    assert snapshots.failed() == ("t.a", "sql exception")
    snapshots.ask("t.a", "b", 2)
    log.tell("b", "TABLE_SCAN_COMPLETED", status="EMPTY")
    log.tell("other", "TABLE_SCAN_COMPLETED", status="SKIPPED")
    snapshots.look(3)
    assert snapshots.failed() is None
