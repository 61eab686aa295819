"""Rules of tables in their views: judged as flows judge them, and what becomes of records."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from mainstem.catalog.entry import Entry
from mainstem.definitions.parse import parse_one
from mainstem.log.consumer import read_range
from mainstem.views.batch import ViewWriter
from mainstem.views.store import ViewStore, connect
from mainstem.vocabulary import QUARANTINE_TOPIC, Record

Topic = Callable[..., str]
CASES = yaml.safe_load((Path(__file__).parents[1] / "table_rules.yaml").read_text())


def declared(sql: str, topic: str) -> Entry:
    definition = parse_one(sql).definition  # type: ignore[union-attr]
    return Entry(replace(definition, topic=topic), fingerprint="f")


def test_postgres_judges_as_spark_does(lab: Any) -> None:
    rules = ", ".join(f"CONSTRAINT `{n}` CHECK ({c})" for n, c in CASES["rules"].items())
    entry = declared(f"CREATE TABLE judged ({CASES['columns']}, {rules})", "judged")
    records = [
        Record("judged", 0, n, None, json.dumps(case["row"]).encode(), 0, ())
        for n, case in enumerate(CASES["rows"])
    ]
    with connect(lab.postgres.url) as connection:
        store = ViewStore(connection, None)
        store.prepare()
        store.build(entry, {0: 0})
        with connection.transaction():
            rejected = ViewWriter(entry.definition, lab.codec).write(connection, records)
        store.drop("judged")
    found = {r.record.offset: set(r.rules) for r in rejected}
    assert found == {n: set(case["breaks"]) for n, case in enumerate(CASES["rows"])}


def test_what_breaks_a_rule_changes_no_row(lab: Any, topic: Topic) -> None:
    sql = """CREATE TABLE stock (id STRING PRIMARY KEY, n INT CHECK (n >= 0), at STRING NOT NULL,
        EXPECT small (n < 100) ON VIOLATION DROP ROW)"""
    entry = declared(sql, topic(1))
    name = entry.definition.topic
    views = lab.serve(entry)
    lab.send(
        name,
        (b"a", {"n": 1, "at": "x"}),
        (b"a", {"n": -1, "at": "x"}),  # kept: the row stays as it was
        (b"b", {"n": 5, "at": "x"}),
        (b"b", {"n": 500, "at": "x"}),  # dropped
        (b"c", {"n": -5}),  # kept, for two reasons
        (b"d", {"n": 500}),  # kept: not all that it breaks say drop
        (b"e", {"n": "many"}),  # no row at all, so all others go the slow way
        (b"b", None),
        (b"f", {"at": "x"}),
    )
    lab.settle(views, entry)
    assert lab.postgres.rows("SELECT * FROM stock ORDER BY id") == [("a", 1, "x"), ("f", None, "x")]
    assert views.broken("stock") == {"n_check": 2, "at_not_null": 2, "small": 2}
    lab.until(lambda: len(kept(lab, name)) == 4)
    facts = kept(lab, name)
    assert sorted(f["stage"] for f in facts) == ["rule", "rule", "rule", "view"]
    broken = [f["cause"] for f in facts if f["stage"] == "rule"]
    assert 'a record of "stock" breaks the rule "n_check" (n >= 0)' in broken
    assert {f["code"] for f in facts if f["stage"] == "rule"} == {"RULE_BROKEN"}

    # another rule: all is read again by it, and nothing is kept twice
    changed = declared(sql.replace("n >= 0", "n >= -1"), name)
    views.reconcile(lab.catalog(changed))
    rows = [("a", -1, "x"), ("f", None, "x")]
    lab.until(lambda: lab.postgres.rows("SELECT * FROM stock ORDER BY id") == rows)
    lab.settle(views, changed)
    assert views.broken("stock") == {"n_check": 1, "at_not_null": 2, "small": 2}
    assert len(kept(lab, name)) == 4


def test_a_view_stops_before_a_record_until_the_rule_changes(lab: Any, topic: Topic) -> None:
    sql = "CREATE TABLE halted (id STRING PRIMARY KEY, n INT CHECK (n > 0) ON VIOLATION fail)"
    entry = declared(sql, topic(1))
    views = lab.serve(entry)
    lab.send(entry.definition.topic, (b"a", {"n": 1}))
    lab.settle(views, entry)
    lab.send(entry.definition.topic, (b"b", {"n": 0}), (b"c", {"n": 2}))
    lab.until(lambda: "halted" in views.problems())
    problem = views.problems()["halted"]
    assert problem.code == "RULE_STOPS_FLOW"
    assert f"{entry.definition.topic}/0/1" in problem.message
    assert lab.postgres.rows("SELECT id FROM halted") == [("a",)]

    changed = declared(sql.replace("fail", "drop"), entry.definition.topic)
    views.reconcile(lab.catalog(changed))
    lab.settle(views, changed)
    assert lab.postgres.rows("SELECT id FROM halted ORDER BY id") == [("a",), ("c",)]
    assert views.broken("halted") == {"n_check": 1}


def kept(lab: Any, topic: str) -> list[dict[str, str]]:
    """What the headers of a topic's records in the quarantine say."""
    start = lab.admin.begin_offsets(QUARANTINE_TOPIC)
    end = lab.admin.end_offsets(QUARANTINE_TOPIC)
    found = []
    for records in read_range(lab.kafka, QUARANTINE_TOPIC, start, end):
        for record in records:
            facts = {
                name: (value or b"").decode(errors="replace") for name, value in record.headers
            }
            if facts["topic"] == topic:
                found.append(facts)
    return found
