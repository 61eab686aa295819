"""Values of every format, as JSON text and back; bad ones say why."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from mainstem.definitions.model import Definition, Format, Kind
from mainstem.errors import MainstemError
from mainstem.schemas import wire
from mainstem.schemas.avro_columns import value_schema
from mainstem.schemas.codec import Codec, NotDecoded
from mainstem.schemas.known import KnownSchemas, subject_of
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.testing.registry import MemoryRegistry, written_by
from mainstem.vocabulary import Column, SourceLocation

ALL = {
    "b": ("boolean", "true"),
    "i": ("int", "-7"),
    "l": ("bigint", "9007199254740993"),
    "f": ("double", "0.5"),
    "s": ("string", '"a \\"quoted\\" ü, text"'),
    "x": ("binary", '"AP8="'),
    "d": ("date", '"2026-11-15"'),
    "t": ("timestamp", '"2026-11-15T12:30:00.000001Z"'),
    "n": ("timestamp_ntz", '"2026-11-15T12:30:00.000001"'),
    "m": ("decimal(6,2)", "-12.30"),
    "a": ("array<int>", "[1,null,3]"),
    "k": ("map<string,bigint>", '{"one":1}'),
    "r": ("struct<x:int,y:array<string>>", '{"x":1,"y":["z"]}'),
}


def definition(format_: Format, columns: dict[str, str], **more: Any) -> Definition:
    made = tuple(Column(name, type_) for name, type_ in columns.items())
    here = SourceLocation("x.sql", 1, 1)
    return Definition("orders", Kind.STREAM, "t", here, "", made, format=format_, **more)


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


@pytest.fixture
def codec(registry: MemoryRegistry) -> Codec:
    return Codec(KnownSchemas(registry))


def test_avro_gives_back_what_it_got(codec: Codec) -> None:
    orders = definition(Format.AVRO, {name: type_ for name, (type_, _) in ALL.items()})
    value = codec.writer(orders)({name: text for name, (_, text) in ALL.items()})
    assert value[:5] == b"\0\0\0\0\1"
    found = json.loads(codec.text(orders, value), parse_float=Decimal)
    assert found == {n: json.loads(text, parse_float=Decimal) for n, (_, text) in ALL.items()}


def test_avro_is_what_other_libraries_read(codec: Codec, registry: MemoryRegistry) -> None:
    orders = definition(Format.AVRO, {"id": "bigint", "at": "timestamp", "m": "decimal(6,2)"})
    value = codec.writer(orders)({"id": "5", "at": '"2026-01-01T00:00:00Z"', "m": "1.50"})
    schema = json.loads(registry.by_id(wire.schema_id(value)).text)
    row: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)
    assert (row["id"], row["at"].isoformat()) == (5, "2026-01-01T00:00:00+00:00")
    assert row["m"] == Decimal("1.50")


def test_a_column_that_is_not_given_is_null(codec: Codec) -> None:
    orders = definition(Format.AVRO, {"id": "bigint", "name": "string"})
    value = codec.writer(orders)({"id": "5"})
    assert json.loads(codec.text(orders, value)) == {"id": 5, "name": None}


def test_each_record_is_read_by_its_own_schema(codec: Codec, registry: MemoryRegistry) -> None:
    orders = definition(Format.AVRO, {"id": "bigint", "name": "string"})
    old = {"type": "record", "name": "o", "fields": [{"name": "id", "type": "int"}]}
    new = {**old, "fields": [{"name": "name", "type": "string"}, {"name": "id", "type": "long"}]}
    first = written_by(registry, json.dumps(old), {"id": 1})
    second = written_by(registry, json.dumps(new), {"id": 2, "name": "two"})
    assert json.loads(codec.text(orders, first)) == {"id": 1}
    assert json.loads(codec.text(orders, second)) == {"id": 2, "name": "two"}


BAD = [
    (b"", "0 bytes"),
    (b"\0\0\0\0", "4 bytes"),
    (b"\1\0\0\0\1\2", "the byte 1"),
    (b'{"id": 1}', "the byte 123"),
    (b"\0\0\0\0\x63\2", "no schema 99"),
    (b"\0\xff\xff\xff\xff\2", "no schema 4294967295"),
    (b"\0\0\0\0\1", "schema 1 says"),
    (b"\0\0\0\0\1\2\x0a\2", "schema 1 says"),
    # a text of 2^62 bytes, and one of less than none
    (b"\0\0\0\0\1\2\2\2" + b"\xff" * 8 + b"\x7f", "schema 1 says"),
    (b"\0\0\0\0\1\2\2\2\1", "schema 1 says"),
    (b"\0\0\0\0\1\2\2\2\2\xff", "schema 1 says"),
]


@pytest.mark.parametrize(("value", "words"), BAD)
def test_bad_avro_says_why(codec: Codec, value: bytes, words: str) -> None:
    orders = definition(Format.AVRO, {"id": "int", "name": "string"})
    codec.writer(orders)({"id": "1"})
    with pytest.raises(NotDecoded, match=words):
        codec.text(orders, value)
    assert codec.shown(value) is None or words == "schema 1 says"


def test_an_array_without_end_ends(codec: Codec, registry: MemoryRegistry) -> None:
    orders = definition(Format.AVRO, {"a": "array<int>"})
    id = registry.register(subject_of(orders), value_schema(orders)).id
    endless = wire.header(id) + b"\2" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" + b"\0" * 20
    with pytest.raises(NotDecoded):
        codec.text(orders, endless)


def test_a_schema_of_another_type_is_no_avro(codec: Codec, registry: MemoryRegistry) -> None:
    registry.register("x", Schema(SchemaType.JSON, "{}"))
    with pytest.raises(NotDecoded, match="JSON"):
        codec.text(definition(Format.AVRO, {"id": "int"}), b"\0\0\0\0\1\2")


def test_a_registry_that_is_away_is_no_judgement() -> None:
    class Away(MemoryRegistry):
        def by_id(self, id: int) -> Schema:
            raise MainstemError("REGISTRY_UNREACHABLE", url="http://x", problem="no route")

    with pytest.raises(MainstemError, match="does not answer"):
        Codec(KnownSchemas(Away())).text(definition(Format.AVRO, {"id": "int"}), b"\0\0\0\0\1\2")


def test_what_a_schema_says_can_be_shown(codec: Codec, registry: MemoryRegistry) -> None:
    at = {"type": "long", "logicalType": "timestamp-millis"}
    mixed = ["null", "string", "int"]
    fields = [
        {"name": "at", "type": at},
        {"name": "u", "type": mixed},
        {"name": "x", "type": "bytes"},
    ]
    schema = json.dumps({"type": "record", "name": "o", "fields": fields})
    value = written_by(registry, schema, {"at": 1000, "u": 5, "x": b"\xff"})
    shown = json.loads(codec.shown(value) or "")
    assert shown == {"at": "1970-01-01T00:00:01.000000Z", "u": 5, "x": "/w=="}
    assert codec.shown(b'{"id": 1}') is None


CSV = {
    "id": "int",
    "name": "string",
    "x": "double",
    "ok": "boolean",
    "m": "decimal(6,2)",
    "d": "date",
}


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ('1,"a,""b""",0.5,true,1.50,2026-01-01', [1, 'a,"b"', 0.5, True, 1.5, "2026-01-01"]),
        (",,,,,", [None] * 6),
        ('2,"",-1e3,FALSE,7,2026-01-01\r\n', [2, "", -1000.0, False, 7, "2026-01-01"]),
        ('3,"two\nlines",NaN,true,,', [3, "two\nlines", "NaN", True, None, None]),
    ],
)
def test_a_line_of_csv(codec: Codec, line: str, row: list[Any]) -> None:
    found = json.loads(codec.text(definition(Format.CSV, CSV), line.encode()))
    assert found == dict(zip(CSV, row, strict=True))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"1,a", "2 fields, not 6"),
        (b"1,a,2,true,3,2026-01-01,more", "7 fields"),
        (b"one,,,,,", '"id" is not a int'),
        (b",,,yes,,", '"ok" is not a boolean'),
        (b',"open,,,,', "not closed"),
        (b',"a"b,,,,', "behind the quotes"),
        (b",\xff,,,,", "not UTF-8"),
    ],
)
def test_a_bad_line_says_why(codec: Codec, line: bytes, words: str) -> None:
    with pytest.raises(NotDecoded, match=words):
        codec.text(definition(Format.CSV, CSV), line)


