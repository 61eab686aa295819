"""When two schemas are the same."""

from __future__ import annotations

import json

import pytest

from mainstem.schemas.canonical import canonical, normalize, serialized
from mainstem.schemas.model import Resolve, Schema, SchemaType
from mainstem.schemas.parse import parse
from mainstem.schemas.protobuf_parse import ProtobufSchema

AVRO, JSON, PROTOBUF = SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF
HEAD = 'syntax = "proto3"; '

FIXED = '{"type":"fixed","name":"F","size":1'

SAME = [
    (AVRO, '"int"', '{"type": "int"}'),
    (AVRO, FIXED + "}", ' { "size": 1, "name": "F", "type": "fixed" } '),
    (
        AVRO,
        '{"type":"fixed","name":"a.F","size":1}',
        '{"type":"fixed","name":"F","namespace":"a","size":1}',
    ),
    (
        AVRO,
        '{"type":"record","name":"a.R","fields":[{"name":"r","type":["null","a.R"]}]}',
        '{"type":"record","name":"a.R","fields":[{"name":"r","type":["null","R"]}]}',
    ),
    (JSON, '{"type": "object", "title": "t"}', '{"title":"t","type":"object"}'),
    (
        PROTOBUF,
        HEAD + "message M { int32 a = 1; }",
        HEAD + "\n// doc\nmessage M {\n int32 a=1;\n}",
    ),
    (PROTOBUF, "message M {}", 'syntax = "proto2"; message M {}'),
    (
        PROTOBUF,
        HEAD + "message M { int32 a_b = 1; }",
        HEAD + 'message M { int32 a_b = 1 [json_name = "aB"]; }',
    ),
    (PROTOBUF, HEAD + "message M { M m = 1; }", HEAD + "message M { .M m = 1; }"),
]
OTHER = [
    (AVRO, FIXED + "}", FIXED + ',"doc":"d"}'),
    (AVRO, FIXED + "}", FIXED + ',"aliases":["G"]}'),
    (
        AVRO,
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":0}]}',
    ),
    (AVRO, '["null", "int"]', '["int", "null"]'),
    (JSON, '{"enum": [1]}', '{"enum": [true]}'),
    (JSON, '{"title": "a"}', '{"title": "b"}'),
    (PROTOBUF, HEAD + "message M { int32 a = 1; }", HEAD + "message M { int32 b = 1; }"),
    (PROTOBUF, HEAD + "message M {} message N {}", HEAD + "message N {} message M {}"),
]


@pytest.mark.parametrize(("type", "one", "two"), SAME)
def test_same(type: SchemaType, one: str, two: str, no_references: Resolve) -> None:
    first, second = (parse(Schema(type, text), no_references) for text in (one, two))
    assert canonical(first) == canonical(second)


@pytest.mark.parametrize(("type", "one", "two"), OTHER)
def test_not_the_same(type: SchemaType, one: str, two: str, no_references: Resolve) -> None:
    first, second = (parse(Schema(type, text), no_references) for text in (one, two))
    assert canonical(first) != canonical(second)
    assert normalize(first) != normalize(second)


def test_normal_form_sorts_what_has_no_order(no_references: Resolve) -> None:
    one = (
        '{"required": ["b", "a"], "default": {"required": ["b", "a"]}, "type": ["string", "null"]}'
    )
    two = (
        '{"type": ["null", "string"], "required": ["a", "b"], "default": {"required": ["b", "a"]}}'
    )
    first, second = (parse(Schema(JSON, text), no_references) for text in (one, two))
    assert canonical(first) != canonical(second)
    assert normalize(first) == normalize(second)
    # a value is left as it is
    assert json.loads(normalize(first))["default"] == {"required": ["b", "a"]}


PROTO = """
syntax = "proto2";
package shop.v1;
import "google/protobuf/timestamp.proto";
import "confluent/meta.proto";
option java_package = "shop";
option (confluent.file_meta) = { doc: "orders" tags: "PII" };
message Order {
  required int32 id = 1 [default = 5, (confluent.field_meta).doc = "the \\"id\\""];
  optional google.protobuf.Timestamp at = 2;
  map<string, Item> items = 3;
  oneof x { string s = 4; bytes b = 5; Kind k = 12; }
  reserved 6, 7 to 8;
  reserved "foo";
  repeated group Part = 10 { optional int32 z = 1; }
  enum Kind { option allow_alias = true; A = 0; A2 = 0; B = -1; reserved -5 to -3; }
  extensions 100 to max;
  message Item {
    optional string n = 1 [default = "a\\"b\\n", json_name = "nn"];
    optional bytes bb = 2 [default = "\\001\\""];
    optional double dd = 3 [default = inf, deprecated = true];
    repeated int32 p = 4 [packed = true];
  }
  optional Kind kk = 11 [default = B];
}
extend Order { optional string ext = 100; }
service S { rpc Do(Order) returns (stream Order) { option deprecated = true; } }
"""


@pytest.mark.parametrize(
    "text",
    [
        PROTO,
        HEAD + "message M { optional int32 a = 1; oneof o { int32 b = 2; string c = 3; } }",
        HEAD + "message M { message A {} map<int32, A> m = 1; message B {} repeated B b = 2; }",
        'edition = "2023"; option features.field_presence = IMPLICIT; message A { int32 a = 1 '
        "[features.field_presence = LEGACY_REQUIRED]; reserved x; "
        "A b = 2 [features.message_encoding = DELIMITED]; }",
    ],
)
def test_printed_protobuf_is_the_same_schema(text: str, no_references: Resolve) -> None:
    parsed = parse(Schema(PROTOBUF, text), no_references)
    assert isinstance(parsed, ProtobufSchema)
    for other in (normalize(parsed), serialized(parsed)):
        again = parse(Schema(PROTOBUF, other), no_references)
        assert canonical(again) == canonical(parsed)
        assert normalize(again) == normalize(parsed)
