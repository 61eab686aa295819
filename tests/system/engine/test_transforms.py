"""Transforms on Spark: what becomes of values, and of rows on their way to a target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter
from pyspark.sql import SparkSession

from mainstem.definitions.model import Create, Definition
from mainstem.definitions.parse import parse_one
from mainstem.definitions.transform_clause import parse_transforms
from mainstem.definitions.transforms import Transform
from mainstem.engine.transform_trial import tried_transforms
from mainstem.errors import MainstemError
from mainstem.testing.driver import Driver

pytestmark = pytest.mark.spark

CASES = yaml.safe_load((Path(__file__).parents[1] / "transforms.yaml").read_text())


def tried(spark: SparkSession, text: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    made = parse_one(f"CREATE STREAM o ({CASES['columns']})")
    assert isinstance(made, Create)
    found = tried_transforms(
        spark,
        {
            "definition": TypeAdapter(Definition).dump_python(made.definition, mode="json"),
            "transforms": TypeAdapter(tuple[Transform, ...]).dump_python(
                parse_transforms(text), mode="json"
            ),
            "records": [json.dumps(row) for row in rows],
        },
    )
    for record in found["records"]:
        for side in ("before", "after"):
            record[side] = record[side] and json.loads(record[side])
    return found


def test_each_case(driver: Driver) -> None:
    wrong = []
    for case in CASES["cases"]:
        [found] = tried(driver.spark, case["do"], [case["row"]])["records"]
        result = case.get("result", "passed")
        wanted = None
        if result == "passed":
            changed = {**found["before"], **case["out"]}
            wanted = {name: value for name, value in changed.items() if value != "gone"}
        if (found["result"], found["after"]) != (result, wanted):
            wrong.append((case["do"], found, wanted))
    assert not wrong


@pytest.mark.parametrize(
    ("transforms", "code", "column"),
    [
        ("drop(n), filter(n > 0)", "UNKNOWN_COLUMN", 17),
        ("filter(total)", "INVALID_TRANSFORM", 8),
        ("rename(n, m),\n filter(upper(tags) = 'A')", "TYPE_MISMATCH", 9),
        ("timestamp(at, 'yyyy-bb')", "INVALID_TRANSFORM", 1),
        ("timestamp(stamp, 'EEEE')", "INVALID_TRANSFORM", 1),
        ("drop(x)", "UNKNOWN_COLUMN", 6),
    ],
)
def test_what_spark_cannot_do_is_told_at_its_place(
    driver: Driver, transforms: str, code: str, column: int
) -> None:
    with pytest.raises(MainstemError) as caught:
        tried(driver.spark, transforms, [])
    assert caught.value.code == code, caught.value
    assert caught.value.location is not None
    assert caught.value.location.column == column
