"""Formats from end to end: in at every door, through flows and the registry, and out again."""

from __future__ import annotations

import io
import json

import fastavro
import psycopg
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from mainstem.log.producer import Outgoing
from mainstem.schemas import wire
from mainstem.schemas.model import Schema, SchemaType
from mainstem.schemas.protobuf_parse import parse_protobuf
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

    eventually(lambda: any("no schema 65536" in c for c in causes()), what="the bad record")


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
    insert = {"sql": "INSERT INTO kept_orders (id) VALUES (8), (0)"}
    assert shop.http.post("/v1/sql", json=insert).json()["title"] == "INVALID_RECORD"

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


@pytest.fixture(scope="module")
def messages(shop):
    shop.do(
        "CREATE STREAM pb_clicks (user STRING, at TIMESTAMP, tags ARRAY<STRING>)"
        " WITH (format = 'protobuf', key = 'user', key_format = 'protobuf')",
        "CREATE TABLE pb_visits WITH (format = 'protobuf', key_format = 'protobuf') AS"
        " SELECT user, count(*) AS n, max(at) AS last FROM pb_clicks GROUP BY user",
        "CREATE TABLE pb_users (name STRING PRIMARY KEY, age INT)"
        " WITH (format = 'protobuf', key_format = 'avro')",
    )
    yield shop
    shop.do("DROP STREAM pb_clicks CASCADE", "DROP TABLE pb_users")


def clicked():
    """The second message inside the first of a file, as protoc would make it."""
    file = descriptor_pb2.FileDescriptorProto(name="click.proto", package="web", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    outer = file.message_type.add(name="Outer")
    outer.nested_type.add(name="Other")
    message = outer.nested_type.add(name="Click")
    message.field.add(
        name="at",
        number=9,
        type="TYPE_MESSAGE",
        type_name=".google.protobuf.Timestamp",
        label="LABEL_OPTIONAL",
    )
    message.field.add(name="user", number=1, type="TYPE_STRING", label="LABEL_OPTIONAL")
    message.field.add(name="tags", number=3, type="TYPE_STRING", label="LABEL_REPEATED")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("web.Outer.Click"))


def context(topic, field=MessageField.VALUE):
    return SerializationContext(topic, field)


def test_protobuf_of_confluents_clients_goes_in_and_ours_comes_out(messages):
    client = SchemaRegistryClient({"url": f"{messages.url}/registry"})
    click = clicked()
    # the definition's own schema is there already, and this one is another
    client.set_compatibility("pb_clicks-value", "NONE")
    value = ProtobufSerializer(click, client)(click(user="u1", tags=["a"]), context("pb_clicks"))
    assert value[5:8] == b"\x04\x00\x02"
    messages.produce("pb_clicks", Outgoing(key=None, value=value))
    messages.produce("pb_clicks", Outgoing(key=b"no schema", value=value))
    messages.write("pb_clicks", {"user": "u1", "at": "2026-01-01T00:00:00Z", "tags": ["b"]})
    messages.do("INSERT INTO pb_clicks VALUES ('u1', TIMESTAMP '2026-01-02 00:00:00', NULL)")
    failed = messages.cli("produce", "pb_clicks", input='{"user": "u1", "tags": ["a", null]}\n')
    assert "null inside of a list" in failed.failed("BAD_LINE").err
    last = "2026-01-02T00:00:00Z"
    messages.wait_for_rows("SELECT * FROM pb_visits", [["u1", 3, last]])

    keys = {r.key for r in messages.records("pb_clicks") if r.key not in (None, b"no schema")}
    assert len(keys) == 1, "the same key from the gateway and from INSERT"
    for field, wanted in (
        (MessageField.KEY, {"user": "u1"}),
        (MessageField.VALUE, {"user": "u1", "n": 3}),
    ):
        found = client.get_latest_version(f"pb_visits-{field}")
        schema = Schema(SchemaType.PROTOBUF, found.schema.schema_str)
        made = parse_protobuf(schema, {}.__getitem__).message_class()
        read = ProtobufDeserializer(made, schema_registry_client=client)
        record = messages.records("pb_visits")[-1]
        data = record.key if field == MessageField.KEY else record.value
        message = read(data, context("pb_visits", field))
        assert {name: getattr(message, name) for name in wanted} == wanted
    shown = messages.cli("consume", "pb_visits", "-o", "jsonl").ok().jsonl
    assert json.loads(shown[-1]["key"]) == {"user": "u1"}
    assert shown[-1]["value"]["n"] == 3

    def causes():
        listed = messages.cli("quarantine", "list", "--stream", "pb_clicks", "-o", "jsonl").ok()
        return [entry["cause"] for entry in listed.jsonl]

    eventually(lambda: any("the key: " in c for c in causes()), what="the bad key")


def test_rows_are_deleted_by_a_key_in_avro(messages):
    messages.write("pb_users", {"name": "ann", "age": 7}, {"name": "bob", "age": 8})
    messages.do("INSERT INTO pb_users VALUES ('cid', 9)")
    messages.wait_for_rows("SELECT name FROM pb_users ORDER BY name", [["ann"], ["bob"], ["cid"]])
    client = SchemaRegistryClient({"url": f"{messages.url}/registry"})
    known = {
        AvroDeserializer(client)(r.key, context("pb_users", MessageField.KEY))["name"]: r.key
        for r in messages.records("pb_users")
    }
    latest = {"auto.register.schemas": False, "use.latest.version": True}
    write = AvroSerializer(client, conf=latest)
    key = write({"name": "cid"}, context("pb_users", MessageField.KEY))
    assert key == known["cid"], "another writer that takes the latest version writes the same"
    messages.produce("pb_users", Outgoing(key=key, value=None))
    gone = {"records": [{"key": {"name": "bob"}, "value": None}]}
    messages.http.post("/v1/streams/pb_users/records", json=gone)
    assert messages.records("pb_users")[-1].key in known.values()
    messages.wait_for_rows("SELECT * FROM pb_users", [["ann", 7]])


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

    eventually(kept, what="the bad record")
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
        shop.wait_for_rows("SELECT * FROM fo_latest", rows)
        connection.rollback()
        assert connection.execute(built).fetchone() == before, "the view went on"

    shop.wait_for_rows("SELECT * FROM fo_kinds", [["a", 20], ["b", 20], ["c", 20]])
    eventually(lambda: len(shop.records("fo_all")) >= 60, what="both copies of each late one")
    assert len(shop.records("fo_all")) == 60, "none lost, none doubled"
    # what it has seen before it got the column it knows behind that
    shop.produce("fo_orders", written(first, {"id": 1, "kind": "a"}))
    shop.produce("fo_orders", written(second, {"id": 99, "kind": "d", "note": "n99"}))
    eventually(lambda: len(shop.records("fo_once")) >= 51, what="the last record")
    once = {row["id"]: row.get("note") for row in shop.values("fo_once")}
    assert len(shop.records("fo_once")) == len(once) == 51
    assert once[30] == "n30"
    assert once[1] is None
    versions = shop.http.get("/registry/subjects/fo_all-value/versions").json()
    assert versions == [1, 2]
    # a flow that is asked to end while it reads a topic that is gone takes its time
    shop.wait_for_rows("SELECT count(*) FROM fo_latest", [[51]])
    shop.wait_for_rows("SELECT n FROM fo_kinds WHERE kind = 'd'", [[1]])
    shop.do("DROP STREAM fo_orders CASCADE")
