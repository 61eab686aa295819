"""The queries of the Nexmark benchmark against DuckDB's answers over the same events, row by row.

All flows run over one input, cut into a few micro-batches; MAINSTEM_SEED repeats a run.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import yaml

from mainstem.log.admin import Admin
from mainstem.testing.driver import Driver, Event

BOOK = yaml.safe_load(Path(__file__).with_name("queries.yaml").read_text("utf-8"))
QUERIES = BOOK["queries"]
FUNCTIONS = """
from mainstem import function

@function
def count_char(text: str, char: str) -> int:
    return text.count(char)
"""
SIDE_INPUT = [{"key": key, "value": f"value {key}"} for key in range(0, 100, 3)]


@pytest.fixture(scope="module")
def ours(nexmark, spark, connection, seed, tmp_path_factory) -> Iterator[Driver]:
    """All flows have run over all events."""
    print(f"MAINSTEM_SEED={seed}")
    admin = Admin(connection)
    driver = Driver(spark, connection, admin, tmp_path_factory.mktemp("nexmark"))
    driver.pieces = random.Random(f"pieces {seed}")
    texts = [BOOK["shared"], *(query["sql"] for query in QUERIES)]
    driver.apply("\n".join(texts), functions=FUNCTIONS)
    driver.send(Event("side_input", row=row) for row in SIDE_INPUT)
    driver.send(
        Event(name, row=_as_json(row), timestamp=int(row["date_time"].timestamp() * 1000))
        for name, row in nexmark.sent()
    )
    driver.run()
    yield driver
    driver.close()
    admin.close()


@pytest.fixture(scope="module")
def theirs(nexmark) -> Iterator[duckdb.DuckDBPyConnection]:
    """The events in DuckDB."""
    database = duckdb.connect(config={"threads": 2})
    database.execute("SET TimeZone = 'UTC'")
    tables = {
        "person": nexmark.person,
        "auction": nexmark.auction,
        "bid": nexmark.bid,
        "side_input": SIDE_INPUT,
    }
    for name, rows in tables.items():
        database.register("rows", pa.Table.from_pylist([_naive(row) for row in rows]))
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
        database.unregister("rows")
    yield database
    database.close()


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query["name"])
def test_query(query: dict[str, str], ours: Driver, theirs: duckdb.DuckDBPyConnection) -> None:
    answer = theirs.execute(query["duckdb"])
    names = [column[0] for column in answer.description]
    expected = Counter(_row(zip(names, row, strict=True)) for row in answer.fetchall())
    found = Counter(_row(row.items()) for row in ours.rows(query["name"]))
    assert expected
    assert {"only ours": _some(found - expected), "only theirs": _some(expected - found)} == {
        "only ours": [],
        "only theirs": [],
    }


def test_all_queries_are_there() -> None:
    assert [query["name"] for query in QUERIES] == [f"q{n}" for n in range(23)]


def _some(rows: Counter[Any]) -> list[Any]:
    return sorted(rows.elements(), key=str)[:5]


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    return {k: _text(v) if isinstance(v, datetime) else v for k, v in row.items()}


def _naive(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v.replace(tzinfo=None) if isinstance(v, datetime) else v for k, v in row.items()}


def _row(items: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, _plain(value)) for name, value in items))


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return _text(value)
        case date():
            return value.isoformat()
        case int() | float():
            return Decimal(repr(value)).normalize()
        case Decimal():
            return value.normalize()
        case _:
            return value


def _text(at: datetime) -> str:
    """A time stamp as the log holds it."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
