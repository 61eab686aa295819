"""Flows over tables as if these were large: in files, narrowed to the rows that changes touch.

Golden cases have few rows, which the driver holds itself. Some of them are answered once more here,
with nothing taken for small, or only single rows and a few changes at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mainstem.engine import tables
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.producer import Producer
from mainstem.testing.cases import load_cases, run_case
from mainstem.testing.driver import Driver, Event

CASES = {str(case): case for case in load_cases(Path(__file__).parents[2] / "cases")}


@pytest.fixture
def large(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    connection: Connection,
    producer: Producer,
    tmp_path: Path,
) -> Iterator[Driver]:
    """A pipeline whose tables are taken for large ones unless they have as many rows at most."""
    admin, most = Admin(connection), request.param
    driver = Driver(spark, connection, admin, tmp_path, producer=producer, most_here=most)
    yield driver
    driver.close()
    admin.close()


@pytest.mark.parametrize(
    ("name", "large"),
    [
        ("table_flows: a filter follows updates and deletes", 1),
        ("table_flows: a join of two tables on a foreign key", 1),
        ("table_flows: the best two of each group", 0),
        ("enrich: several tables in a chain, on several columns", 0),
        ("table_changes: inserts, updates and deletes, also several in one batch", 0),
    ],
    indirect=["large"],
)
def test_case(name: str, large: Driver, seed: int) -> None:
    run_case(CASES[name], large, random.Random(f"{seed} {name}"))


def test_a_small_table_that_changes_often_stays_small(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_LEAST_TO_MERGE_HERE", 1)
    driver.apply(
        """
        CREATE TABLE people (id INT PRIMARY KEY, team STRING);
        CREATE TABLE teams AS SELECT team, count(*) AS n FROM people GROUP BY team;
        """
    )
    known = driver._machinery.tables
    people = driver.entry("people").definition
    for last in range(1, 6):
        driver.send(Event("people", {"id": n, "team": f"t{(n + last) % 2}"}) for n in range(last))
        driver.run()
        for thread in list(known._merging.values()):
            thread.join()
        assert known.few(people, known.ends(people))
    assert known.rows_about(people) > 0, "there was no new base"
    found = sorted(driver.rows("teams"), key=lambda row: row["team"])
    assert found == [{"team": "t0", "n": 2}, {"team": "t1", "n": 3}]
