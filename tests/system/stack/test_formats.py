"""Formats from end to end: in at every door, through flows and the registry, and out again."""

from __future__ import annotations

import io
import json

import fastavro
import psycopg
import pytest

from mainstem.log.producer import Outgoing
from mainstem.testing.waiting import eventually


@pytest.fixture(scope="module")
def visits(shop):
    shop.do(
        "CREATE STREAM av_clicks (user STRING, page STRING, at TIMESTAMP)"
        " WITH (format = 'avro', key = 'user')",
        "CREATE TABLE av_visits WITH (format = 'avro') AS"
        " SELECT page, count(*) AS n, max(at) AS last FROM av_clicks GROUP BY page",
        "CREATE TABLE av_users (name STRING PRIMARY KEY, age INT) WITH (format = 'avro')",
    )
    yield shop
    shop.do("DROP STREAM av_clicks CASCADE", "DROP TABLE av_users")


def test_avro_comes_in_and_goes_out_at_every_door(visits):
    rows = [{"user": "u1", "page": "/a", "at": "2026-01-01T00:00:00Z"}, {"user": "u2"}]
    visits.write("av_clicks", rows[0])
    visits.cli("produce", "av_clicks", input=json.dumps(rows[1]) + "\n").ok()
    visits.do("INSERT INTO av_clicks VALUES ('u3', '/a', TIMESTAMP '2026-01-02 00:00:00')")
    failed = visits.cli("produce", "av_clicks", input='{"user": 5}\n')
    failed.failed("BAD_LINE")

    last = "2026-01-02T00:00:00Z"
    visits.wait_for_rows("SELECT * FROM av_visits ORDER BY n", [[None, 1, None], ["/a", 2, last]])
    # by the same schema, however they came
    records = visits.records("av_clicks")
    assert len({record.value[:5] for record in records}) == 1
    [schema] = {int.from_bytes(record.value[1:5]) for record in records}
    shown = visits.cli("consume", "av_clicks", "-o", "jsonl").ok().jsonl
    assert sorted(record["value"]["user"] for record in shown) == ["u1", "u2", "u3"]
    page = visits.http.get("/v1/topics/av_clicks/records").json()["records"]
    assert {record["schema_id"] for record in page} == {schema}
    found = visits.http.get("/registry/subjects/av_clicks-value/versions/latest").json()
    assert found["id"] == schema
    assert [field["name"] for field in json.loads(found["schema"])["fields"]] == [
        "user", "page", "at",
    ]  # fmt: skip


def test_a_table_in_avro_is_served_and_its_bad_records_are_kept(visits):
    visits.write("av_users", {"name": "ann", "age": 7}, {"name": "bob", "age": 8})
    visits.wait_for_rows("SELECT * FROM av_users ORDER BY name", [["ann", 7], ["bob", 8]])
    gone = {"records": [{"key": {"name": "bob"}, "value": None}]}
    visits.http.post("/v1/streams/av_users/records", json=gone)
    visits.produce("av_users", Outgoing(key=b"eve", value=b"\0\0\x01\0\0zz"))
    visits.wait_for_rows("SELECT * FROM av_users ORDER BY name", [["ann", 7]])

    def causes() -> list[str]:
        listed = visits.cli("quarantine", "list", "--stream", "av_users", "-o", "jsonl").ok().jsonl
        return [entry["cause"] for entry in listed]

    eventually(lambda: any("no schema 65536" in c for c in causes()), 40, what="the bad record")


def test_a_definition_registers_its_schema_and_breaks_no_rule(shop):
    stream = "CREATE {}STREAM av_prices (\n  id INT,\n  price {}{}\n) WITH (format = 'avro')"
    subject = "/registry/subjects/av_prices-value/versions"
    shop.do(stream.format("", "DOUBLE", ""))
    assert shop.http.get(subject).json() == [1]
    with shop.edited("pipeline/prices.sql", lambda _: stream.format("", "STRING", "")):
        planned = shop.cli("plan")
        assert planned.code == 4
        assert (
            "pipeline/prices.sql:3:3: BREAKS: version 1, BACKWARD: av_prices.price" in planned.out
        )
        shop.cli("apply", "--yes").failed("SCHEMA_INCOMPATIBLE", 4)
    sql = stream.format("OR REPLACE ", "STRING", "")
    problem = shop.refused("SCHEMA_INCOMPATIBLE", "POST", "/v1/sql", json={"sql": sql})
    assert problem["location"]["line"] == 3
    shop.do(stream.format("OR REPLACE ", "DOUBLE", ",\n  note STRING"))
    assert shop.http.get(subject).json() == [1, 2]
    shop.do("DROP STREAM av_prices")


