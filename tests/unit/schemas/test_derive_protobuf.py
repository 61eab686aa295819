"""Protobuf messages out of samples, columns and Python classes out of messages, and back."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.unit.schemas.test_derive import _samples, last_class

from mainstem.definitions.model import Create, Definition, Format, Kind, SubjectStrategy
from mainstem.definitions.parse import parse as parse_sql
from mainstem.errors import MainstemError
from mainstem.schemas.infer import infer
from mainstem.schemas.known import own_schema
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.schemas.parse import parse
from mainstem.schemas.to_python import to_python
from mainstem.schemas.to_sql import to_sql
from mainstem.vocabulary import Column, SourceLocation

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
    (found,) = parse_sql(text, "test", functions=None)
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
    avro = Schema(SchemaType.AVRO, '{"type": "record", "name": "a.B", "fields": []}')
    assert "class B(" in to_python(parse(avro, nothing), "x", "a.B")
    for parsed in (schema(FILE), parse(avro, nothing)):
        with pytest.raises(MainstemError) as raised:
            to_python(parsed, "x", "a.C")
        assert raised.value.code == "SCHEMA_NOT_DERIVED"


@pytest.mark.parametrize("text", ['syntax = "proto3";', 'syntax = "proto3"; message M {}'])
def test_nothing_to_make_a_stream_of(text: str) -> None:
    with pytest.raises(MainstemError) as raised:
        to_sql(schema(text), "t")
    assert raised.value.code == "SCHEMA_NOT_DERIVED"


# -- samples


@settings(max_examples=30)
@given(_samples)
def test_all_samples_fit_the_message(samples: list[dict[str, Any]]) -> None:
    """By Protobuf's own reading of JSON."""
    try:
        found = infer(samples, SchemaType.PROTOBUF, "R")
    except MainstemError as error:
        assert error.code == "SCHEMA_NOT_DERIVED"
        return
    made = schema(found.text).message_class()
    for sample in samples:
        message = json_format.ParseDict(sample, made())
        shown = json_format.MessageToDict(message, preserving_proto_field_name=True)
        assert shown.keys() == {name for name, value in sample.items() if value not in (None, [])}


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ({"a": [1, "x"]}, "several types"),
        ({"a": None}, "always null"),
        ({"a": []}, "empty lists"),
        ({"a": [[1]]}, "list inside of a list"),
        ({"a": [1, None]}, "null inside of a list"),
        ({"a": 2**63}, "64 bits"),
        ({"a": {}}, "never has a field"),
        ({"a-b": 1}, "names"),
        ({"a_b": 1, "aB": 2}, "same name"),
    ],
)
def test_samples_without_a_message(sample: dict[str, Any], words: str) -> None:
    with pytest.raises(MainstemError, match=words) as raised:
        infer([sample], SchemaType.PROTOBUF, "R")
    assert raised.value.code == "SCHEMA_NOT_DERIVED"


# -- there and back

_free = st.from_regex(r"x[a-z]{1,2}", fullmatch=True)  # no word of SQL
_SIMPLE = ("boolean", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp")
_scalars = st.sampled_from((*_SIMPLE, "decimal(38,18)"))
_avro_scalars = st.sampled_from((*_SIMPLE, "timestamp_ntz", "decimal(9,2)"))


def _columns_of(scalars: st.SearchStrategy[str]) -> st.SearchStrategy[list[tuple[str, str]]]:
    structs = st.dictionaries(_free, scalars, min_size=1, max_size=3).map(
        lambda inner: f"struct<{','.join(f'{name}:{kind}' for name, kind in inner.items())}>"
    )
    single = scalars | structs
    types = single | single.map("array<{}>".format) | single.map("map<string,{}>".format)
    return st.dictionaries(_free, types, min_size=1, max_size=4).map(lambda d: list(d.items()))


def _definition(format_: Format, columns: list[tuple[str, str]]) -> Definition:
    made = tuple(Column(name, type_) for name, type_ in columns)
    here = SourceLocation("x.sql", 1, 1)
    return Definition("orders", Kind.STREAM, "orders", here, "", made, format=format_)


@pytest.mark.parametrize(
    ("format_", "scalars"), [(Format.AVRO, _avro_scalars), (Format.PROTOBUF, _scalars)]
)
@settings(max_examples=30)
@given(data=st.data())
def test_a_definition_comes_back_from_its_schema(
    format_: Format, scalars: st.SearchStrategy[str], data: st.DataObject
) -> None:
    wanted = _definition(format_, data.draw(_columns_of(scalars)))
    text = to_sql(parse(own_schema(wanted), nothing), "orders")
    (found,) = parse_sql(text, "test", functions=None)
    assert isinstance(found, Create)
    assert (found.definition.columns, found.definition.format) == (wanted.columns, format_)
    assert own_schema(found.definition) == own_schema(wanted)


_json_scalars = st.sampled_from(
    (
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "double",
        "string",
        "binary",
        "date",
        "timestamp",
    )
)


@given(_columns_of(_json_scalars))
def test_a_definition_comes_back_from_its_json_schema(columns: list[tuple[str, str]]) -> None:
    """All but the types for which JSON has no word of their own."""
    wanted = _definition(Format.JSON_SCHEMA, columns)
    text = to_sql(parse(own_schema(wanted), nothing), "orders")
    (found,) = parse_sql(text, "test", functions=None)
    assert isinstance(found, Create)
    assert found.definition.columns == wanted.columns
    assert own_schema(found.definition) == own_schema(wanted)
