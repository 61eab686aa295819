"""Columns that come by themselves while the engine dies: no record lost, doubled or cut short.

A flow that takes all columns of an Avro stream, and a table of it, get one more column with each
new version of the schema; records of all versions come in between. Run by `make soak`.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import fastavro
import httpx2
import pytest
from tests.faults.small import NUMBERS, SECONDS, SmallWorld, small_world

from mainstem.errors import MainstemError
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing, Producer
from mainstem.schemas import wire
from mainstem.testing.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

STEPS = ("at once", "before_write", "after_commit")
"""Where the engine dies when a version has come; at once: before it has seen the version."""
RECORDS = 50
"""Of each version, after each death."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallWorld]:
    with small_world(tmp_path_factory.mktemp("growing"), {"all.sql": NUMBERS}) as world:
        yield world


def test_each_column_comes_whole(world: SmallWorld, summary: list[str]) -> None:
    versions = [_registered(world, 0)]
    for sql in (
        "CREATE STREAM orders WITH (format = 'avro', key = 'id')",
        "CREATE STREAM copied AS SELECT * FROM orders",
        "CREATE TABLE latest WITH (key = 'id') AS SELECT * FROM copied",
    ):
        world.client.sql(sql)
    sent = _send(world, versions, {})
    for number, step in enumerate(STEPS, 1):
        _await_rows(world, sent)
        versions.append(_registered(world, number))
        if step == "at once":
            death = world.faults.kill("engine")
        else:
            world.faults.arm(step, "*")
        sent = _send(world, versions, sent)
        if step != "at once":
            death = world.faults.await_crash("engine")
        world.faults.await_restarting(death)
        print(f"engine: died {step.replace('_', ' ')} with version {number + 1}")
    _await_rows(world, sent)
    times = Counter(row["id"] for row in _copied(world))
    assert times == Counter(dict.fromkeys(sent, 1)), "lost or doubled"
    summary.append(
        f"growing columns: {len(STEPS)} engine kills, {len(sent):,} records of {len(versions)}"
        " versions; none lost, none doubled, none without its columns"
    )


def _await_rows(world: SmallWorld, sent: dict[int, dict[str, Any]]) -> None:
    """Until the served rows are those that were sent, with the columns that each had."""

    def served() -> bool:
        try:
            answer = world.client.sql("SELECT * FROM latest")
        except MainstemError:  # the catalog has the column a moment before the served table has it
            return False
        names = [column["name"] for column in answer["columns"]]
        rows = [dict(zip(names, row, strict=True)) for row in answer["rows"]]
        found = {row["id"]: {n: v for n, v in row.items() if v is not None} for row in rows}
        return found == sent

    eventually(served, SECONDS, what="the rows with all their columns")


def _registered(world: SmallWorld, number: int) -> tuple[int, Any]:
    """A version with so many columns more than the first."""
    more = [
        {"name": f"c{n}", "type": ["null", "string"], "default": None} for n in range(1, number + 1)
    ]
    fields = [{"name": "id", "type": "long"}, *more]
    document = {"type": "record", "name": "Order", "fields": fields}
    url = f"{world.faults.stack.endpoints.gateway_url}/registry/subjects/orders-value/versions"
    answer = httpx2.post(url, json={"schema": json.dumps(document)}, trust_env=False)
    return int(answer.raise_for_status().json()["id"]), fastavro.parse_schema(document)


def _send(
    world: SmallWorld, versions: list[tuple[int, Any]], before: dict[int, dict[str, Any]]
) -> dict[int, dict[str, Any]]:
    """Records of all versions, the newest first; gives all rows that were ever sent, by id."""
    sent, records = dict(before), []
    for _ in range(RECORDS):
        for number, (schema, parsed) in reversed(list(enumerate(versions))):
            id = len(sent)
            row = {"id": id, **{f"c{n}": f"{n} of {id}" for n in range(1, number + 1)}}
            data = io.BytesIO()
            fastavro.schemaless_writer(data, parsed, row)
            records.append(Outgoing(b"%d" % id, wire.header(schema) + data.getvalue()))
            sent[id] = row
    producer = Producer(world.connection)
    producer.send("orders", records)
    producer.close()
    return sent


def _copied(world: SmallWorld) -> Iterator[dict[str, Any]]:
    begin, end = world.admin.begin_offsets("copied"), world.admin.end_offsets("copied")
    for records in read_range(world.connection, "copied", begin, end):
        yield from (json.loads(record.value or b"null") for record in records)
