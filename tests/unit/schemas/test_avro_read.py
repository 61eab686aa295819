"""Which Avro schemas can be read into which columns, and how."""

from __future__ import annotations

import json
from typing import Any

import fastavro
import pytest

from mainstem.schemas.avro_model import AvroType
from mainstem.schemas.avro_parse import parse_avro
from mainstem.schemas.avro_read import NotReadable, check_bounded, reading
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.vocabulary import Column


def root(schema: Any, **referred: Any) -> AvroType:
    def resolve(reference: Reference) -> Schema:
        return Schema(SchemaType.AVRO, json.dumps(referred[reference.name]))

    references = tuple(Reference(name, name, 1) for name in referred)
    return parse_avro(Schema(SchemaType.AVRO, json.dumps(schema), references), resolve).root


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": n, "type": t} for n, t in fields],
    }


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


ENUM = {"type": "enum", "name": "colour", "symbols": ["red", "blue"]}
FIXED = {"type": "fixed", "name": "id", "size": 16}
DECIMAL = logical("bytes", "decimal", precision=6, scale=2)
FIXED_DECIMAL = {**DECIMAL, "type": "fixed", "name": "money", "size": 8}

WIDER = [
    ("int", "int"),
    ("int", "bigint"),
    ("int", "float"),
    ("int", "double"),
    ("long", "bigint"),
    ("long", "double"),
    ("float", "float"),
    ("float", "double"),
    ("double", "double"),
    ("boolean", "boolean"),
    ("string", "string"),
    ("bytes", "binary"),
    (ENUM, "string"),
    (FIXED, "binary"),
    (logical("string", "uuid"), "string"),
    (logical("int", "date"), "date"),
    (logical("int", "date"), "int"),
    (logical("int", "time-millis"), "int"),
    (logical("long", "timestamp-millis"), "timestamp"),
    (logical("long", "timestamp-micros"), "timestamp"),
    (logical("long", "timestamp-millis"), "bigint"),
    (logical("long", "timestamp-nanos"), "bigint"),
    (logical("long", "local-timestamp-millis"), "timestamp_ntz"),
    (DECIMAL, "decimal(6,2)"),
    (DECIMAL, "decimal(10,4)"),
    (DECIMAL, "binary"),
    (FIXED_DECIMAL, "decimal(6,2)"),
    (["null", "int"], "bigint"),
    (["string", "null"], "string"),
    (["string"], "string"),
    ("null", "int"),
    ({"type": "array", "items": "int"}, "array<bigint>"),
    ({"type": "map", "values": ["null", "long"]}, "map<string,bigint>"),
    (record(("x", "float"), name="P"), "struct<x:double,y:int>"),
    ({"type": "array", "items": record(("x", "int"), name="P")}, "array<struct<x:int>>"),
]


@pytest.mark.parametrize(("field", "column"), WIDER, ids=str)
def test_what_only_becomes_wider_is_read(field: Any, column: str) -> None:
    found = reading(root(record(("f", field))), [Column("f", column)])
    for text in (found.written, found.wanted):
        fastavro.parse_schema(json.loads(text))


NARROWER = [
    ("long", "int"),
    ("double", "float"),
    ("float", "bigint"),
    ("string", "int"),
    ("string", "binary"),
    ("bytes", "string"),
    ("long", "timestamp"),
    ("string", "timestamp"),
    (logical("int", "date"), "timestamp"),
    (logical("long", "timestamp-micros"), "timestamp_ntz"),
    (logical("long", "timestamp-nanos"), "timestamp"),
    (DECIMAL, "decimal(6,1)"),
    (DECIMAL, "decimal(5,2)"),
    (logical("bytes", "decimal", precision=50, scale=2), "decimal(38,2)"),
    (["int", "string"], "string"),
    (["null", "int", "string"], "int"),
    (ENUM, "int"),
    ({"type": "array", "items": "string"}, "array<int>"),
    ({"type": "array", "items": "int"}, "int"),
    ({"type": "map", "values": "int"}, "map<int,int>"),
    (record(("x", "string"), name="P"), "struct<x:int>"),
    (record(("x", "int"), name="P"), "int"),
]