def test_csv_gives_back_what_it_got(codec: Codec) -> None:
    orders = definition(Format.CSV, {"id": "int", "a": "string", "b": "string"}, delimiter=";")
    fields = {"id": "1", "a": '"x;\\n\\"y\\""', "b": '""'}
    value = codec.writer(orders)(fields)
    assert value == b'1;"x;\n""y""";""'
    assert json.loads(codec.text(orders, value)) == {"id": 1, "a": 'x;\n"y"', "b": ""}


def test_raw_is_what_it_is(codec: Codec) -> None:
    text, data = definition(Format.RAW, {"line": "string"}), definition(Format.RAW, {"x": "binary"})
    assert codec.writer(text)({"line": '"a \\"b\\""'}) == b'a "b"'
    assert codec.text(text, b'a "b"') == b'{"line": "a \\"b\\""}'
    assert codec.writer(data)({"x": '"AP8="'}) == b"\0\xff"
    assert json.loads(codec.text(data, b"\0\xff")) == {"x": "AP8="}
    with pytest.raises(NotDecoded, match="UTF-8"):
        codec.text(text, b"\xff")


def test_json_with_a_schema_gives_back_what_it_got(codec: Codec, registry: MemoryRegistry) -> None:
    types = {name: type_ for name, (type_, _) in ALL.items()}
    orders = definition(Format.JSON_SCHEMA, types)
    fields = {name: text for name, (_, text) in ALL.items()}
    value = codec.writer(orders)(fields)
    assert value[:6] == b"\0\0\0\0\1{"
    assert registry.latest("t-value").schema.type is SchemaType.JSON
    assert codec.text(orders, value) == value[5:]
    assert json.loads(codec.shown(value) or "") == json.loads(value[5:])
    absent = codec.writer(orders)(dict.fromkeys(fields, "null"))
    assert codec.text(orders, absent) == absent[5:]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"id": "one"}', "schema 1 says: /id: "),
        (b'{"id": 3000000000}', "schema 1 says: /id: "),
        (b'{"id": 1, "more": 2}', "schema 1 says: .*more"),
        (b"[1]", "object"),
        (b"", "not JSON"),
        (b'{"id": 1}{}', "not JSON"),
        (b'{"id": ' + b"[" * 100_000, "not JSON"),
    ],
)
def test_json_that_its_schema_refuses_says_why(codec: Codec, text: bytes, words: str) -> None:
    orders = definition(Format.JSON_SCHEMA, {"id": "int"})
    codec.writer(orders)({"id": "1"})
    with pytest.raises(NotDecoded, match=words):
        codec.text(orders, wire.header(1) + text)


