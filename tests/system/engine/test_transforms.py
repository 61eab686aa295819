"""Transforms on Spark: what becomes of values, and of rows on their way to a target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter
from pyspark.sql import SparkSession

from mainstem.definitions.cursor import Cursor
from mainstem.definitions.lexer import Source
from mainstem.definitions.model import Create, Definition
from mainstem.definitions.parse import parse_one
from mainstem.definitions.transform_clause import read_calls
from mainstem.definitions.transforms import Transform
from mainstem.engine.transform_trial import tried_transforms
from mainstem.testing.driver import Driver

pytestmark = pytest.mark.spark

CASES = yaml.safe_load((Path(__file__).parents[1] / "transforms.yaml").read_text())


def transforms_of(text: str) -> tuple[Transform, ...]:
    source = Source(text)
    return read_calls(Cursor(source, source.statements()[0]))


def tried(spark: SparkSession, text: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    made = parse_one(f"CREATE STREAM o ({CASES['columns']})")
    assert isinstance(made, Create)
    return tried_transforms(
        spark,
        {
            "definition": TypeAdapter(Definition).dump_python(made.definition, mode="json"),
            "transforms": TypeAdapter(tuple[Transform, ...]).dump_python(
                transforms_of(text), mode="json"
            ),
            "records": [json.dumps(row) for row in rows],
        },
    )


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
