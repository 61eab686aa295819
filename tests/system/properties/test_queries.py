"""Queries that nobody wrote: as streams in micro-batches, as a batch, and asked of DuckDB.

MAINSTEM_QUERIES says how many there are; MAINSTEM_SEED repeats a run.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from mainstem.log.admin import Admin
from mainstem.testing.driver import Driver, Event

QUERIES = int(os.environ.get("MAINSTEM_QUERIES") or 11)
TOGETHER = 22
EVENTS = 60
COLUMNS = "g INT, n INT, d DECIMAL(10,2), b BOOLEAN, t STRING, ts TIMESTAMP"
SCHEMA = f"""
CREATE STREAM s (id INT, {COLUMNS}) WITH (key = 'id');
CREATE STREAM r (id INT, {COLUMNS}) WITH (key = 'id');
CREATE TABLE p (id INT PRIMARY KEY, {COLUMNS});
CREATE TABLE q (id INT PRIMARY KEY, {COLUMNS});
CREATE TABLE f (id INT PRIMARY KEY, {COLUMNS});
"""


@pytest.fixture
def theirs() -> Iterator[duckdb.DuckDBPyConnection]:
    database = duckdb.connect(config={"threads": 2})
    for name in "srpqf":
        database.execute(f"CREATE TABLE {name} (id INT, {COLUMNS})")
    yield database
    database.close()


@pytest.mark.parametrize("first", range(0, QUERIES, TOGETHER))
def test_queries(first, chance, spark, connection, tmp_path, theirs, seed) -> None:
    print(f"MAINSTEM_SEED={seed}")
    admin = Admin(connection)
    driver = Driver(spark, connection, admin, tmp_path)
    driver.pieces = random.Random(f"pieces {seed} {first}")
    questions = [chance.question(n) for n in range(first, min(first + TOGETHER, QUERIES))]
    try:
        driver.apply("\n".join([SCHEMA, *(question.ours for question in questions)]))
        # records meet the table f as it is: it does not change any more when they come
        _send(driver, theirs, [chance.change("f", n) for n in range(EVENTS // 2)])
        for start in (0, EVENTS // 2):
            numbers = range(start, start + EVENTS // 2)
            _send(driver, theirs, [chance.change(to, n) for n in numbers for to in "srpq"])
            driver.run()
        wrong = {q.name: found for q in questions if (found := _differences(q, driver, theirs))}
        some = [q.name for q in questions if theirs.execute(q.theirs).fetchone()]
    finally:
        driver.close()
        admin.close()
    assert not wrong, "\n".join(line for found in wrong.values() for line in found)
    assert len(some) > len(questions) // 2, "most answers are empty: they prove little"


def _differences(question: Any, driver: Driver, theirs: duckdb.DuckDBPyConnection) -> list[str]:
    """Words about what is not equal; none when all is."""
    written, asked = Counter(driver.pairs(question.name)), Counter(driver.batch(question.name))
    answer = theirs.execute(question.theirs)
    names = [column[0] for column in answer.description]
    expected = Counter(_row(zip(names, row, strict=True)) for row in answer.fetchall())
    ours = Counter(_row(row.items()) for row in driver.rows(question.name))
    pairs = {
        "stream, not batch": written - asked,
        "batch, not stream": asked - written,
        "stream, not DuckDB": ours - expected,
        "DuckDB, not stream": expected - ours,
    }
    found = [f"{what}: {sorted(map(str, rows))[:3]}" for what, rows in pairs.items() if rows]
    return [question.ours, *found] if found else []


def _send(driver: Driver, theirs: duckdb.DuckDBPyConnection, changes: Iterable[Any]) -> None:
    """The same changes for both."""
    events = []
    for change in changes:
        if change.to in "pqf":
            theirs.execute(f"DELETE FROM {change.to} WHERE id = ?", [change.id])
        if change.row is not None:
            marks = ", ".join("?" * len(change.row))
            theirs.execute(f"INSERT INTO {change.to} VALUES ({marks})", [*change.row.values()])
        if change.row is None:
            # the same bytes as the key of a row, else it may go to another partition
            events.append(Event(change.to, key=json.dumps({"id": change.id})))
        else:
            row = {name: _as_json(value) for name, value in change.row.items()}
            events.append(Event(change.to, row=row))
    driver.send(events)


def _as_json(value: Any) -> Any:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if isinstance(value, datetime) else value


def _row(items: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, _plain(value)) for name, value in items))


def _plain(value: Any) -> Any:
    match value:
        case bool():
            return value
        case datetime():
            return _as_json(value)
        case int() | float():
            return Decimal(repr(value)).normalize() + 0
        case Decimal():
            return value.normalize() + 0
        case _:
            return value