def test_a_json_schema_with_references(codec: Codec, registry: MemoryRegistry) -> None:
    name = Schema(SchemaType.JSON, '{"type": "string", "maxLength": 3}')
    registry.register("name", name)
    text = '{"type": "object", "properties": {"name": {"$ref": "name.json"}}}'
    reference = Reference("name.json", "name", 1)
    id = registry.register("order", Schema(SchemaType.JSON, text, (reference,))).id
    orders = definition(Format.JSON_SCHEMA, {"name": "string"})
    good = wire.header(id) + b'{"name": "ann"}'
    assert codec.text(orders, good) == good[5:]
    with pytest.raises(NotDecoded, match="/name"):
        codec.text(orders, wire.header(id) + b'{"name": "anna"}')


def test_only_records_of_its_name_are_a_definitions_own(
    codec: Codec, registry: MemoryRegistry
) -> None:
    placed = replace(definition(Format.AVRO, {"id": "int"}), record="shop.Placed")
    title = "Order paid"
    paid = replace(definition(Format.JSON_SCHEMA, {"id": "int"}), name="p", record=title)
    one, two = codec.writer(placed)({"id": "1"}), codec.writer(paid)({"id": "2"})
    assert json.loads(codec.text(placed, one)) == {"id": 1}
    assert json.loads(codec.text(paid, two)) == {"id": 2}
    for mine, own, other in ((placed, one, two), (paid, two, one)):
        found = [codec.is_own(mine, value) for value in (own, other, None)]
        assert found == [True, False, False]
        for bad in (b"", b"{}", wire.header(99) + b"x"):
            with pytest.raises(NotDecoded):
                codec.is_own(mine, bad)
    assert json.loads(registry.by_id(1).text)["name"] == "shop.Placed"
    assert json.loads(registry.by_id(2).text)["title"] == title


def test_messages_of_one_schema_have_names_of_their_own(
    codec: Codec, registry: MemoryRegistry
) -> None:
    file = 'syntax = "proto3"; package x; message A { int32 id = 1; } message B { int32 id = 1; }'
    id = registry.register("x", Schema(SchemaType.PROTOBUF, file)).id
    a, b = (replace(definition(Format.PROTOBUF, {"id": "int"}), record=f"x.{n}") for n in "AB")
    one, two = (wire.header(id) + form + b"\x08\x07" for form in (b"\0", b"\2\2"))
    assert json.loads(codec.text(a, one)) == json.loads(codec.text(b, two)) == {"id": 7}
    for mine, own, other in ((a, one, two), (b, two, one)):
        assert codec.is_own(mine, own)
        assert not codec.is_own(mine, other)
        with pytest.raises(NotDecoded, match="message"):
            codec.is_own(mine, wire.header(id) + b"\2\4")
    written = codec.writer(b)({"id": "8"})
    assert json.loads(codec.text(b, written)) == {"id": 8}
    text = registry.latest("t-value").schema.text
    assert "package x;" in text
    assert "message B {" in text


def test_numbers_of_fields_are_those_of_the_same_record(
    codec: Codec, registry: MemoryRegistry
) -> None:
    a = replace(definition(Format.PROTOBUF, {"x": "int", "y": "int"}), record="x.A")
    b = replace(definition(Format.PROTOBUF, {"y": "int"}), record="x.B")
    codec.writer(a)({})
    codec.writer(b)({})
    codec.writer(replace(a, columns=a.columns[1:]))({})
    assert "y = 1;" in registry.version("t-value", 2).schema.text
    assert "y = 2;" in registry.latest("t-value").schema.text
