"""The last records of a topic against a schema: read by Spark, each by what it was written with."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from mainstem.definitions.model import Create, Definition
from mainstem.definitions.parse import parse_one
from mainstem.engine import trial
from mainstem.errors import MainstemError
from mainstem.testing.driver import Driver, Event

pytestmark = pytest.mark.spark

OLD = json.dumps({"type": "record", "name": "old", "fields": [{"name": "id", "type": "long"}]})
NEW = {
    "type": "record",
    "name": "new",
    "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string", "default": ""}],
}


def asked(driver: Driver, last: int) -> list[dict[str, Any]]:
    schema = {"type": "AVRO", "text": json.dumps(NEW), "references": []}
    payload = {"topic": driver.entry("s").definition.topic, "last": last, "schema": schema}
    parts = (driver.spark, driver.connection, driver.admin, driver.formats)
    return list(trial.tried(*parts, payload))


def test_the_last_records_are_judged(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "PIECE_RECORDS", 4)
    driver.apply("CREATE TABLE s (id BIGINT PRIMARY KEY) WITH (format = 'avro', partitions = 1)")
    assert asked(driver, 5)[-1]["found"]["passed"] == 0
    driver.send([Event("s", raw=b"\1", key="long ago")])
    driver.send([Event("s", {"id": number}, schema=OLD) for number in (1, 2**40, 2, 2**41)])
    driver.send(
        [
            Event("s", raw=b'{"id": 3, "name": "three"}', key="3"),
            Event("s", raw=b'{"name": 4}', key="4"),
            Event("s", raw=b"\0\0\0\0\x63x", key="5"),
            Event("s", key="6"),
        ]
    )
    *progress, last = asked(driver, 8)
    assert [(one["read"], one["of"]) for one in progress] == [(0, 8), (4, 8), (8, 8)]
    found = last["found"]
    assert (found["passed"], found["failed"], found["deletions"]) == (3, 4, 1)
    reasons = {(one["path"], one["rule"]): one for one in found["reasons"]}
    assert {key: one["count"] for key, one in reasons.items()} == {
        ("id", "int"): 2,
        ("id", "required"): 1,
        ("", "not read"): 1,
    }
    samples = reasons["id", "int"]["samples"]
    assert [(one["offset"], one["path"]) for one in samples] == [(2, "id"), (4, "id")]
    assert "the registry has no schema 99" in reasons["", "not read"]["reason"]
    # one more, and it is the one that nobody can read
    assert asked(driver, 9)[-1]["found"]["failed"] == 5


def test_the_last_records_against_a_definition(driver: Driver) -> None:
    driver.apply("CREATE STREAM s (id STRING, at TIMESTAMP) WITH (partitions = 1)")
    driver.send(
        [
            Event("s", raw=b'{"id": 2, "at": "2026-01-01T00:00:00Z"}', timestamp=1_767_225_600_000),
            Event("s", raw=b'{"id": "x", "at": "2026-01-01T00:00:00Z"}'),
            Event("s", raw=b'{"id": 2, "at": null}'),
            Event("s", raw=b"{"),
            Event(
                "s", raw=b'{"id": -5, "at": "2026-01-01T00:00:00Z"}', timestamp=1_767_225_600_000
            ),
        ]
    )
    changed = parse_one(
        "CREATE STREAM s (id BIGINT CHECK (id > 0), at TIMESTAMP,"
        " EXPECT even (id % 2 = 0) ON VIOLATION fail) WITH (event_time = 'at')"
    )
    assert isinstance(changed, Create)
    definition = replace(changed.definition, topic=driver.entry("s").definition.topic)
    payload = {
        "definition": TypeAdapter(Definition).dump_python(definition, mode="json"),
        "last": 9,
    }
    parts = (driver.spark, driver.connection, driver.admin, driver.formats)
    found = list(trial.tried(*parts, payload))[-1]["found"]
    assert (found["passed"], found["failed"]) == (1, 4)
    assert {one["rule"]: one["samples"][0]["offset"] for one in found["reasons"]} == {
        'field "id" is not a bigint': 1,
        "event time": 2,
        "not JSON": 3,
        "id_check": 4,
        "even": 4,
    }


def test_a_schema_that_cannot_be_read_is_said_at_once(driver: Driver) -> None:
    driver.apply("CREATE STREAM s (id BIGINT)")
    schema = {"type": "AVRO", "text": '{"type": "record"}', "references": []}
    payload = {"topic": driver.entry("s").definition.topic, "last": 5, "schema": schema}
    parts = (driver.spark, driver.connection, driver.admin, driver.formats)
    with pytest.raises(MainstemError) as error:
        list(trial.tried(*parts, payload))
    assert error.value.code == "SCHEMA_MALFORMED"
