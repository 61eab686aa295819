"""Rules in running flows: what is kept says why, what is dropped is counted, what stops stops."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from mainstem.definitions.model import Definition
from mainstem.engine.flow import Flow
from mainstem.engine.refit import refit
from mainstem.engine.status import FlowState
from mainstem.log.rule_counts import read_rule_counts
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.spark

SECONDS = 120
KEPT = """
CREATE STREAM s (id BIGINT NOT NULL, n INT, CONSTRAINT few CHECK (n < 10) ON VIOLATION drop);
CREATE STREAM a AS SELECT * FROM s;
CREATE STREAM b AS SELECT id FROM s;
"""


def test_kept_records_say_why_and_each_is_counted_once(driver: Driver) -> None:
    driver.apply(KEPT)
    values = [(1, 5), (2, 50), (None, 5), (None, 50), (5, 60), (6, 1)]
    driver.send([Event("s", {"id": id, "n": n}) for id, n in values])
    driver.run()
    driver.send([Event("s", {"id": 7, "n": 70})])
    driver.run()
    facts = [
        {name: (value or b"").decode() for name, value in kept.headers}
        for kept in driver.quarantine()
    ]
    assert {(f["stage"], f["object"], f["code"]) for f in facts} == {("rule", "s", "RULE_BROKEN")}
    assert sorted(f["cause"] for f in facts) == [
        'a record of "s" breaks the rule "id_not_null" (`id` IS NOT NULL)',
        'a record of "s" breaks the rule "id_not_null" (`id` IS NOT NULL), the rule "few" (n < 10)',
    ]
    # two flows have read it all, and the keeper is a new one each time
    driver.quarantine()
    counts = read_rule_counts(driver.connection, driver.admin, "s")
    assert counts.records == {"id_not_null": 2, "few": 4}


def test_a_record_comes_back_when_it_keeps_the_rules(driver: Driver) -> None:
    driver.apply(KEPT)
    definition = TypeAdapter(Definition).dump_python(driver.entry("s").definition, mode="json")
    values = [b'{"n": 5}', b'{"id": 1, "n": 50}', b'{"id": 1, "n": 5}']
    records = [
        {"id": i, "key": None, "value": base64.b64encode(v).decode(), "cause": "", "topic": "s",
         "partition": 0, "offset": i, "timestamp": 0}
        for i, v in enumerate(values)
    ]  # fmt: skip
    request: dict[str, Any] = {"definition": definition, "query": None, "records": records}
    answer = refit(driver.spark, driver.formats, request)
    assert [r["problem"] for r in answer["records"]] == [
        'it breaks the rule "id_not_null" (`id` IS NOT NULL)',
        'it breaks the rule "few" (n < 10)',
        None,
    ]


def test_a_flow_stops_before_the_record_until_the_rule_changes(
    driver: Driver, live: Callable[..., Flow]
) -> None:
    driver.apply(KEPT.replace("drop", "fail"))
    driver.send([Event("s", {"id": id, "n": n}) for id, n in [(1, 5), (2, 50), (3, 6)]])

    def until(flow: Flow, done: Callable[[], bool], what: str) -> None:
        def there() -> bool:
            flow.tick()
            return done()

        eventually(there, SECONDS, what=what)

    flow = live("a")
    flow.start()
    until(flow, lambda: flow.status.state is FlowState.FAILED, "the flow stops")
    error = flow.status.error or {}
    assert error["title"] == "RULE_STOPS_FLOW"
    topic = driver.entry("s").definition.topic
    assert 'of "s" breaks the rule "few" (n < 10)' in error["detail"]
    assert error["detail"].startswith(f"record {topic}/")
    assert driver.rows("a") == []
    flow.stop()

    driver.apply(KEPT.replace("drop", "quarantine"))
    flow = live("a")
    flow.start()
    until(flow, lambda: len(driver.rows("a")) == 2, "the flow goes on")
    flow.stop()
    assert sorted(row["id"] for row in driver.rows("a")) == [1, 3]
