"""EXPLAIN says when a flow over streams writes, and what it keeps for how long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from mainstem.config import SparkSettings
from mainstem.definitions.model import Definition
from mainstem.definitions.project import load_definitions
from mainstem.engine.answers import Answers
from mainstem.log.late import Ledger
from mainstem.testing.driver import Driver

pytestmark = pytest.mark.spark

TWO = """
CREATE STREAM a (id INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 minute');
CREATE STREAM b (id INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 minute');
"""
NEAR = "a.id = b.id AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR"
WINDOW = "window.start, count(*) AS n FROM a GROUP BY window(at, '1 hour')"

# kind, words that one of the reasons has, text
TOLD = [
    ("stateless", "", "CREATE STREAM t AS SELECT id FROM a UNION ALL SELECT id FROM b"),
    (
        "stateful",
        "until the times' bounds",
        f"CREATE STREAM t AS SELECT a.id FROM a JOIN b ON {NEAR}",
    ),
    (
        "stateful",
        "until the times' bounds",
        f"CREATE STREAM t AS SELECT a.id FROM a, b WHERE {NEAR}",
    ),
    ("stateful", "WARNING", "CREATE STREAM t AS SELECT a.id FROM a JOIN b ON a.id = b.id"),
    ("stateful", "kept for ever", "CREATE TABLE t AS SELECT id, count(*) AS n FROM a GROUP BY id"),
    ("stateful", "until the watermark", f"CREATE TABLE t AS SELECT {WINDOW}"),
    ("stateful", "APPLY LATE t", f"CREATE TABLE t AS SELECT {WINDOW}"),
    (
        "stateful",
        "counted, and not kept",
        "CREATE TABLE t AS SELECT count(*) AS n, session_window.start FROM a"
        " GROUP BY session_window(at, '1 hour') EMIT FINAL",
    ),
    (
        "stateful",
        "up to 9 records of each key are kept, for ever",
        "CREATE TABLE t AS SELECT id, count_window.end, count(*) AS n FROM a"
        " GROUP BY id, count_window(10, 1)",
    ),
    ("stateful", "is deleted", f"CREATE TABLE t AS SELECT {WINDOW} HAVING count(*) > 1"),
    ("stateful", "written once", f"CREATE TABLE t AS SELECT {WINDOW} EMIT FINAL"),
    ("stateful", "cannot run in real time: EMIT", f"CREATE TABLE t AS SELECT {WINDOW} EMIT FINAL"),
    (
        "stateful",
        "cannot run in real time",
        f"CREATE STREAM t AS SELECT a.id FROM a JOIN b ON {NEAR}",
    ),
    ("stateful", "WARNING", "CREATE STREAM t AS SELECT DISTINCT id FROM a"),
    ("stateful", "until the watermark", "CREATE STREAM t AS SELECT DISTINCT id, at FROM a"),
    ("stateful", "WARNING", "CREATE STREAM t WITH (deduplicate = 'id') AS SELECT * FROM a"),
    (
        "stateful",
        "for 1 hour",
        "CREATE STREAM t WITH (deduplicate = 'id', within = '1 hour') AS SELECT * FROM a",
    ),
]


def test_explain_says_what_is_kept(driver: Driver, tmp_path: Path) -> None:
    dump = TypeAdapter(Definition).dump_python
    ledger = Ledger(driver.connection, driver.admin)
    parts = (driver.spark, driver.connection, SparkSettings(), driver.admin, ledger)
    answers = Answers(*parts, driver.formats, tmp_path)
    driver.apply(TWO)
    inputs: list[Any] = [dump(driver.entry(name).definition, mode="json") for name in ("a", "b")]
    for kind, words, text in TOLD:
        [created] = load_definitions([("t.sql", TWO + text + ";")])[2:]
        named = [i for i in inputs if i["name"] in created.query.inputs]
        payload = {"definition": dump(created, mode="json"), "inputs": named}
        [told] = answers("explain", payload)
        assert told["kind"] == kind, text
        assert any(words in reason for reason in told["reasons"]), (text, told["reasons"])
        if words != "WARNING":
            assert not any("WARNING" in reason for reason in told["reasons"]), text
