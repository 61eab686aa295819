"""Rows at the edge: written by the schema that is registered for their topic, or refused by it."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from mainstem.definitions.model import Definition, Format, Kind
from mainstem.errors import MainstemError
from mainstem.schemas import wire
from mainstem.schemas.codec import Codec
from mainstem.schemas.edge import NotEncoded
from mainstem.schemas.known import KnownSchemas
from mainstem.schemas.model import Registered, Schema, SchemaType
from mainstem.testing.registry import MemoryRegistry
from mainstem.vocabulary import Column, SourceLocation

COLUMNS = {
    "id": "bigint",
    "state": "string",
    "amount": "decimal(8,2)",
    "at": "timestamp",
    "x": "double",
    "data": "binary",
    "lines": "array<struct<sku:string,n:bigint>>",
    "more": "map<string,bigint>",
}
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "n", "type": "int", "default": 1}],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "trace", "type": ["string", "null"], "default": "none"},
        {
            "name": "mark",
            "type": {"type": "fixed", "name": "Mark", "size": 2},
            "default": "\u00ff!",
        },
        {
            "name": "state",
            "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]},
            "default": "NEW",
        },
        {
            "name": "amount",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
            ],
        },
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "x", "type": ["null", "float"]},
        {"name": "data", "type": ["null", {"type": "fixed", "name": "Two", "size": 2}]},
        {"name": "lines", "type": {"type": "array", "items": LINE}, "default": []},
        {"name": "more", "type": {"type": "map", "values": ["null", "int"]}, "default": {}},
    ],
}


def orders(format_: Format, columns: dict[str, str] = COLUMNS) -> Definition:
    made = tuple(Column(name, type_) for name, type_ in columns.items())
    here = SourceLocation("x.sql", 1, 1)
    return Definition("orders", Kind.STREAM, "shop.orders", here, "", made, format=format_)


class Registry(MemoryRegistry):
    """One that can be away."""

    away = False

    def latest(self, subject: str) -> Registered:
        if self.away:
            raise MainstemError("REGISTRY_UNREACHABLE", url="http://registry", problem="no route")
        return super().latest(subject)


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def codec(registry: Registry) -> Codec:
    return Codec(KnownSchemas(registry))


def register(registry: Registry, schema: Any, kind: SchemaType = SchemaType.AVRO) -> int:
    return registry.register("shop.orders-value", Schema(kind, json.dumps(schema))).id


def write(codec: Codec, row: dict[str, Any], format_: Format = Format.AVRO) -> bytes:
    return codec.writer(orders(format_))({name: json.dumps(item) for name, item in row.items()})


def read(value: bytes) -> Any:
    data = io.BytesIO(value)
    data.seek(wire.HEADER_BYTES)
    return fastavro.schemaless_reader(data, fastavro.parse_schema(ORDER), None)


def test_a_row_is_written_with_the_registered_schema(codec: Codec, registry: Registry) -> None:
    id = register(registry, ORDER)
    value = write(
        codec,
        {
            "id": 7,
            "state": "PAID",
            "amount": 12.5,
            "at": "2026-01-01T00:00:00.123Z",
            "x": 0.5,
            "data": "AP8=",
            "lines": [{"sku": "a", "n": 2}, {"sku": "b"}],
            "more": {"k": 1, "l": None},
        },
    )
    assert wire.schema_id(value) == id
    found = read(value)
    assert found["at"].isoformat() == "2026-01-01T00:00:00.123000+00:00"
    assert str(found["amount"]) == "12.5"
    assert found["lines"] == [{"sku": "a", "n": 2}, {"sku": "b", "n": 1}]
    assert (found["trace"], found["mark"], found["data"]) == ("none", b"\xff!", b"\0\xff")
    # nothing of the definition's own was registered beside it
    assert registry.versions("shop.orders-value") == [1]
    assert json.loads(codec.text(orders(Format.AVRO), value))["state"] == "PAID"


def test_what_is_absent_has_its_default_or_is_null(codec: Codec, registry: Registry) -> None:
    register(registry, ORDER)
    found = read(write(codec, {"id": 7}))
    assert (found["state"], found["lines"], found["x"]) == ("NEW", [], None)


@pytest.mark.parametrize(
    ("row", "path", "problem"),
    [
        ({}, ("id",), "it is missing, and has no default"),
        ({"id": None}, ("id",), "it is null, and must not be"),
        ({"id": 2**31}, ("id",), "2147483648 does not fit 32 bits"),
        ({"state": "LOST"}, ("state",), 'one of NEW, PAID was expected, not "LOST"'),
        ({"amount": 12.25}, ("amount",), r"12.25 does not fit decimal\(4, 1\)"),
        ({"amount": 1000}, ("amount",), r"1000 does not fit decimal\(4, 1\)"),
        ({"at": "2026-01-01T00:00:00.000001Z"}, ("at",), "finer than millis"),
        ({"x": 1e300}, ("x",), "does not fit a 32-bit float"),
        ({"data": "AA=="}, ("data",), "2 bytes were expected, not 1"),
        ({"lines": [{"sku": "a"}, {"n": 1}]}, ("lines", 1, "sku"), "it is missing"),
        ({"lines": [{"sku": "a", "n": 2**40}]}, ("lines", 0, "n"), "does not fit 32 bits"),
        ({"more": {"k": 2**40}}, ("more", "k"), "does not fit 32 bits"),
    ],
)
def test_what_the_schema_does_not_take_is_named(
    codec: Codec, registry: Registry, row: dict[str, Any], path: tuple[Any, ...], problem: str
) -> None:
    id = register(registry, ORDER)
    with pytest.raises(NotEncoded, match=problem) as error:
        write(codec, {"id": 1, **row} if row else row)
    assert error.value.path == path
    assert f"schema {id}" in error.value.problem


def test_a_fraction_is_no_whole_number(codec: Codec, registry: Registry) -> None:
    register(registry, {"type": "record", "name": "R", "fields": [{"name": "x", "type": "long"}]})
    writer = codec.writer(orders(Format.AVRO, {"x": "double"}))
    assert writer({"x": "3.0"})[5:] == b"\6"
    for number in ("0.5", '"NaN"', "1e30"):
        with pytest.raises(NotEncoded):
            writer({"x": number})


def test_a_schema_that_knows_less_gets_a_new_version(codec: Codec, registry: Registry) -> None:
    first = register(
        registry, {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
    )
    assert wire.schema_id(write(codec, {"id": 1, "state": "NEW"})) != first
    assert registry.versions("shop.orders-value") == [1, 2]
    # and that one is what rows are written with from now on
    write(codec, {"id": 2})
    assert registry.versions("shop.orders-value") == [1, 2]


def test_a_field_inside_that_the_schema_lacks_counts(codec: Codec, registry: Registry) -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": "a", "type": "int"}]}
    register(registry, {"type": "record", "name": "R", "fields": [{"name": "s", "type": inner}]})
    nested = orders(Format.AVRO, {"s": "struct<a:int,b:int>"})
    value = codec.writer(nested)({"s": '{"a":1,"b":2}'})
    assert codec.text(nested, value) == b'{"s":{"a":1,"b":2}}'


CLOSED = {
    "type": "object",
    "properties": {
        **{name: {} for name in COLUMNS},
        "id": {"type": "integer", "minimum": 1},
        "state": {"enum": ["NEW", "PAID"]},
        "lines": {"items": {"required": ["sku"]}},
    },
    "required": ["id"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("row", "path", "problem"),
    [
        ({"id": 0}, ("id",), "0 is less than the minimum of 1"),
        ({"state": "NEW"}, (), "'id' is a required property"),
        ({"id": 1, "state": "LOST"}, ("state",), "'LOST' is not one of"),
        ({"id": 1, "lines": [{"n": 1}]}, ("lines", 0), "'sku' is a required property"),
    ],
)
def test_a_json_schema_refuses_with_path_and_reason(
    codec: Codec, registry: Registry, row: dict[str, Any], path: tuple[Any, ...], problem: str
) -> None:
    register(registry, CLOSED, SchemaType.JSON)
    with pytest.raises(NotEncoded, match=problem) as error:
        write(codec, row, Format.JSON_SCHEMA)
    assert error.value.path == path
    assert registry.versions("shop.orders-value") == [1]


def test_a_null_that_a_json_schema_does_not_take_is_left_out(
    codec: Codec, registry: Registry
) -> None:
    register(registry, CLOSED, SchemaType.JSON)
    value = write(codec, {"id": 1, "state": None}, Format.JSON_SCHEMA)
    assert value[5:] == b'{"id":1}'


def test_a_closed_json_schema_without_a_column_gets_a_new_version(
    codec: Codec, registry: Registry
) -> None:
    register(registry, {**CLOSED, "properties": {"id": {}}}, SchemaType.JSON)
    write(codec, {"id": 0, "state": "LOST"}, Format.JSON_SCHEMA)
    assert registry.versions("shop.orders-value") == [1, 2]


def test_a_registry_that_is_away_keeps_nobody_from_writing_what_it_knew(
    codec: Codec, registry: Registry
) -> None:
    registry.away = True
    with pytest.raises(MainstemError, match="no route"):
        write(codec, {"id": 1})
    registry.away = False
    id = register(registry, ORDER)
    write(codec, {"id": 1})
    registry.away = True
    assert wire.schema_id(write(codec, {"id": 2})) == id
