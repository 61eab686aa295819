"""Formats from end to end: in at every door, through flows and the registry, and out again."""

from __future__ import annotations

import json

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


@pytest.fixture
def kinds(shop):
    options = "topic = 'kinds', format = 'avro', key = 'id', subject_strategy = 'record_name'"
    shop.do(
        f"CREATE STREAM k_placed (id INT) WITH ({options}, record = 'shop.Placed')",
        f"CREATE STREAM k_paid (id INT, cents INT) WITH ({options}, record = 'shop.Paid')",
        f"CREATE STREAM k_sent WITH ({options}, record = 'shop.Sent') AS SELECT id FROM k_paid",
        "CREATE TABLE k_all AS SELECT id, count(*) AS n FROM"
        " (SELECT id FROM k_placed UNION ALL SELECT id FROM k_paid UNION ALL SELECT id FROM k_sent)"
        " GROUP BY id",
    )
    yield shop
    shop.do("DROP TABLE k_all", "DROP STREAM k_sent", "DROP STREAM k_paid", "DROP STREAM k_placed")


def test_records_of_several_names_in_one_topic(kinds):
    kinds.write("k_placed", {"id": 1})
    kinds.cli("produce", "k_paid", input='{"id": 1, "cents": 5}\n').ok()
    kinds.do("INSERT INTO k_placed VALUES (2)")
    kinds.produce("kinds", Outgoing(key=b"x", value=b"\0\0\x01\0\0zz"))
    kinds.wait_for_rows("SELECT * FROM k_all ORDER BY id", [[1, 3], [2, 1]])
    subjects = kinds.http.get("/registry/subjects").json()
    assert {"shop.Placed", "shop.Paid", "shop.Sent"} <= set(subjects)
    assert "kinds-value" not in subjects
    page = kinds.http.get("/v1/topics/kinds/records").json()["records"]
    assert len(page) == 5

    def kept() -> list[str]:
        listed = kinds.cli("quarantine", "list", "-o", "jsonl").ok().jsonl
        return [entry["object"] for entry in listed if entry["object"].startswith("k_")]

    eventually(kept, 40, what="the bad record")
    # each of three streams has read it by now, and it is there once
    kinds.write("k_paid", {"id": 2, "cents": 7})
    kinds.wait_for_rows("SELECT * FROM k_all ORDER BY id", [[1, 3], [2, 3]])
    assert len(kept()) == 1
    document = kinds.http.get("/v1/asyncapi").json()
    assert set(document["channels"]["kinds"]["messages"]) == {"k_placed", "k_paid", "k_sent"}
    assert document["operations"]["send_k_sent"]["action"] == "send"
    message = document["components"]["messages"]["k_all"]
    assert list(message["payload"]["properties"]) == ["id", "n"]
    told = kinds.cli("schema", "from-sql", "k_sent").ok().json
    assert (told["name"], [field["name"] for field in told["fields"]]) == ("shop.Sent", ["id"])
    kinds.do("DROP TABLE k_all", "DROP STREAM k_sent")
    assert len(kinds.records("kinds")) == len(page) + 2
    kinds.do(
        "CREATE STREAM k_sent (id INT)"
        " WITH (topic = 'kinds', format = 'avro', record = 'shop.Sent')",
        "CREATE TABLE k_all AS SELECT id, count(*) AS n FROM k_sent GROUP BY id",
    )
    kinds.wait_for_rows("SELECT * FROM k_all ORDER BY id", [[1, 1], [2, 1]])