@pytest.mark.parametrize(("field", "column"), NARROWER, ids=str)
def test_what_could_lose_something_is_refused_with_its_place(field: Any, column: str) -> None:
    with pytest.raises(NotReadable, match='field "f'):
        reading(root(record(("f", field))), [Column("f", column)])


def test_columns_come_in_their_order_and_absent_ones_are_null() -> None:
    found = reading(root(record(("b", "int"), ("c", "string"))), [
        Column("a", "string"), Column("b", "bigint"),
    ])  # fmt: skip
    fields = json.loads(found.wanted)["fields"]
    assert [field["name"] for field in fields] == ["a", "b"]
    assert fields[0]["default"] is None


def test_a_time_keeps_the_unit_that_it_was_written_with() -> None:
    at = logical("long", "timestamp-millis")
    wanted = json.loads(reading(root(record(("at", at))), [Column("at", "timestamp")]).wanted)
    assert wanted["fields"][0]["type"]["logicalType"] == "timestamp-millis"


def test_a_reference_is_part_of_what_was_written() -> None:
    type_ = root(
        record(("p", "shop.Place")), **{"shop.Place": record(("x", "int"), name="shop.Place")}
    )
    found = reading(type_, [Column("p", "struct<x:int>")])
    assert fastavro.parse_schema(json.loads(found.written))
    assert '"x"' in found.written


def test_one_record_may_be_wanted_in_two_forms() -> None:
    place = record(("x", "int"), ("y", "int"), name="P")
    type_ = root(record(("a", place), ("b", "P")))
    found = reading(type_, [Column("a", "struct<x:int>"), Column("b", "struct<y:bigint>")])
    fastavro.parse_schema(json.loads(found.wanted))


def test_names_of_several_namespaces_do_not_meet() -> None:
    inner = {**record(("e", {**ENUM, "namespace": ""}), name="P"), "namespace": "a.b"}
    type_ = root(record(("p", inner), ("q", {**ENUM, "name": "a.b.colour"})))
    found = reading(type_, [Column("p", "struct<e:string>"), Column("q", "string")])
    for text in (found.written, found.wanted):
        fastavro.parse_schema(json.loads(text))


LINK = record(("next", ["null", "R"]), ("value", "int"))
EMPTY = record(name="E")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (LINK, "contains itself"),
        (record(("a", {"type": "array", "items": "null"})), "takes no bytes"),
        (record(("a", {"type": "array", "items": EMPTY})), "takes no bytes"),
        (record(("a", ["null", {"type": "array", "items": "null"}])), "takes no bytes"),
        ("string", "not a record"),
    ],
)
def test_what_few_bytes_could_keep_busy_for_ever_is_refused(schema: Any, words: str) -> None:
    with pytest.raises(NotReadable, match=words):
        reading(root(schema), [Column("value", "int")])


def shared(records: int, leaf: Any) -> Any:
    """Records, each of which has the one before twice."""
    type_: Any = record(("x", leaf), name="R0")
    for number in range(1, records):
        type_ = record(("a", type_), ("b", f"R{number - 1}"), name=f"R{number}")
    return type_


@pytest.mark.parametrize("leaf", ["null", "int"])
def test_records_that_are_shared_do_not_multiply_without_end(leaf: str) -> None:
    """Thirty of them would be a billion, made of no bytes at all."""
    check_bounded(root(shared(10, leaf)))
    with pytest.raises(NotReadable, match="100000 types"):
        check_bounded(root(shared(30, leaf)))


def test_a_chain_of_records_is_not_followed_without_end() -> None:
    links = [record(("x", "int"), name="L0")]
    links += [record(("x", f"L{number - 1}"), name=f"L{number}") for number in range(1, 1500)]
    chain = record(*((f"f{number}", link) for number, link in enumerate(links)), name="C")
    check_bounded(root(record(("a", "L100")), C=chain))
    with pytest.raises(NotReadable, match="192 levels"):
        reading(root(record(("a", "L1499")), C=chain), [Column("a", "int")])


def test_an_array_of_what_contains_itself() -> None:
    endless = record(("a", {"type": "array", "items": record(("n", "N"), name="N")}))
    with pytest.raises(NotReadable, match="contains itself"):
        check_bounded(root(endless))
