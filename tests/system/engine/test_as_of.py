"""AS OF: a table at a moment is what it was at that moment."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from mainstem.definitions.model import Select
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError
from mainstem.testing.driver import Driver, Event

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM clicks (page STRING, n INT);
CREATE TABLE people (id INT PRIMARY KEY, name STRING);
CREATE TABLE visits AS SELECT page, count(*) AS times, sum(n) AS total FROM clicks GROUP BY page
  HAVING sum(n) < 40;
CREATE TABLE named AS SELECT name, count(*) AS people FROM people GROUP BY name;
"""
TABLES = ("people", "visits", "named")


def _ask(driver: Driver, sql: str) -> tuple[list[Any], list[dict[str, Any]]]:
    select = parse_one(sql)
    assert isinstance(select, Select)
    chunks = list(driver.answer(select))
    names = [column["name"] for column in chunks[0]["columns"]]
    rows = [dict(zip(names, row, strict=True)) for c in chunks for row in c.get("rows", ())]
    return _sorted(rows), chunks[-1]["read"]


def _sorted(rows: Sequence[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def test_a_table_is_what_it_was(driver: Driver, seed: int) -> None:
    """By time and by offsets, computed and declared, with deletes; several tables at one moment."""
    print(f"MAINSTEM_SEED={seed}")
    chance = random.Random(seed)
    driver.apply(SQL)
    moments = []
    for _ in range(3):
        events = []
        for _ in range(12):
            events.append(
                Event("clicks", {"page": chance.choice("abc"), "n": chance.randint(1, 9)})
            )
            id = chance.randint(1, 4)
            gone = chance.random() < 0.3
            row = None if gone else {"id": id, "name": chance.choice("xy")}
            events.append(Event("people", row, key=json.dumps({"id": id})))
        driver.send(events)
        driver.run()
        ends = {
            name: driver.admin.end_offsets(driver.entry(name).definition.topic) for name in TABLES
        }
        rows = {name: _sorted(driver.rows(name)) for name in TABLES}
        now = time.time()
        moments.append((datetime.fromtimestamp(now, UTC).isoformat(), ends, rows))
        while time.time() - now < 0.005:  # the log's times are whole milliseconds
            pass
    assert len({json.dumps(rows) for _, _, rows in moments}) > 1
    for at, ends, rows in moments:
        for name in TABLES:
            offsets = json.dumps({str(p): o for p, o in ends[name].items()})
            by_time = chance.random() < 0.5
            moment = f"TIMESTAMP '{at}'" if by_time else f"OFFSETS '{offsets}'"
            found, [read] = _ask(driver, f"SELECT * FROM {name} AS OF {moment}")
            assert found == rows[name], (name, moment)
            assert read["warning"] is None
            assert read["records"] <= read["of"]
    at, _, rows = moments[1]
    both = "SELECT people.id, people.name, named.people FROM people JOIN named USING (name)"
    counts = {row["name"]: row["people"] for row in rows["named"]}
    expected = [{**row, "people": counts[row["name"]]} for row in rows["people"]]
    assert _ask(driver, f"{both} AS OF TIMESTAMP '{at}'")[0] == _sorted(expected)


def test_what_is_gone_is_said(driver: Driver) -> None:
    """Retention, a table begun anew, and moments that are none."""
    driver.apply(SQL)
    driver.send(
        Event("people", {"id": i % 3, "name": "x"}, key=json.dumps({"id": i % 3})) for i in range(9)
    )
    topic = driver.entry("people").definition.topic
    ask = "SELECT count(*) AS n FROM people AS OF TIMESTAMP now()"
    [[row], [read]] = _ask(driver, ask)
    assert (row, read["warning"]) == ({"n": 3}, None)
    assert _ask(driver, "SELECT * FROM people AS OF TIMESTAMP '2020-01-01'")[0] == []
    for text in ("'2999-01-01'", "'not a time'"):
        with pytest.raises(MainstemError) as raised:
            _ask(driver, f"SELECT * FROM people AS OF TIMESTAMP {text}")
        assert raised.value.code == "INVALID_MOMENT"
    for offsets in ({"99": 1}, {"0": 10_000}):
        with pytest.raises(MainstemError) as raised:
            _ask(driver, f"SELECT * FROM people AS OF OFFSETS '{json.dumps(offsets)}'")
        assert raised.value.code == "INVALID_MOMENT"
    before = datetime.fromtimestamp(time.time(), UTC).isoformat()
    driver.admin.truncate(topic)
    driver.send([Event("people", {"id": 7, "name": "y"}, key='{"id": 7}')])
    [[row], [read]] = _ask(driver, f"SELECT count(*) AS n FROM people AS OF TIMESTAMP '{before}'")
    assert row == {"n": 0}
    assert "begun anew" in read["warning"]
    driver.admin.alter_topic(topic, {"retention.ms": "3600000"})
    assert "retention" in _ask(driver, ask)[1][0]["warning"]
