"""Rules in running flows: what is kept says why, what is dropped is counted, what stops stops."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml
from pydantic import TypeAdapter

from mainstem.definitions.model import Create, Definition
from mainstem.definitions.parse import parse_one
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
    values = [b'{"n": 5}', b'{"id": 1, "n": 50}', b'{"id": 1, "n": 5}']
    assert _refit(driver, driver.entry("s").definition, values) == [
        'it breaks the rule "id_not_null" (`id` IS NOT NULL)',
        'it breaks the rule "few" (n < 10)',
        None,
    ]


def test_spark_judges_records_of_tables_as_postgres_does(driver: Driver) -> None:
    cases = yaml.safe_load((Path(__file__).parents[1] / "table_rules.yaml").read_text())
    rules = ", ".join(f"CONSTRAINT `{n}` CHECK ({c})" for n, c in cases["rules"].items())
    made = parse_one(f"CREATE TABLE judged ({cases['columns']}, {rules})")
    assert isinstance(made, Create)
    values = [json.dumps(case["row"]).encode() for case in cases["rows"]]
    problems = _refit(driver, made.definition, [*values, None])
    found = [set(re.findall('the rule "(\\w+)"', problem or "")) for problem in problems]
    assert found == [*(set(case["breaks"]) for case in cases["rows"]), set()]


WRITTEN = """
CREATE STREAM s (id BIGINT, n INT);
CREATE STREAM good (CHECK (n < 10), CONSTRAINT even EXPECT (n % 2 = 0) ON VIOLATION DROP ROW)
  AS SELECT * FROM s;
CREATE STREAM next AS SELECT * FROM good;
"""


def test_rows_of_a_flow_are_judged_once_and_kept_as_they_would_have_been_written(
    driver: Driver,
) -> None:
    driver.apply(WRITTEN)
    for values in (2, 50, 3, 4), (51, 7):
        driver.send([Event("s", {"id": n, "n": n}) for n in values])
        driver.run()
    assert sorted(row["n"] for row in driver.rows("next")) == [2, 4]
    kept = {json.loads(k.value or b"")["n"]: dict(k.headers) for k in driver.quarantine()}
    assert {n: headers["cause"] for n, headers in kept.items()} == {
        50: b'a record of "good" breaks the rule "check" (n < 10)',
        51: b'a record of "good" breaks the rule "check" (n < 10), the rule "even" (n % 2 = 0)',
    }
    counts = read_rule_counts(driver.connection, driver.admin, "good|good.1")
    assert counts.records == {"check": 2, "even": 3}


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


def _refit(
    driver: Driver, definition: Definition, values: Sequence[bytes | None]
) -> list[str | None]:
    """What would be wrong with each value."""
    records = [
        {"id": i, "key": None, "value": None if v is None else base64.b64encode(v).decode(),
         "cause": "", "topic": "s", "partition": 0, "offset": i, "timestamp": 0}
        for i, v in enumerate(values)
    ]  # fmt: skip
    request = {
        "definition": TypeAdapter(Definition).dump_python(definition, mode="json"),
        "query": None,
        "records": records,
    }
    return [r["problem"] for r in refit(driver.spark, driver.formats, request)["records"]]
