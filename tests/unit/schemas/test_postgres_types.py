"""Spark's types as PostgreSQL's, and back."""

from __future__ import annotations

import pytest

from mainstem.errors import MainstemError
from mainstem.schemas.postgres_types import postgres_type, spark_type


@pytest.mark.parametrize(
    ("spark", "postgres"),
    [
        ("string", "text"),
        ("varchar(10)", "text"),
        ("boolean", "boolean"),
        ("tinyint", "smallint"),
        ("smallint", "smallint"),
        ("int", "integer"),
        ("bigint", "bigint"),
        ("float", "real"),
        ("double", "double precision"),
        ("decimal(10,2)", "numeric(10,2)"),
        ("date", "date"),
        ("timestamp", "timestamptz"),
        ("timestamp_ntz", "timestamp"),
        ("binary", "bytea"),
        ("array<struct<a:int>>", "jsonb"),
        ("struct<a:decimal(3,1)>", "jsonb"),
        ("map<string,int>", "jsonb"),
        ("variant", "jsonb"),
    ],
)
def test_postgres_type(spark: str, postgres: str) -> None:
    assert postgres_type(spark) == postgres


def test_unknown_type() -> None:
    with pytest.raises(MainstemError) as caught:
        postgres_type("interval", "wait")
    assert caught.value.code == "UNKNOWN_TYPE"
    assert caught.value.params["column"] == "wait"


@pytest.mark.parametrize(
    ("display", "spark"),
    [
        ("int8", "bigint"),
        ("numeric(5,2)", "decimal(5,2)"),
        ("text[]", "array<string>"),
        ("timestamptz", "timestamp"),
        ("interval", "string"),
    ],
)
def test_spark_type(display: str, spark: str) -> None:
    assert spark_type(display) == spark
