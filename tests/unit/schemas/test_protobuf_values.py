"""Protobuf values as JSON text and back: types, versions, places of messages, bad bytes."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf import json_format

from mainstem.definitions.model import Definition, Format, Kind
from mainstem.schemas import wire
from mainstem.schemas.codec import Codec, NotDecoded
from mainstem.schemas.edge import NotEncoded
from mainstem.schemas.known import KnownSchemas
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.schemas.protobuf_parse import parse_protobuf
from mainstem.testing.registry import MemoryRegistry
from mainstem.vocabulary import Column, SourceLocation

ALL = {
    "b": ("boolean", "true"),
    "i": ("int", "-7"),
    "l": ("bigint", "9007199254740993"),
    "g": ("float", "0.25"),
    "f": ("double", "0.1"),
    "s": ("string", '"a \\"quoted\\" ü, text"'),
    "x": ("binary", '"AP8="'),
    "d": ("date", '"1969-11-15"'),
    "t": ("timestamp", '"1969-11-15T12:30:00.000001Z"'),
    "m": ("decimal(38,2)", "-123456789012345678901234567890.10"),
    "a": ("array<int>", "[1,3]"),
    "k": ("map<string,decimal(4,1)>", '{"one":1.0}'),
    "n": ("map<int,struct<x:timestamp>>", '{"1":{"x":"1970-01-01T00:00:00.000000Z"}}'),
    "r": ("struct<x:int,y:array<string>>", '{"x":1,"y":["z"]}'),
    "q": ("array<struct<x:date>>", '[{"x":null},{"x":"2026-01-01"}]'),
}


def definition(columns: dict[str, str], **more: Any) -> Definition:
    made = tuple(Column(name, type_) for name, type_ in columns.items())
    here = SourceLocation("x.sql", 1, 1)
    return Definition("orders", Kind.STREAM, "t", here, "", made, format=Format.PROTOBUF, **more)


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


@pytest.fixture
def codec(registry: MemoryRegistry) -> Codec:
    return Codec(KnownSchemas(registry))


def written(
    registry: MemoryRegistry,
    body: str,
    row: dict[str, Any],
    *,
    indexes: tuple[int, ...] = (0,),
    head: bytes = b"\0",
    syntax: str = "proto3",
    references: tuple[Reference, ...] = (),
) -> bytes:
    """What another writer with this schema writes."""
    schema = Schema(SchemaType.PROTOBUF, f'syntax = "{syntax}";\n{body}', references)
    parsed = parse_protobuf(schema, registry.resolve)
    message = json_format.ParseDict(row, parsed.message_class(indexes)())
    id = registry.register("elsewhere", schema).id
    return wire.header(id) + head + message.SerializeToString()


def test_it_gives_back_what_it_got(codec: Codec) -> None:
    orders = definition({name: type_ for name, (type_, _) in ALL.items()})
    value = codec.writer(orders)({name: text for name, (_, text) in ALL.items()})
    assert value[:6] == b"\0\0\0\0\1\0"
    found = json.loads(codec.text(orders, value), parse_float=Decimal)
    assert found == {n: json.loads(text, parse_float=Decimal) for n, (_, text) in ALL.items()}


def test_what_is_not_given_is_null_and_a_list_is_empty(codec: Codec) -> None:
    orders = definition({"id": "bigint", "r": "struct<x:int>", "a": "array<int>"})
    value = codec.writer(orders)({"id": "0", "a": "null"})
    assert json.loads(codec.text(orders, value)) == {"id": 0, "r": None, "a": []}


@pytest.mark.parametrize(
    ("columns", "fields", "path"),
    [
        ({"a": "array<int>"}, {"a": "[1,null]"}, "a: "),
        ({"a": "map<string,int>"}, {"a": '{"x":null}'}, "a: "),
        ({"r": "struct<a:array<string>>"}, {"r": '{"a":[null]}'}, "r.a: "),
        ({"a": "map<int,int>"}, {"a": '{"x":1}'}, "a: the key 'x' is no INT"),
        ({"a": "map<int,int>"}, {"a": '{"9999999999":1}'}, "a: the key '9999999999' is no INT"),
    ],
)
def test_what_it_has_no_words_for(
    codec: Codec, columns: dict[str, str], fields: dict[str, str], path: str
) -> None:
    with pytest.raises(NotEncoded) as raised:
        codec.writer(definition(columns))(fields)
    assert f"{raised.value.path[0]}: {raised.value.problem}".startswith(path)


TYPES = [
    ("int32 v = 1;", 5, {"int": 5, "bigint": 5, "double": 5.0}, ["string", "smallint"]),
    ("uint32 v = 1;", 4294967295, {"bigint": 4294967295}, ["int"]),
    ("sint64 v = 1;", "-9", {"bigint": -9, "double": -9.0}, ["int", "decimal(20,0)"]),
    (
        "uint64 v = 1;",
        "18446744073709551615",
        {"decimal(20,0)": 18446744073709551615, "double": Decimal("1.8446744073709552e+19")},
        ["int", "decimal(21,2)"],
    ),
    ("float v = 1;", 0.5, {"float": 0.5, "double": 0.5}, ["int"]),
    ("double v = 1;", "NaN", {"double": "NaN"}, ["float"]),
    ("string v = 1;", "ü", {"string": "ü"}, ["binary"]),
    ("bytes v = 1;", "AP8=", {"binary": "AP8="}, ["string"]),
    ("bool v = 1;", False, {"boolean": False}, ["int"]),
    ("E v = 1; enum E { NONE = 0; RED = 1; }", "RED", {"string": "RED", "int": 1}, ["boolean"]),
    ("E v = 1; enum E { NONE = 0; }", 7, {"string": "7", "int": 7}, []),
    ("repeated sint32 v = 1;", [1, -1], {"array<int>": [1, -1], "array<bigint>": [1, -1]}, ["int"]),
    ("map<int64, bool> v = 1;", {"2": True}, {"map<bigint,boolean>": {"2": True}}, ["string"]),
    (
        "map<bool, E> v = 1; enum E { A = 0; }",
        {"true": "A"},
        {"map<boolean,string>": {"true": "A"}},
        [],
    ),
    (
        "I v = 1; message I { int32 a = 1; I next = 2; }",
        {"a": 1},
        {"struct<a:int,b:int>": {"a": 1, "b": None}},
        ["string"],
    ),
    ("oneof x { int32 v = 1; string w = 2; }", 0, {"int": 0}, []),
    ("optional int32 v = 1;", 0, {"int": 0}, []),
    (
        ".google.protobuf.Int64Value v = 1;",
        "0",
        {"bigint": 0, "struct<value:bigint>": {"value": 0}},
        ["int"],
    ),
    (".google.protobuf.StringValue v = 1;", "", {"string": ""}, []),
    (
        ".google.protobuf.Timestamp v = 1;",
        "2026-01-01T00:00:00.000001999Z",
        {
            "timestamp": "2026-01-01T00:00:00.000001Z",
            "string": "2026-01-01T00:00:00.000001999Z",
            "struct<seconds:bigint,nanos:int>": {"seconds": 1767225600, "nanos": 1999},
        },
        ["bigint", "timestamp_ntz"],
    ),
    (".google.protobuf.Duration v = 1;", "1.5s", {"string": "1.500s"}, ["int"]),
    (
        ".google.protobuf.Struct v = 1;",
        {"a": [1, None, "x"]},
        {"string": '{"a":[1.0,null,"x"]}'},
        [],
    ),
    (".google.protobuf.Value v = 1;", None, {"string": "null"}, []),
    (
        ".google.type.Date v = 1;",
        {"year": 2026, "month": 2, "day": 3},
        {"date": "2026-02-03"},
        ["string"],
    ),
    (
        ".google.type.Decimal v = 1;",
        {"value": "1.5e1"},
        {"decimal(4,1)": Decimal("15.0")},
        ["double"],
    ),
    (
        ".confluent.type.Decimal v = 1;",
        {"value": "+y4=", "precision": 4, "scale": 2},
        {"decimal(6,3)": Decimal("-12.340")},
        [],
    ),
]
IMPORTS = "".join(
    f'import "{path}.proto";\n'
    for path in (
        *(f"google/protobuf/{name}" for name in ("wrappers", "timestamp", "duration", "struct")),
        *("google/type/date", "google/type/decimal", "confluent/type/decimal"),
    )
)


@pytest.mark.parametrize(("field", "given", "columns", "never"), TYPES)
def test_which_columns_take_which_fields(
    codec: Codec,
    registry: MemoryRegistry,
    field: str,
    given: Any,
    columns: dict[str, Any],
    never: list[str],
) -> None:
    body = f"{IMPORTS}message M {{ {field} }}"
    value = written(registry, body, {"v": given})
    for column, wanted in columns.items():
        text = codec.text(definition({"v": column, "absent": "int"}), value)
        found = json.loads(text, parse_float=Decimal)
        assert found == {"v": wanted}
    for column in never:
        with pytest.raises(NotDecoded, match=f'"v" is of type .* no {column[:7]}'):
            codec.text(definition({"v": column}), value)
    assert codec.shown(value) is not None


BOUNDS = [
    ("uint64 v = 1;", "9223372036854775808", "bigint", "more than a BIGINT"),
    (".google.type.Decimal v = 1;", {"value": "1.55"}, "decimal(4,1)", "1.55 does not fit"),
    (".google.type.Decimal v = 1;", {"value": "1e999999"}, "decimal(4,1)", "does not fit"),
    (".google.type.Decimal v = 1;", {"value": "-Infinity"}, "decimal(4,1)", "does not fit"),
    (".google.type.Decimal v = 1;", {"value": "one"}, "decimal(4,1)", "is no decimal"),
    (".google.type.Date v = 1;", {"year": 2026, "month": 2}, "date", "day"),
    (
        ".confluent.type.Decimal v = 1;",
        {"value": "Ag==", "scale": -2147483648},
        "decimal(4,1)",
        "NaN",
    ),
]


@pytest.mark.parametrize(("field", "given", "column", "words"), BOUNDS)
def test_values_without_a_place_are_bad(
    codec: Codec, registry: MemoryRegistry, field: str, given: Any, column: str, words: str
) -> None:
    value = written(registry, f"{IMPORTS}message M {{ {field} }}", {"v": given})
    with pytest.raises(NotDecoded, match=words):
        codec.text(definition({"v": column}), value)


def test_a_time_out_of_all_bounds(codec: Codec, registry: MemoryRegistry) -> None:
    body = "message M { T v = 1; } message T { int64 seconds = 1; int32 nanos = 2; }"
    same = f"{IMPORTS}message M {{ .google.protobuf.Timestamp v = 1; }}"
    far = written(registry, body, {"v": {"seconds": str(2**62)}})
    value = written(registry, same, {})[:6] + far[6:]
    with pytest.raises(NotDecoded, match="out of all bounds"):
        codec.text(definition({"v": "timestamp"}), value)


def test_proto2_knows_defaults_and_groups(codec: Codec, registry: MemoryRegistry) -> None:
    body = """message M { optional int32 a = 1 [default = 7]; optional int32 b = 2;
        required string c = 3; repeated group G = 4 { optional int32 x = 1; } }"""
    value = written(registry, body, {"c": "x", "g": [{"x": 1}]}, syntax="proto2")
    shape = definition({"a": "int", "b": "int", "c": "string", "g": "array<struct<x:int>>"})
    found = json.loads(codec.text(shape, value))
    assert found == {"a": 7, "b": None, "c": "x", "g": [{"x": 1}]}
    cut = value[:6]
    with pytest.raises(NotDecoded, match="does not hold what schema 1 says"):
        codec.text(shape, cut)


def test_each_record_is_read_by_its_own_schema(codec: Codec, registry: MemoryRegistry) -> None:
    orders = definition({"id": "bigint", "name": "string"})
    first = written(registry, "message M { int32 id = 1; }", {"id": 1})
    second = written(
        registry, "message N { string name = 1; int64 id = 5; }", {"id": 2, "name": "b"}
    )
    assert json.loads(codec.text(orders, first)) == {"id": 1}
    assert json.loads(codec.text(orders, second)) == {"id": 2, "name": "b"}


def test_the_place_of_the_message_counts(codec: Codec, registry: MemoryRegistry) -> None:
    body = "message A { int32 id = 1; } message B { message C { int32 x = 1; int64 id = 2; } }"
    inner = written(registry, body, {"id": 5}, indexes=(1, 0), head=b"\4\2\0")
    first = written(registry, body, {"id": 6}, head=b"\2\0")
    orders = definition({"id": "bigint"})
    assert json.loads(codec.text(orders, inner)) == {"id": 5}
    assert json.loads(codec.text(orders, first)) == {"id": 6}
    assert json.loads(codec.shown(inner) or "") == {"x": 0, "id": 5}


def test_what_is_shown(codec: Codec, registry: MemoryRegistry) -> None:
    body = f"""{IMPORTS}message M {{ int64 id = 1; .google.protobuf.Int64Value w = 2; E e = 3;
        .google.protobuf.Timestamp at = 4; map<int32, bytes> m = 5; repeated M more = 6;
        optional string gone = 7; enum E {{ NONE = 0; RED = 1; }} }}"""
    row = {"id": "5", "w": "9007199254740993", "e": "RED", "at": "2026-01-01T00:00:00Z"}
    value = written(registry, body, {**row, "m": {"1": "AP8="}, "more": [{}]})
    assert codec.shown(value) == (
        '{"id":5,"w":9007199254740993,"e":"RED","at":"2026-01-01T00:00:00Z","m":{"1":"AP8="},'
        '"more":[{"id":0,"e":"NONE","m":{},"more":[]}]}'
    )


def test_references_are_followed(codec: Codec, registry: MemoryRegistry) -> None:
    other = Schema(SchemaType.PROTOBUF, 'syntax = "proto3"; package p; message O { int32 n = 1; }')
    registry.register("others", other)
    body = 'import "o.proto"; message M { p.O o = 1; }'
    reference = (Reference("o.proto", "others", 1),)
    value = written(registry, body, {"o": {"n": 3}}, references=reference)
    assert json.loads(codec.text(definition({"o": "struct<n:int>"}), value)) == {"o": {"n": 3}}


BAD = [
    (b"", "0 bytes"),
    (b"\1\0\0\0\1\0", "the byte 1"),
    (b"\0\0\0\0\x63\0", "no schema 99"),
    (b"\0\0\0\0\1", "cut off"),
    (b"\0\0\0\0\1\x80\x80\x80\x80\x80\x80", "cut off"),
    (b"\0\0\0\0\1\1", "-1 numbers name"),
    (b"\0\0\0\0\1\xfe\xff\xff\xff\x0f", "2147483647 numbers name"),
    (b"\0\0\0\0\1\2", "cut off"),
    (b"\0\0\0\0\1\2\2", r"no message at \[1\]"),
    (b"\0\0\0\0\1\2\1", r"no message at \[-1\]"),
    (b"\0\0\0\0\1\4\0\0", r"no message at \[0, 0\]"),
    (b"\0\0\0\0\1\0\x0a\5ab", "schema 1 says"),
    (b"\0\0\0\0\1\0\x0a\xff\xff\xff\xff\x07a", "schema 1 says"),
    (b"\0\0\0\0\1\0\x0a\1\xff", "schema 1 says"),
    (b"\0\0\0\0\1\0\x1b" + b"\x1b" * 5000, "schema 1 says"),
    (b"\0\0\0\0\1\0" + b"\0" * (40 << 20), "more than 256 MB"),
]


@pytest.mark.parametrize(("value", "words"), BAD)
def test_bad_bytes_say_why(
    codec: Codec, registry: MemoryRegistry, value: bytes, words: str
) -> None:
    written(registry, "message M { string name = 1; }", {})
    with pytest.raises(NotDecoded, match=words):
        codec.text(definition({"name": "string"}), value)
    assert codec.shown(value) is None


def test_messages_in_each_other_end(codec: Codec, registry: MemoryRegistry) -> None:
    """A few bytes a level, thousands of levels: the decoder gives up, and nothing else does."""
    value = written(registry, "message M { M m = 1; int32 id = 2; }", {"id": 1})
    shape = definition({"id": "int", "m": "struct<id:int>"})
    assert json.loads(codec.text(shape, value)) == {"id": 1, "m": None}
    data = b""
    for _ in range(3000):
        size, length = len(data), b""
        while size >= 0x80:
            length += bytes([size & 0x7F | 0x80])
            size >>= 7
        data = b"\x0a" + length + bytes([size]) + data
    with pytest.raises(NotDecoded, match="schema 1 says"):
        codec.text(shape, value[:6] + data)


def test_a_schema_of_another_type(codec: Codec, registry: MemoryRegistry) -> None:
    registry.register("elsewhere", Schema(SchemaType.AVRO, '"string"'))
    with pytest.raises(NotDecoded, match="schema 1 is of type AVRO"):
        codec.text(definition({"id": "int"}), b"\0\0\0\0\1\0")


def test_fields_keep_their_numbers(registry: MemoryRegistry) -> None:
    def numbers(columns: dict[str, str]) -> tuple[int, list[tuple[str, int]]]:
        known = KnownSchemas(registry)  # another process, which knows what the registry does
        id = known.id_for(definition(columns))
        message = known.protobuf(id).parsed().message()
        return id, [(field.name, field.number) for field in message.fields]

    one = numbers({"a": "int", "r": "struct<x:int>"})
    assert one == (1, [("a", 1), ("r", 2)])
    two = numbers({"b": "string", "r": "struct<y:int,x:int>", "a": "int"})
    assert two == (2, [("b", 3), ("r", 2), ("a", 1)])
    assert numbers({"b": "string", "r": "struct<y:int,x:int>", "a": "int"}) == two
    third = numbers({"b": "string", "c": "int"})
    assert third == (3, [("b", 3), ("c", 4)])
    assert numbers({"a": "int", "b": "string", "c": "int"})[1] == [("a", 5), ("b", 3), ("c", 4)]
    inner = KnownSchemas(registry).protobuf(2).parsed().message().fields_by_name["r"].message_type
    assert inner is not None
    assert {field.name: field.number for field in inner.fields} == {"y": 2, "x": 1}


def test_names_do_not_get_in_each_others_way(codec: Codec) -> None:
    odd = {"google": "timestamp", "orders": "struct<x:int>", "Orders_": "int", "message": "string"}
    shape = definition({**odd, "Place": "int", "place": "struct<place:int>"})
    value = codec.writer(shape)({"orders": '{"x":1}', "place": '{"place":2}'})
    found = json.loads(codec.text(shape, value))
    assert (found["orders"], found["place"]) == ({"x": 1}, {"place": 2})


def test_the_same_row_gives_the_same_bytes(codec: Codec) -> None:
    shape = definition({"k": "map<string,int>"})
    pairs = [f'"{n}":{n}' for n in range(50)]
    one = codec.writer(shape)({"k": "{" + ",".join(pairs) + "}"})
    other = codec.writer(shape)({"k": "{" + ",".join(reversed(pairs)) + "}"})
    assert one == other
