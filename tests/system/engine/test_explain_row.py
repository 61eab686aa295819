"""EXPLAIN ROW: the events behind a row, over several hops, and nothing but them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mainstem.definitions.model import ExplainRow
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError
from mainstem.testing.cases import Case, load_cases
from mainstem.testing.driver import Driver, Event
from mainstem.testing.explained import can_be_held, hold

pytestmark = pytest.mark.spark

PIPELINE = """
CREATE STREAM orders (id INT, customer INT, amount INT) WITH (format = 'avro');
CREATE TABLE customers (id INT PRIMARY KEY, city STRING);
CREATE STREAM paid AS SELECT id, customer, amount FROM orders WHERE amount > 0;
CREATE STREAM placed AS
  SELECT p.id, p.amount, c.city FROM paid p JOIN customers c ON p.customer = c.id;
CREATE TABLE cities AS SELECT city, count(*) AS n, sum(amount) AS total FROM placed GROUP BY city;
CREATE TABLE largest AS SELECT city, max(amount) AS amount FROM placed GROUP BY city;
CREATE TABLE best AS SELECT max(total) AS total FROM cities;
"""

CASES = Path(__file__).parents[2] / "cases"
SOME = {
    "aggregates: first, last, and the row with the largest value",
    "table_flows: a full join",
    "table_flows: the best two of each group",
}
"""Groups, a join, and a query that cannot be rewritten; `make soak` holds all of them."""


def _explain(driver: Driver, sql: str) -> dict[str, Any]:
    statement = parse_one(sql)
    assert isinstance(statement, ExplainRow)
    return driver.explain_row(statement.query)


def _leaves(node: Mapping[str, Any]) -> list[tuple[str, Any]]:
    if not node["inputs"]:
        return [(node["object"], node["payload"]["id"])]
    return sorted({leaf for child in node["inputs"] for leaf in _leaves(child)})


def test_events_over_several_hops(driver: Driver) -> None:
    """Filters, a table that was joined, groups, a table over tables; schema ids and times."""
    driver.apply(PIPELINE)
    driver.send(
        Event("customers", {"id": i, "city": "rome" if i < 3 else "oslo"}) for i in (1, 2, 3)
    )
    amounts = [(10, 1, 5), (11, 1, -1), (12, 2, 7), (13, 3, 9), (14, 1, 5)]
    driver.send(
        Event("orders", {"id": i, "customer": c, "amount": a}, timestamp=1_767_225_600_000)
        for i, c, a in amounts
    )
    driver.run()
    rome = _explain(driver, "EXPLAIN ROW cities WHERE city = 'rome'")
    assert rome["exact"], rome
    people = [("customers", 1), ("customers", 2)]
    assert _leaves(rome["tree"]) == [*people, ("orders", 10), ("orders", 12), ("orders", 14)]
    assert [node["object"] for node in rome["tree"]["inputs"]] == ["placed"] * 3
    hop = rome["tree"]["inputs"][0]["inputs"]
    assert {node["object"] for node in hop} == {"paid", "customers"}
    [order] = next(node for node in hop if node["object"] == "paid")["inputs"]
    assert order["schema_id"] is not None
    assert order["time"] == "2026-01-01T00:00:00.000Z"
    assert order["topic"] == driver.entry("orders").definition.topic
    # one event decides a maximum
    most = _explain(driver, "EXPLAIN ROW largest WHERE city = 'rome'")
    assert most["exact"]
    assert _leaves(most["tree"]) == [("customers", 2), ("orders", 12)]
    best = _explain(driver, "EXPLAIN ROW best WHERE true")
    assert best["exact"]
    assert _leaves(best["tree"]) == _leaves(rome["tree"])
    for condition in ("city = 'nowhere'", "true"):
        with pytest.raises(MainstemError) as raised:
            _explain(driver, f"EXPLAIN ROW cities WHERE {condition}")
        assert raised.value.code == "ROW_NOT_FOUND"
    # the table has changed since: what was joined is found as it was then
    driver.send([Event("customers", {"id": 3, "city": "bergen"})])
    oslo = _explain(driver, "EXPLAIN ROW cities WHERE city = 'oslo'")
    assert _leaves(oslo["tree"]) == [("customers", 3), ("orders", 13)]
    assert oslo["exact"], oslo


@pytest.mark.parametrize(
    "case", [case for case in load_cases(CASES) if str(case) in SOME and can_be_held(case)], ids=str
)
def test_a_row_comes_of_the_named_events_alone(case: Case, driver: Driver, seed: int) -> None:
    print(f"MAINSTEM_SEED={seed}")
    held = hold(case, driver, random.Random(f"{seed} {case}"))
    assert held
    assert not any(one.notes for one in held), held