ID, KIND, NOTE = (
    {"name": "id", "type": "int"},
    {"name": "kind", "type": "string"},
    {"name": "note", "type": "string", "default": ""},
)


def registered(shop, topic, *fields):
    """The schema as the next version of a topic's subject, as a producer would register it."""
    document = {"type": "record", "name": "Order", "namespace": "shop", "fields": fields}
    body = {"schema": json.dumps(document)}
    answer = shop.http.post(f"/registry/subjects/{topic}-value/versions", json=body)
    return answer.json()["id"], fastavro.parse_schema(document)


def written(schema, row):
    id, parsed = schema
    data = io.BytesIO()
    fastavro.schemaless_writer(data, parsed, row)
    return Outgoing(
        key=str(row["id"]).encode(), value=bytes([0, *id.to_bytes(4)]) + data.getvalue()
    )


def test_a_new_version_brings_its_column_to_all_that_take_all(shop):
    first = registered(shop, "fo_orders", ID, KIND)
    shop.do(
        "CREATE STREAM fo_orders WITH (format = 'avro', key = 'id')",
        "CREATE STREAM fo_all WITH (format = 'avro') AS SELECT * FROM fo_orders WHERE kind <> 'x'",
        "CREATE TABLE fo_latest WITH (key = 'id') AS SELECT * FROM fo_all",
        "CREATE STREAM fo_once WITH (deduplicate = 'id') AS SELECT * FROM fo_orders",
        "CREATE TABLE fo_kinds AS SELECT kind, count(*) AS n FROM fo_orders GROUP BY kind",
    )
    shop.produce("fo_orders", *(written(first, {"id": n, "kind": "a"}) for n in range(20)))
    old = [[n, "a"] for n in range(20)]
    shop.wait_for_rows("SELECT * FROM fo_latest", old)
    place = shop.info["postgres"]
    reader = {"user": place["reader"], "dbname": place["database"], "passfile": place["passfile"]}
    with psycopg.connect(host=place["host"], port=place["port"], **reader) as connection:
        built = "SELECT generation, built_at FROM _mainstem.views WHERE name = 'fo_latest'"
        before = connection.execute(built).fetchone()

        second = registered(shop, "fo_orders", ID, KIND, NOTE)
        late = [written(first, {"id": n, "kind": "b"}) for n in range(20, 30)]
        new = [written(second, {"id": n, "kind": "c", "note": f"n{n}"}) for n in range(30, 50)]
        # records of both versions, in all partitions
        shop.produce("fo_orders", *(r for pair in zip(new, late * 2, strict=True) for r in pair))
        rows = [[n, k, None] for n, k in old] + [[n, "b", None] for n in range(20, 30)]
        rows += [[n, "c", f"n{n}"] for n in range(30, 50)]
        shop.wait_for_rows("SELECT * FROM fo_latest", rows, 90)
        connection.rollback()
        assert connection.execute(built).fetchone() == before, "the view went on"

    shop.wait_for_rows("SELECT * FROM fo_kinds", [["a", 20], ["b", 20], ["c", 20]])
    assert len(shop.records("fo_all")) == 60, "none lost, none doubled"
    # what it has seen before it got the column it knows behind that
    shop.produce("fo_orders", written(first, {"id": 1, "kind": "a"}))
    shop.produce("fo_orders", written(second, {"id": 99, "kind": "d", "note": "n99"}))
    eventually(lambda: len(shop.records("fo_once")) >= 51, 40, what="the last record")
    once = {row["id"]: row.get("note") for row in shop.values("fo_once")}
    assert len(shop.records("fo_once")) == len(once) == 51
    assert once[30] == "n30"
    assert once[1] is None
    versions = shop.http.get("/registry/subjects/fo_all-value/versions").json()
    assert versions == [1, 2]
    shop.do("DROP STREAM fo_orders CASCADE")
