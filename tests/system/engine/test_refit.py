"""Records out of quarantine are mended by Spark, and checked by the decoder of the flows."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from pydantic import TypeAdapter
from pyspark.sql import SparkSession

from mainstem.definitions.fix import read_fix
from mainstem.definitions.model import Create, Definition, Query
from mainstem.definitions.parse import parse_one
from mainstem.engine.formats import Formats
from mainstem.engine.refit import refit
from mainstem.errors import MainstemError
from mainstem.testing.registry import MemoryRegistry

pytestmark = pytest.mark.spark

VALUES = [b"not json", b'{"id": "7"}', b'{"id": 8}', b"\xff\xfe", b"", b'{"id": 1}{"id": 2}', None]


def asked(sql: str | None = None, *, checked: bool = True) -> dict[str, Any]:
    statement = parse_one("CREATE STREAM s (id BIGINT)")
    assert isinstance(statement, Create)
    definition = TypeAdapter(Definition).dump_python(statement.definition, mode="json")
    query = None if sql is None else TypeAdapter(Query).dump_python(read_fix(sql), mode="json")
    return {
        "definition": definition if checked else None,
        "query": query,
        "records": [
            {
                "id": 10 + n,
                "key": encoded(b"k%d" % n),
                "value": encoded(value),
                "cause": f"cause {n}",
                "topic": "s",
                "partition": 0,
                "offset": n,
                "timestamp": 1_700_000_000_000,
            }
            for n, value in enumerate(VALUES)
        ],
    }


def encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def answered(spark: SparkSession, **request: Any) -> dict[int, Any]:
    found = {}
    for record in refit(spark, Formats(MemoryRegistry()), asked(**request))["records"]:
        value, key = record["value"], record["key"]
        found[record["id"]] = (
            None if key is None else base64.b64decode(key),
            None if value is None else base64.b64decode(value),
            record["problem"],
        )
    return found


def test_records_are_told_apart_as_flows_do_it(spark: SparkSession) -> None:
    found = answered(spark)
    assert [found[10 + n][1] for n in range(len(VALUES))] == VALUES
    assert [id for id, (_, _, problem) in found.items() if problem is None] == [12, 16]
    assert '"id"' in found[11][2]


def test_a_query_mends_values_and_is_checked_again(spark: SparkSession) -> None:
    found = answered(spark, sql="SELECT regexp_replace(value, '\"(\\\\d+)\"', '$1') AS value")
    assert found[11] == (b"k1", b'{"id": 7}', None)
    assert found[10][2] is not None
    assert found[13][2] is not None


def test_a_query_sees_where_a_record_came_from_and_leaves_some_out(spark: SparkSession) -> None:
    sql = (
        "SELECT concat_ws('/', key, _topic, _partition, _offset, cause, year(_timestamp)) AS key,"
        " to_json(named_struct('id', _offset)) AS VALUE FROM quarantine WHERE _offset < 2"
    )
    assert answered(spark, sql=sql) == {
        10: (b"k0/s/0/0/cause 0/2023", b'{"id":0}', None),
        11: (b"k1/s/0/1/cause 1/2023", b'{"id":1}', None),
    }


def test_no_value_is_a_problem_unless_there_was_none(spark: SparkSession) -> None:
    found = answered(spark, sql="SELECT CAST(NULL AS STRING) AS value", checked=False)
    assert "NULL" in found[10][2]
    assert found[16][2] is None


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT nothing AS value FROM quarantine", "UNKNOWN_COLUMN"),
        ("SELECT key FROM quarantine", "INVALID_QUERY"),
        ("SELECT * FROM quarantine", "INVALID_QUERY"),
        ("SELECT explode(array('a', 'b')) AS value FROM quarantine", "INVALID_QUERY"),
        ("SELECT CAST(value AS INT) AS value FROM quarantine", "TYPE_MISMATCH"),
    ],
)
def test_queries_that_do_not_work(spark: SparkSession, sql: str, code: str) -> None:
    with pytest.raises(MainstemError) as caught:
        refit(spark, Formats(MemoryRegistry()), asked(sql))
    assert caught.value.code == code
