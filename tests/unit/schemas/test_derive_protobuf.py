"""Columns and Python classes out of Protobuf messages."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.schemas.test_derive import last_class

from mainstem.definitions.model import Create, SubjectStrategy
from mainstem.definitions.parse import parse as parse_sql
from mainstem.errors import MainstemError
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.schemas.parse import parse
from mainstem.schemas.to_python import to_python
from mainstem.schemas.to_sql import to_sql

FILE = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/type/date.proto";
import "google/type/decimal.proto";

message Order {
  message Line { string item = 1; uint32 pieces = 2; }
  enum State { NEW = 0; PAID = 1; }
  message Empty {}
  int32 a = 1; sint64 b = 2; uint64 c = 3; float d = 4; double e = 5; bool f = 6; string g = 7; bytes h = 8;
  State state = 9;
  repeated Line lines = 10;
  map<string, Line> by_name = 11;
  map<uint64, bool> flags = 12;
  google.protobuf.Timestamp at = 13;
  google.type.Date day = 14;
  google.type.Decimal price = 15;
  google.protobuf.Int32Value maybe = 16;
  google.protobuf.Struct more = 17;
  oneof how { string card = 18; Line cash = 19; }
  optional string class = 20;
  Empty nothing = 21;
  Order parent = 22;
}
message Paid { int64 id = 1; }
"""  # noqa: E501 - so that a field and its number stay together


def nothing(reference: Reference) -> Schema:
    raise AssertionError(reference)


def schema(text: str) -> Any:
    return parse(Schema(SchemaType.PROTOBUF, text), nothing)


def columns(text: str) -> dict[str, str]:
    (found,) = parse_sql(text.replace("'protobuf'", "'json'"), "test", functions=None)
    assert isinstance(found, Create)
    return {column.name: column.type for column in found.definition.columns}


def test_columns() -> None:
    text = to_sql(schema(FILE), "orders")
    line = "struct<item:string,pieces:bigint>"
    assert columns(text) == {
        "a": "int",
        "b": "bigint",
        "c": "decimal(20,0)",
        "d": "float",
        "e": "double",
        "f": "boolean",
        "g": "string",
        "h": "binary",
        "state": "string",
        "lines": f"array<{line}>",
        "by_name": f"map<string,{line}>",
        "flags": "map<bigint,boolean>",
        "at": "timestamp",
        "day": "date",
        "price": "decimal(38,18)",
        "maybe": "int",
        "more": "string",
        "card": "string",
        "cash": line,
        "class": "string",
    }
    assert text.splitlines()[:2] == [
        "-- left out: nothing: a record without fields",
        "-- left out: parent: a record without fields",
    ]
    assert text.endswith(") WITH (format = 'protobuf');")


def test_a_message_that_contains_itself() -> None:
    text = 'syntax = "proto3"; message N { int32 id = 1; repeated N inner = 2; M m = 3; }'
    text += "message M { N n = 1; }"
    made = to_sql(schema(text), "t")
    assert columns(made) == {"id": "int"}
    assert made.count("it contains itself") == 2


def test_the_stream_of_one_message() -> None:
    text = to_sql(schema(FILE), "orders", "shop.Paid", SubjectStrategy.RECORD_NAME)
    assert text.startswith("CREATE STREAM paid (")
    assert text.endswith(
        ") WITH (topic = 'orders', format = 'protobuf', record = 'shop.Paid',"
        " subject_strategy = 'record_name');"
    )
    inner = to_sql(schema(FILE), "orders", "shop.Order.Line")
    assert "CREATE STREAM line (" in inner
    with pytest.raises(MainstemError) as raised:
        to_sql(schema(FILE), "orders", "shop.Shipped")
    assert raised.value.code == "SCHEMA_NOT_DERIVED"


def test_records_of_other_types_have_names_too() -> None:
    avro = Schema(
        SchemaType.AVRO,
        '{"type": "record", "name": "shop.OrderPaid", "fields": [{"name": "id", "type": "int"}]}',
    )
    text = to_sql(parse(avro, nothing), "orders", "shop.OrderPaid")
    assert text.startswith("CREATE STREAM order_paid (")
    assert "format = 'avro', record = 'shop.OrderPaid')" in text


def test_classes() -> None:
    made = last_class(Schema(SchemaType.PROTOBUF, FILE))
    assert made.__name__ == "Order"
    empty = made()
    assert (empty.a, empty.g, empty.h, empty.state, empty.lines) == (0, "", b"", "NEW", [])  # type: ignore[attr-defined]
    assert empty.at is empty.maybe is empty.card is None  # type: ignore[attr-defined]
    row = made.model_validate(
        {
            "at": "2026-01-01T00:00:00Z",
            "day": "2026-01-01",
            "price": "1.50",
            "lines": [{"item": "x"}],
            "flags": {7: True},
            "class": "c",
            "more": {"any": [1]},
            "parent": {"state": "PAID"},
        }
    )
    assert row.day == datetime.date(2026, 1, 1)  # type: ignore[attr-defined]
    assert row.price == decimal.Decimal("1.50")  # type: ignore[attr-defined]
    assert row.model_dump()["class"] == "c"
    for wrong in ({"a": "x"}, {"state": "GONE"}, {"lines": [{"pieces": "x"}]}, {"parent": 1}):
        with pytest.raises(ValidationError):
            made.model_validate(wrong)


def test_classes_of_proto2() -> None:
    text = """message R {
      required int32 id = 1; optional string s = 2 [default = "a\\"b"];
      optional double d = 3 [default = inf]; optional int32 n = 4; optional group G = 5 { required bool x = 1; }
      optional E e = 6 [default = B]; enum E { A = 1; B = 2; }
    }"""  # noqa: E501
    made = last_class(Schema(SchemaType.PROTOBUF, text))
    row = made.model_validate({"id": 1, "g": {"x": True}})
    assert row.model_dump() == {
        "id": 1, "s": 'a"b', "d": float("inf"), "n": None, "g": {"x": True}, "e": "B",
    }  # fmt: skip
    with pytest.raises(ValidationError):
        made.model_validate({})


def test_one_message_of_several() -> None:
    text = to_python(schema(FILE), "orders", "shop.Paid")
    assert "class Paid(BaseModel):\n    id: int = 0" in text
    assert "Order" not in text


@pytest.mark.parametrize("text", ['syntax = "proto3";', 'syntax = "proto3"; message M {}'])
def test_nothing_to_make_a_stream_of(text: str) -> None:
    with pytest.raises(MainstemError) as raised:
        to_sql(schema(text), "t")
    assert raised.value.code == "SCHEMA_NOT_DERIVED"
