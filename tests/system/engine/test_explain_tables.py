"""EXPLAIN says how a flow over tables is kept up to date, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from mainstem.config import SparkSettings
from mainstem.definitions.model import Definition
from mainstem.definitions.project import load_definitions
from mainstem.engine.answers import Answers
from mainstem.log.late import Ledger
from mainstem.testing.driver import Driver

pytestmark = pytest.mark.spark

TABLES = """
CREATE TABLE orders (id INT PRIMARY KEY, customer INT, amount INT);
CREATE TABLE customers (id INT PRIMARY KEY, region STRING);
"""

# kind, words that one of the reasons has, text
TOLD = [
    (
        "table over tables",
        "incremental by customer:",
        "CREATE TABLE t AS SELECT customer, sum(amount) AS s FROM orders GROUP BY customer",
    ),
    (
        "table over tables",
        "the whole query is asked again, as it holds LIMIT",
        "CREATE TABLE t AS SELECT id FROM orders ORDER BY amount LIMIT 3",
    ),
    ("changes of a table", "before and is after", "CREATE STREAM t AS SELECT id FROM orders"),
]


def test_explain_says_how_it_is_kept_up_to_date(driver: Driver, tmp_path: Path) -> None:
    """Incremental by which columns, or whole and why."""
    ledger = Ledger(driver.connection, driver.admin)
    parts = (driver.spark, driver.connection, SparkSettings(), driver.admin, ledger)
    answers = Answers(*parts, driver.formats, tmp_path)
    dump = TypeAdapter(Definition).dump_python
    for kind, words, sql in TOLD:
        *sources, made = load_definitions([("case.sql", f"{TABLES}{sql};")])
        assert made.query is not None
        inputs = [dump(d, mode="json") for d in sources if d.name in made.query.inputs]
        payload = {"definition": dump(made, mode="json"), "inputs": inputs}
        [told] = answers("explain", payload)
        assert told["kind"] == kind
        assert any(words in reason for reason in told["reasons"]), told["reasons"]
