"""Records over HTTP: what fits becomes bytes, what does not is named by index and path."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from mainstem.definitions.model import Definition, Format, Kind
from mainstem.errors import MainstemError
from mainstem.gateway.records import outgoing, read_body, read_rows
from mainstem.schemas.codec import Codec
from mainstem.schemas.known import KnownSchemas
from mainstem.schemas.model import Schema, SchemaType
from mainstem.testing.registry import MemoryRegistry
from mainstem.vocabulary import Column, SourceLocation

CODEC = Codec(KnownSchemas(MemoryRegistry()))
COLUMNS = {
    "id": "bigint",
    "small": "tinyint",
    "name": "string",
    "x": "double",
    "price": "decimal(6,2)",
    "ok": "boolean",
    "day": "date",
    "at": "timestamp",
    "raw": "binary",
    "tags": "array<int>",
    "place": "struct<lat:double,names:array<string>>",
    "more": "map<string,decimal(4,1)>",
    "any": "variant",
}


def definition(kind: Kind = Kind.STREAM, key: tuple[str, ...] = ()) -> Definition:
    columns = tuple(Column(name, type_) for name, type_ in COLUMNS.items())
    return Definition("orders", kind, "t", SourceLocation("x.sql", 1, 1), "", columns, key)


USERS = definition(Kind.TABLE, ("id",))


def write(body: str, kind: Kind = Kind.STREAM, key: tuple[str, ...] = ()) -> list[Any]:
    return outgoing(definition(kind, key), read_body(body.encode()), CODEC)


def test_values_keep_their_digits() -> None:
    [record] = write('{"records":[{"value":{"price":12.50,"x":0.1000,"name":"ä"},"timestamp":7}]}')
    assert record.value == b'{"name":"\\u00e4","x":0.1000,"price":12.50}'
    assert (record.key, record.timestamp) == (None, 7)


def test_decimals_may_come_as_texts() -> None:
    [record] = write('{"records":[{"value":{"price":"-12.50"}}]}')
    assert record.value == b'{"price":-12.50}'
    for text in ("1e2", "", " 1", "NaN", "0.125", "12345", "1_0", "\u0661"):
        with pytest.raises(MainstemError):
            write(json.dumps({"records": [{"value": {"price": text}}]}))


def test_nested_values() -> None:
    value = {"tags": [1, None], "place": {"lat": 1, "names": ["a"]}, "more": {"k": 1}, "any": [{}]}
    [record] = write(json.dumps({"records": [{"value": value}]}))
    assert json.loads(record.value) == value


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ((), {"id": 1}, None),
        (("name",), {"name": "u1"}, b"u1"),
        (("id",), {"id": 7}, b"7"),
        (("price",), {"price": "1234.50"}, b"1234.50"),
        (("name",), {"id": 7}, None),
        (("id", "name"), {"id": 7}, b'{"id":7,"name":null}'),
    ],
)
def test_key_of_a_stream(key: tuple[str, ...], value: Any, expected: bytes | None) -> None:
    [record] = write(json.dumps({"records": [{"value": value}]}), key=key)
    assert record.key == expected


def test_key_of_a_table_and_deletion() -> None:
    body = {"records": [{"value": {"id": 7}}, {"key": {"id": 7}}, {"key": 8, "value": None}]}
    records = write(json.dumps(body), Kind.TABLE, ("id",))
    assert [(r.key, r.value) for r in records] == [
        (b'{"id":7}', b'{"id":7}'),
        (b'{"id":7}', None),
        (b'{"id":8}', None),
    ]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"id": "7"}, "value.id"),
        ({"id": True}, "value.id"),
        ({"id": 1.5}, "value.id"),
        ({"id": 2**63}, "value.id"),
        ({"small": 128}, "value.small"),
        ({"name": 5}, "value.name"),
        ({"x": "a"}, "value.x"),
        ({"price": 1.234}, "value.price"),
        ({"price": 10000}, "value.price"),
        ({"ok": 1}, "value.ok"),
        ({"day": "15.11.2026"}, "value.day"),
        ({"at": "yesterday"}, "value.at"),
        ({"raw": "not base64"}, "value.raw"),
        ({"tags": [1, "x"]}, "value.tags[1]"),
        ({"tags": {}}, "value.tags"),
        ({"place": {"lat": "north"}}, "value.place.lat"),
        ({"place": {"long": 1}}, "value.place.long"),
        ({"more": {"k": 12345}}, "value.more.k"),
        ({"nam": "x"}, "value.nam"),
        ([1], "value"),
        (None, "value"),
    ],
)
def test_misfits(value: Any, path: str) -> None:
    body = json.dumps({"records": [{"value": {"id": 1}}, {"value": value}]})
    with pytest.raises(MainstemError) as caught:
        write(body)
    assert caught.value.code == "INVALID_RECORD"
    assert (caught.value.params["index"], caught.value.params["path"]) == (1, path)


@pytest.mark.parametrize("key", [None, {"id": "x"}, {"other": 1}, {}, [1]])
def test_deletion_needs_the_whole_key(key: Any) -> None:
    with pytest.raises(MainstemError) as caught:
        write(json.dumps({"records": [{"key": key}]}), Kind.TABLE, ("id",))
    assert caught.value.code == "INVALID_RECORD"


def test_row_without_primary_key() -> None:
    with pytest.raises(MainstemError) as caught:
        write('{"records":[{"value":{"name":"x"}}]}', Kind.TABLE, ("id",))
    assert caught.value.params["path"] == "value.id"


@pytest.mark.parametrize(
    "body", ["", "[", "[]", "{}", '{"records":[]}', '{"records":{}}', "[" * 9999]
)
def test_wrong_bodies(body: str) -> None:
    with pytest.raises(MainstemError) as caught:
        read_body(body.encode())
    assert caught.value.code == "BAD_REQUEST"


def test_numbers_are_read_as_decimals() -> None:
    assert read_body(b'{"records":[1.10]}') == [Decimal("1.10")]


def test_what_the_registered_schema_refuses_is_named_by_record_and_path() -> None:
    registry = MemoryRegistry()
    order = {
        "type": "object",
        "properties": {"tags": {"items": {"minimum": 1}}},
        "required": ["id"],
    }
    registry.register("t-value", Schema(SchemaType.JSON, json.dumps(order)))
    orders = replace(definition(), format=Format.JSON_SCHEMA)
    codec = Codec(KnownSchemas(registry))
    good = {"value": {"id": 1, "tags": [1]}}
    [record] = outgoing(orders, [good], codec)
    assert record.value == b'\0\0\0\0\1{"id":1,"tags":[1]}'
    for bad, path, problem in (
        ({"id": 1, "tags": [1, 0]}, "value.tags[1]", "0 is less than the minimum of 1"),
        ({"tags": [1]}, "value", "'id' is a required property"),
    ):
        with pytest.raises(MainstemError) as error:
            outgoing(orders, [good, {"value": bad}], codec)
        found = error.value
        assert (found.code, found.params["index"], found.params["path"]) == (
            "INVALID_RECORD", 1, path,
        )  # fmt: skip
        assert f"{path}: {problem} (schema 1)" in found.message


def test_rows_of_an_insert_leave_out_what_was_not_given() -> None:
    rows = ['{"id":7,"name":null,"price":12.50}', '{"id":8,"name":null,"price":0}']
    registered = replace(definition(), format=Format.AVRO)
    given = read_rows(registered, rows, ("ID", "name"))
    assert given == [
        {"value": {"id": 7, "name": None}},
        {"value": {"id": 8, "name": None}},
    ]
    for every in (
        read_rows(registered, rows, ()),
        read_rows(definition(), rows, ("id",)),  # without a schema they are NULL
    ):
        value = every[0]["value"]
        assert (list(value), str(value["price"])) == (["id", "name", "price"], "12.50")


@pytest.mark.parametrize("value", [{"id": 1}, {"id": 1, "at": None}])
def test_a_record_without_its_event_time_would_be_put_aside(value: Any) -> None:
    timed = replace(definition(), event_time="at")
    with pytest.raises(MainstemError) as error:
        outgoing(timed, [{"value": value}], CODEC)
    assert (error.value.code, error.value.params["path"]) == ("INVALID_RECORD", "value.at")
    outgoing(timed, [{"value": {"at": "2026-01-01T00:00:00Z"}}], CODEC)
    outgoing(replace(timed, event_time=None), [{"value": value}], CODEC)


def test_keys_in_a_format() -> None:
    users = replace(definition(Kind.TABLE, ("id", "name")), key_format=Format.AVRO)
    body = {
        "records": [
            {"value": {"id": 7, "name": "a"}},
            {"key": {"name": "a", "id": 7}},
            {"key": {"id": 7, "name": "a"}, "value": {"id": 7, "name": "a", "ok": True}},
        ]
    }
    records = outgoing(users, read_body(json.dumps(body).encode()), CODEC)
    assert {r.key for r in records} == {b"\0\0\0\0\1\2\x0e\2\2a"}
    plain = replace(definition(Kind.STREAM, ("name",)), key_format=Format.RAW)
    body = {"records": [{"value": {"name": "a"}}, {"value": {}}, {"key": "b", "value": {}}]}
    records = outgoing(plain, read_body(json.dumps(body).encode()), CODEC)
    assert [r.key for r in records] == [b"a", None, b"b"]


@pytest.mark.parametrize("key", [{"id": 7}, [7], {"id": "x", "name": "a"}, {"id": 7, "nam": "a"}])
def test_a_key_that_does_not_fit_its_format(key: Any) -> None:
    users = replace(definition(Kind.STREAM, ("id", "name")), key_format=Format.PROTOBUF)
    body = json.dumps({"records": [{"key": key, "value": {"id": 7}}]}).encode()
    with pytest.raises(MainstemError) as raised:
        outgoing(users, read_body(body), CODEC)
    assert (raised.value.code, raised.value.params["path"][:3]) == ("INVALID_RECORD", "key")


def test_protobuf_has_no_null_inside_of_a_list() -> None:
    columns = (Column("tags", "array<int>"),)
    made = replace(definition(), columns=columns, format=Format.PROTOBUF)
    with pytest.raises(MainstemError) as raised:
        outgoing(made, read_body(b'{"records":[{"value":{"tags":[1,null]}}]}'), CODEC)
    assert raised.value.params["path"] == "value.tags"


def test_the_same_key_is_the_same_json() -> None:
    keys = {
        record.key
        for at in ("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z")
        for record in write(
            json.dumps({"records": [{"value": {"at": at, "name": "ä\x1f"}}]}),
            Kind.TABLE,
            ("at", "name"),
        )
    }
    assert keys == {'{"at":"2026-01-01T00:00:00.000000Z","name":"ä\\u001F"}'.encode()}


def test_values_as_the_log_is_to_hold_them() -> None:
    raw = b'{"id": 1,  "name":"a"}'
    [record] = outgoing(USERS, [{"value_base64": base64.b64encode(raw).decode()}], CODEC)
    assert (record.key, record.value) == (b'{"id":1}', raw)
    header = [{"name": "a", "value": "1"}, {"name": "b", "value_base64": "/w=="}, {"name": "c"}]
    [record] = outgoing(USERS, [{"value": {"id": 1}, "headers": header}], CODEC)
    assert record.headers == (("a", b"1"), ("b", b"\xff"), ("c", None))
    [record] = outgoing(USERS, [{"key_base64": "a2V5"}], CODEC)
    assert (record.key, record.value) == (b"key", None)


@pytest.mark.parametrize(
    ("record", "path"),
    [
        ({"value_base64": "!"}, "value_base64"),
        ({"value_base64": "e30=", "value": {}}, "value"),
        ({"value_base64": base64.b64encode(b'{"id": "x"}').decode()}, "value.id"),
        ({"value_base64": base64.b64encode(b"[]").decode()}, "value"),
        ({"value_base64": base64.b64encode(b"\xff").decode()}, "value_base64"),
        ({"value": {"id": 1}, "headers": {}}, "headers"),
        ({"value": {"id": 1}, "headers": [{"name": 1}]}, "headers[0]"),
        ({"value": {"id": 1}, "headers": [{"name": "a", "value": 1}]}, "headers[0]"),
        ({"value": {"id": 1, "name": "a"}, "headers": [{"name": "\ud800", "value": "\ud800"}]}, ""),
    ],
)
def test_what_is_no_record(record: Any, path: str) -> None:
    with pytest.raises(MainstemError) as refused:
        outgoing(USERS, [record], CODEC)
    assert (refused.value.code, refused.value.params["path"]) == ("INVALID_RECORD", path)
