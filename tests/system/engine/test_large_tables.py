"""Flows over tables as if these were large: in files, narrowed to the rows that changes touch.

Golden cases have few rows, which the driver holds itself. Some of them are answered once more here,
with nothing taken for small.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.producer import Producer
from mainstem.testing.cases import load_cases, run_case
from mainstem.testing.driver import Driver

CASES = {str(case): case for case in load_cases(Path(__file__).parents[2] / "cases")}


@pytest.fixture
def large(
    spark: SparkSession, connection: Connection, producer: Producer, tmp_path: Path
) -> Iterator[Driver]:
    """A pipeline whose tables are all taken for large ones."""
    admin = Admin(connection)
    driver = Driver(spark, connection, admin, tmp_path, producer=producer, most_here=0)
    yield driver
    driver.close()
    admin.close()


@pytest.mark.parametrize(
    "name",
    [
        "table_flows: a filter follows updates and deletes",
        "table_flows: a join of two tables on a foreign key",
        "table_flows: the best two of each group",
        "table_flows: EXCEPT of two tables",
        "enrich: several tables in a chain, on several columns",
        "table_changes: inserts, updates and deletes, also several in one batch",
    ],
)
def test_case(name: str, large: Driver, seed: int) -> None:
    run_case(CASES[name], large, random.Random(f"{seed} {name}"))
