"""Rules in running flows: what is kept says why, what is dropped is counted, what stops stops."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from mainstem.definitions.model import Create, Definition
from mainstem.definitions.parse import parse_one
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.flow import Flow
from mainstem.engine.judged_answer import JudgedAnswer
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
CREATE TABLE latest WITH (key = 'id') AS SELECT * FROM s;
CREATE TABLE small (CHECK (n < 10), CONSTRAINT even EXPECT (n % 2 = 0) ON VIOLATION drop)
  AS SELECT * FROM latest;
"""


def test_rows_of_a_flow_are_judged_once_and_kept_as_they_would_have_been_written(
    driver: Driver,
) -> None:
    driver.apply(WRITTEN)
    for values in (2, 50, 3, 4), (51, 7):
        driver.send([Event("s", {"id": n, "n": n}) for n in values])
        driver.run()
    assert sorted(row["n"] for row in driver.rows("next")) == [2, 4]
    assert sorted(row["n"] for row in driver.rows("small")) == [2, 4]
    kept = [(json.loads(k.value or b"")["n"], dict(k.headers)) for k in driver.quarantine()]
    for name in ("good", "small"):
        causes = sorted((n, f["cause"]) for n, f in kept if f["object"] == name.encode())
        few, even = 'the rule "check" (n < 10)', 'the rule "even" (n % 2 = 0)'
        assert causes == [
            (50, f'a record of "{name}" breaks {few}'.encode()),
            (51, f'a record of "{name}" breaks {few}, {even}'.encode()),
        ]
        # the answer of a table flow has all of its broken rows each time
        counts = read_rule_counts(driver.connection, driver.admin, f"{name}|{name}.1")
        assert counts.records == {"check": 2, "even": 3}


@pytest.mark.parametrize("small", [True, False])
def test_a_batch_that_runs_again_has_the_same_news(
    driver: Driver, tmp_path: Path, small: bool
) -> None:
    def news(batch: int, *rows: tuple[bytes, bytes, list[str] | None, bytes | None]) -> list[Any]:
        # a process that begins anew each time, as after a crash
        judged = JudgedAnswer(Checkpoints(driver.spark, str(tmp_path)), str(tmp_path / "flow"))
        given = [(key, value, 1, broken, before) for key, value, broken, before in rows]
        columns = "key binary, value binary, n long, broken array<string>, before binary"
        found = judged.news(driver.spark.createDataFrame(given, columns), batch, small=small)
        told = [(bytes(r.key), r.value and bytes(r.value), r.broken) for r in found.collect()]
        judged.release()
        return sorted(told)

    broken: list[Any] = [(b"a", b"1", ["check"], None), (b"b", b"2", ["check"], b"0")]
    first = [(b"a", b"1", ["check"]), (b"b", b"2", ["check"])]
    assert news(0, *broken, (b"c", b"3", None, b"3")) == first
    assert news(0, *broken, (b"c", b"3", None, b"3")) == first
    assert news(1, broken[0], (b"b", b"9", ["check"], None)) == [(b"b", b"9", ["check"])]
    # what was written may not be seen yet: then it is deleted again, but not told again
    assert news(2, (b"a", b"1", ["check"], b"0")) == [(b"a", None, None)]
    assert news(3, (b"a", b"7", None, None)) == [(b"a", b"7", None)]
    assert news(4, (b"a", b"1", ["check"], b"7")) == [(b"a", b"1", ["check"])]


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
