"""A table whose topic Kafka has compacted, which takes a while: what may be missing is said."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from mainstem.definitions.model import Select
from mainstem.definitions.parse import parse_one
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.spark


def _ask(driver: Driver, sql: str) -> tuple[list[Any], str | None]:
    select = parse_one(sql)
    assert isinstance(select, Select)
    chunks = list(driver.answer(select))
    return [row for chunk in chunks for row in chunk.get("rows", ())], chunks[-1]["read"][0][
        "warning"
    ]


def test_compaction_is_noticed(driver: Driver) -> None:
    driver.apply("CREATE TABLE people (id INT PRIMARY KEY, n INT) WITH (partitions = 1);")
    topic = driver.entry("people").definition.topic
    kept = {"min.compaction.lag.ms": "3600000"}
    soon = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.001", "max.compaction.lag.ms": "1"}
    driver.admin.alter_topic(topic, {**soon, "max.compaction.lag.ms": "7200000", **kept})
    number = 0

    def write() -> None:
        nonlocal number
        number += 1
        driver.send([Event("people", {"id": 1, "n": number}, key=json.dumps({"id": 1}))])

    write()
    then = datetime.fromtimestamp(time.time() + 0.002, UTC).isoformat()
    ask = f"SELECT n FROM people AS OF TIMESTAMP '{then}'"
    eventually(lambda: time.time() > datetime.fromisoformat(then).timestamp() + 0.01)
    write()
    assert _ask(driver, ask) == ([[1]], None)
    driver.admin.alter_topic(topic, {"min.compaction.lag.ms": "0", "max.compaction.lag.ms": "1"})

    def cut() -> bool:
        write()  # the newest segment is left alone; a write begins another one
        return _ask(driver, ask)[0] == []

    eventually(cut, 240, what="the first record was compacted away")
    rows, warning = _ask(driver, ask)
    assert rows == []
    assert warning is not None
    assert "compaction" in warning
