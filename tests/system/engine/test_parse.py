"""JSON parsed in the code that Spark generates: the same rows as by Spark's own function."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from mainstem.engine.attempt import attempt
from mainstem.engine.parse import STRICT, from_json

pytestmark = pytest.mark.spark

SCHEMA = (
    "a bigint, at timestamp, day date, d decimal(4,2), x double, t string,"
    " s struct<m:map<string,int>,l:array<boolean>>"
)
TEXTS = [
    '{"a": 1, "at": "2026-11-16T12:00:00.5+02:00", "d": 1.25, "x": "NaN", "t": "ä"}',
    '{"a": 1, "day": "2026-11-16", "at": "2026-11-16 12:00:00"}',
    '{"a": 1, "at": 5, "t": {"any": [1, null]}, "s": {"m": {"k": 1}, "l": [true, null]}}',
    '{"a": null, "b": "no column"} {"a": 2}',
    '{"a": "1"}',
    '{"a": 9223372036854775808}',
    '{"d": 123.456}',
    '{"s": {"l": [1]}}',
    '{"at": "yesterday"}',
    '{"a": 1, "a": 2}',
    '{"a": 1',
    "[]",
    '[{"a": 1}]',
    "null",
    "7",
    " ",
    "",
    None,
]


def test_it_gives_what_spark_itself_gives(spark: SparkSession) -> None:
    schema = StructType.fromDDL(SCHEMA)
    rows = spark.createDataFrame([(text,) for text in TEXTS], "text string").coalesce(1)
    text = F.col("text")
    found = rows.select(
        attempt(from_json(text, schema)).alias("made"),
        attempt(F.from_json(text, schema, STRICT)).alias("known"),
    ).collect()
    assert [str(row.made) for row in found] == [str(row.known) for row in found]
    assert sum(row.made is not None for row in found) == 5


def test_it_is_compiled_into_the_query(spark: SparkSession) -> None:
    rows = spark.range(2).select(F.concat(F.lit('{"a": '), "id", F.lit("}")).alias("text"))
    made = rows.select(attempt(from_json(F.col("text"), StructType.fromDDL(SCHEMA))).alias("row"))
    plan = made.filter("row.a > 0").select("row.a", "row.t")._jdf.queryExecution().executedPlan()
    steps = [line.strip("+-: ") for line in plan.toString().splitlines() if line.strip()]
    assert [step for step in steps if not step.startswith("*(1)")] == []
