"""Formats from end to end: in at every door, through flows and the registry, and out again."""

from __future__ import annotations

import json

import pytest

from mainstem.log.producer import Outgoing
from mainstem.schemas import wire
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


def test_a_registered_schema_is_kept_to_before_a_byte_is_sent(shop):
    """The contract is somebody else's: it asks for more than the columns do."""
    contract = {
        "type": "object",
        "properties": {"id": {"minimum": 1}, "lines": {"items": {"required": ["sku"]}}},
        "required": ["id"],
    }
    body = {"schemaType": "JSON", "schema": json.dumps(contract)}
    registered = shop.http.post("/registry/subjects/kept_orders-value/versions", json=body)
    shop.do(
        "CREATE STREAM kept_orders (id BIGINT, note STRING, lines ARRAY<STRUCT<sku: STRING>>)"
        " WITH (format = 'json_schema')"
    )
    shop.write("kept_orders", {"id": 1, "lines": [{"sku": "a"}]})
    shop.do(
        "INSERT INTO kept_orders (id) VALUES (2)", "INSERT INTO kept_orders VALUES (3, NULL, NULL)"
    )
    shop.cli("produce", "kept_orders", input='{"id": 4}\n').ok()

    refused = shop.cli("produce", "kept_orders", input='{"id": 5}\n{"id": 0}\n')
    refused.failed("BAD_LINE")
    assert "line 2: value.id: 0 is less than the minimum of 1" in refused.err
    answer = shop.http.post(
        "/v1/streams/kept_orders/records",
        json={"records": [{"value": {"id": 6}}, {"value": {"id": 7, "lines": [{"sku": "b"}, {}]}}]},
    )
    assert (answer.status_code, answer.json()["title"]) == (422, "INVALID_RECORD")
    assert (
        "record 1" in answer.json()["detail"] and "value.lines[1]: 'sku'" in answer.json()["detail"]
    )
    shop.cli("sql", "INSERT INTO kept_orders (id) VALUES (8), (0)").failed("INVALID_RECORD")

    records = shop.records("kept_orders")
    assert {record.value[:5] for record in records} == {wire.header(registered.json()["id"])}
    assert sorted(json.loads(record.value[5:])["id"] for record in records) == [1, 2, 3, 4]
    shop.do("DROP STREAM kept_orders")


def test_the_last_records_say_whether_a_schema_would_do(shop, tmp_path):
    shop.do("CREATE STREAM tried (id BIGINT, name STRING)")
    shop.write("tried", {"id": 1, "name": "one"}, {"id": 2}, {"id": 2**40, "name": "big"})
    file = tmp_path / "tried-value.avsc"
    fields = [{"name": "id", "type": "int"}, {"name": "name", "type": ["null", "string"]}]
    file.write_text(json.dumps({"type": "record", "name": "Tried", "fields": fields}))
    result = shop.cli("schema", "check", str(file), "--last", "10", "-o", "json")
    assert result.code == 4, result.err
    [found] = json.loads(result.out)
    assert (found["compatible"], found["records"]["passed"], found["records"]["failed"]) == (
        True,
        2,
        1,
    )
    [reason] = found["records"]["reasons"]
    assert (reason["path"], reason["rule"], reason["samples"][0]["topic"]) == ("id", "int", "tried")

    sql = tmp_path / "tried.sql"
    sql.write_text("CREATE STREAM tried (id BIGINT, name STRING, CHECK (id < 100))")
    result = shop.cli("schema", "check", str(sql), "--last", "10")
    assert result.code == 4, result.err
    assert "2 of the last 3 records of tried would pass, 1 would not" in result.out

    groups = "/v1/topics/tried/groups"
    assert shop.http.get(groups).json() == {"groups": [], "not_asked": 0}
    shop.admin.commit_offsets("billing", {"tried": {0: 1}})
    assert shop.http.get(groups).json()["groups"] == ["billing"]
    shop.admin.delete_group("billing")
    shop.do("DROP STREAM tried")
