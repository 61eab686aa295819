"""Avro in a running flow: versions that appear, a registry that is away, causes of bad records."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mainstem.engine.flow import Flow
from mainstem.engine.status import FlowState
from mainstem.errors import MainstemError
from mainstem.schemas.model import Schema
from mainstem.testing.driver import Driver, Event
from mainstem.testing.registry import MemoryRegistry
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM s (id BIGINT, name STRING) WITH (format = 'avro');
CREATE TABLE x AS SELECT name, count(*) AS n, max(id) AS last FROM s GROUP BY name;
"""
SECONDS = 120
START = 1_790_000_000_000_000


def record(name: str, *fields: tuple[str, Any]) -> str:
    return json.dumps(
        {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}
    )


OLD = record("old", ("id", "int"))
NEW = record("new", ("name", "string"), ("id", "long"))
NEWER = record("newer", ("id", "long"), ("more", "double"), ("name", "string"))


class Registry(MemoryRegistry):
    """A registry that can be away."""

    away = False

    def by_id(self, id: int) -> Schema:
        self._answers()
        return super().by_id(id)

    def versions(self, subject: str) -> list[int]:
        self._answers()
        return super().versions(subject)

    def _answers(self) -> None:
        if self.away:
            raise MainstemError("REGISTRY_UNREACHABLE", url="http://registry", problem="no route")


def test_versions_appear_while_a_flow_runs(
    driver: Driver, live: Callable[..., Flow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver.registry, "__class__", Registry)
    registry = driver.registry
    assert isinstance(registry, Registry)
    driver.apply(SQL)

    def until(flow: Flow, *wanted: tuple[str | None, int, int]) -> None:
        def there() -> bool:
            flow.tick()
            found = {(row["name"], row["n"], row["last"]) for row in driver.rows("x")}
            return found == set(wanted)

        eventually(there, SECONDS, what=f"{wanted}")

    driver.send([Event("s", {"id": i}, schema=OLD) for i in range(3)])
    flow = live("x")
    flow.start()
    until(flow, (None, 3, 2))

    # one that nobody has told the flow of, among others of a version that it knows
    driver.send([Event("s", {"id": 5}, schema=OLD), Event("s", {"id": 7, "name": "a"}, schema=NEW)])
    until(flow, (None, 4, 5), ("a", 1, 7))
    assert flow.status.restarts == 0  # it was no failure

    # without the registry, a flow reads what it knows, even one that starts anew
    registry.away = True
    flow.stop()
    flow = live("x")
    flow.start()
    driver.send([Event("s", {"id": 6}, schema=OLD)])
    until(flow, (None, 5, 6), ("a", 1, 7))

    # what nobody can be asked about is waited for; it is not judged
    newer = {"id": 9, "name": "a", "more": 0.5}
    driver.send([Event("s", newer, schema=NEWER), Event("s", raw=b"\0\0\0\0\x63\2")])

    def failed() -> bool:
        flow.tick()
        return flow.status.state is FlowState.FAILED

    eventually(failed, SECONDS, what="the flow waits")
    assert (flow.status.error or {})["title"] == "REGISTRY_UNREACHABLE"
    registry.away = False
    until(flow, (None, 5, 6), ("a", 2, 9))
    eventually(lambda: _quarantined(flow) == 1, SECONDS, what="the record without a schema")
    flow.stop()
    [kept] = driver.quarantine()
    facts = {name: (value or b"").decode() for name, value in kept.headers}
    assert (facts["stage"], facts["code"]) == ("decode", "RECORD_NOT_DECODED")
    assert "the registry has no schema 99" in facts["cause"]


def test_a_flow_that_knows_no_schema_yet_waits_for_the_first(
    driver: Driver, live: Callable[..., Flow]
) -> None:
    driver.apply(
        "CREATE STREAM s (id BIGINT, at TIMESTAMP)"
        " WITH (format = 'avro', event_time = 'at', watermark = '1 second');"
        "CREATE TABLE x AS SELECT count(*) AS n, max(id) AS last FROM s"
    )
    flow = live("x")
    flow.start()

    def begun() -> bool:
        flow.tick()
        return flow.status.batch_id is not None

    def counted() -> bool:
        flow.tick()
        return driver.rows("x") == [{"n": 5, "last": 4}]

    eventually(begun, SECONDS, what="it has begun")
    at = {"type": "long", "logicalType": "timestamp-micros"}
    schema = record("first", ("id", "long"), ("at", at))
    driver.send([Event("s", {"id": n, "at": START + n}, schema=schema) for n in range(5)])
    eventually(counted, SECONDS, what="five are counted")


def _quarantined(flow: Flow) -> int:
    flow.measure()
    return flow.status.quarantined
