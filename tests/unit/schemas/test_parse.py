"""What is no schema is refused with a place and a reason, whatever it is."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from mainstem.errors import MainstemError
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.avro_print import with_references
from mainstem.schemas.json_parse import JsonSchema
from mainstem.schemas.model import Reference, Resolve, Schema, SchemaType
from mainstem.schemas.parse import parse
from mainstem.schemas.protobuf_parse import ProtobufSchema

AVRO, JSON, PROTOBUF = SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF
P3 = 'syntax = "proto3"; '


def record(*fields: Any, **more: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields), **more})


def code_of(schema: Schema, resolve: Resolve) -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        parse(schema, resolve)
    return caught.value


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1, column 1"),
        ("string", "line 1, column 1"),
        ('{"type":\n "record",}', "line 2, column"),
        ('"strin"', "/"),
        ("3", "/"),
        ("{}", "/"),
        ('{"type": {"type": "string"}}', "/type"),
        ('{"type": "array"}', "/"),
        ('{"type": "map", "values": "x"}', "/values"),
        ('["int", "int"]', "/1"),
        ('["int", ["null"]]', "/1"),
        ('[{"type": "array", "items": "int"}, {"type": "array", "items": "long"}]', "/1"),
        ('{"type": "record", "name": "R"}', "/fields"),
        ('{"type": "record", "name": "a-b", "fields": []}', "/name"),
        ('{"type": "record", "name": "1", "fields": []}', "/name"),
        ('{"type": "record", "name": "int", "fields": []}', "/name"),
        ('{"type": "record", "name": "R", "namespace": "a..b", "fields": []}', "/namespace"),
        ('{"type": "enum", "name": "E", "symbols": ["A", "A"]}', "/symbols"),
        ('{"type": "enum", "name": "E", "symbols": ["a b"]}', "/symbols"),
        ('{"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}', "/default"),
        ('{"type": "fixed", "name": "F", "size": -1}', "/size"),
        ('{"type": "fixed", "name": "F", "size": true}', "/size"),
        (record({"name": "a", "type": "int"}, {"name": "a", "type": "int"}), "/fields/1"),
        (record({"name": "a", "type": "int", "default": "x"}), "/fields/0/default"),
        (record({"name": "a", "type": "int", "default": 2**31}), "/fields/0/default"),
        (record({"name": "a", "type": "boolean", "default": 1}), "/fields/0/default"),
        (record({"name": "a", "type": "bytes", "default": "\u0100"}), "/fields/0/default"),
        (record({"name": "a", "type": ["int", "string"], "default": None}), "/fields/0/default"),
        (record({"name": "a", "type": "int", "order": "up"}), "/fields/0/order"),
        (record({"name": "a", "type": "int", "aliases": "b"}), "/fields/0/aliases"),
        (record({"name": "a", "type": record()}), "/fields/0/type"),
        ('{"type": "int", "type": "long"}', "a value"),
        ('{"type": "string", "x": NaN}', "a value"),
        ('{"type": "string", "x": "\\ud800"}', "an escape"),
    ],
)
def test_malformed_avro(text: str, where: str, no_references: Resolve) -> None:
    error = code_of(Schema(AVRO, text), no_references)
    assert error.code == "SCHEMA_MALFORMED"
    assert str(error.params["where"]).startswith(where)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("{", "line 1, column 2"),
        ("[]", "/"),
        ('"string"', "/"),
        ('{"type": "text"}', "/type"),
        ('{"properties": {"a": {"minimum": "x"}}}', "/properties/a/minimum"),
        ('{"$schema": "http://json-schema.org/draft-03/schema#"}', "/$schema"),
        ('{"$schema": "urn:mine"}', "/$schema"),
        ('{"$schema": 4}', "/$schema"),
        ('{"properties": {"a": {"$ref": "#/definitions/b"}}}', "/properties/a/$ref"),
        ('{"$ref": "#nowhere"}', "/$ref"),
        ('{"pattern": "("}', "/pattern"),
        ('{"patternProperties": {"[": {}}}', "/patternProperties/["),
        ('{"maximum": 1e999}', "a value"),
    ],
)
def test_malformed_json_schema(text: str, where: str, no_references: Resolve) -> None:
    error = code_of(Schema(JSON, text), no_references)
    assert error.code == "SCHEMA_MALFORMED"
    assert error.params["where"] == where


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (" ", "line 1, column 1"),
        ("hello", "line 1, column 1"),
        ("\0", "line 1, column 1"),
        (f"{P3}\nmessage M {{ int32 a = 1 }}", "line 2, column 25"),
        ("message M { optional int32 a = 1 }", "line 1, column 34"),
        (f"{P3}\nmessage M {{ N n = 1; }}", "line 2, column 13"),
        (f"{P3} message M {{ int32 a = 1; int32 b = 1; }}", "line 1"),
        (f"{P3} message M {{ required int32 a = 1; }}", "line 1"),
        (f"{P3} enum E {{ A = 1; }}", "line 1"),
        (f"{P3} message {'M {' * 40}{'}' * 40}", "line 1"),
        ('syntax = "proto9";', "line 1"),
        (f"{P3} message M {{{''.join(f'string f{n}={n};' for n in range(1, 9000))}}}", "its desc"),
    ],
)
def test_malformed_protobuf(text: str, where: str, no_references: Resolve) -> None:
    error = code_of(Schema(PROTOBUF, text), no_references)
    assert error.code == "SCHEMA_MALFORMED"
    assert str(error.params["where"]).startswith(where)


@pytest.mark.parametrize(
    "address",
    [
        "http://json-schema.org/draft-04/schema",
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema#",
    ],
)
def test_drafts_of_json_schema(address: str, no_references: Resolve) -> None:
    parsed = parse(Schema(JSON, json.dumps({"$schema": address})), no_references)
    assert isinstance(parsed, JsonSchema)
    assert parsed.draft.META_SCHEMA["$schema"].rstrip("#") == address.rstrip("#")


@pytest.mark.parametrize("type", SchemaType)
@pytest.mark.parametrize(
    "text",
    [
        "[" * 10_000 + "]" * 10_000,
        '{"type": "array", "items": ' * 10_000 + '"int"' + "}" * 10_000,
        '{"a":' * 10_000,
        '"\\"' * 10_000,
        'syntax = "proto2"; message M { ' + "repeated group G = 1 { " * 10_000 + "}" * 10_001,
        '"' + "x" * 1_000_000 + '"',
        json.dumps({f"k{n}": n for n in range(100_000)}),
        "a" * 600_000,
        "{" * 200_000 + "[" * 200_000,
        "\ud800",
    ],
    ids=lambda text: f"{text[:12]}-{len(text)}",
)
def test_monsters_are_refused(type: SchemaType, text: str, no_references: Resolve) -> None:
    assert code_of(Schema(type, text), no_references).code in (
        "SCHEMA_MALFORMED",
        "SCHEMA_TOO_LARGE",
    )


def test_deep_and_large_are_told(no_references: Resolve) -> None:
    deep = code_of(Schema(AVRO, "[" * 10_000), no_references)
    large = code_of(Schema(JSON, json.dumps({"title": "x" * 1_000_000})), no_references)
    assert (deep.code, large.code) == ("SCHEMA_TOO_LARGE", "SCHEMA_TOO_LARGE")
    nested: dict[str, Any] = {}
    for _ in range(80):
        nested = {"items": nested}
    assert code_of(Schema(JSON, json.dumps(nested)), no_references).code == "SCHEMA_TOO_LARGE"


def test_defaults_of_unions_of_records_take_no_time(no_references: Resolve) -> None:
    """Every value could be any of several records, at every level."""
    names = [f"R{n}" for n in range(8)]
    definitions = [
        {
            "type": "record",
            "name": name,
            "fields": [{"name": "f", "type": ["null", *names[:index]]}],
        }
        for index, name in enumerate(names)
    ]
    value: Any = "nothing of the kind"
    for _ in range(50):
        value = {"f": value}
    text = record({"name": "u", "type": definitions, "default": value})
    assert code_of(Schema(AVRO, text), no_references).params["where"] == "/fields/0/default"


def test_avro_references(resolving: Callable[..., Resolve]) -> None:
    money = Schema(AVRO, '{"type": "fixed", "name": "shop.Money", "size": 8}')
    item = Schema(
        AVRO,
        '{"type": "record", "name": "shop.Item", "fields": [{"name": "price", "type": "Money"}]}',
        (Reference("shop.Money", "money", 1),),
    )
    order = Schema(
        AVRO,
        '{"type": "record", "name": "shop.Order", "fields": [{"name": "a", "type": "Item"}, '
        '{"name": "b", "type": "shop.Item"}]}',
        (Reference("shop.Item", "item", 3),),
    )
    parsed = parse(order, resolving({("money", 1): money, ("item", 3): item}))
    assert isinstance(parsed, AvroSchema)
    whole = with_references(parsed)
    assert whole["fields"][0]["type"]["fields"][0]["type"]["size"] == 8
    assert whole["fields"][1]["type"] == "Item"
    again = parse(Schema(AVRO, json.dumps(whole)), resolving({}))
    assert isinstance(again, AvroSchema)
    assert again.names.keys() == parsed.names.keys()


def test_json_references(resolving: Callable[..., Resolve]) -> None:
    item = Schema(JSON, '{"definitions": {"price": {"type": "number"}}, "type": "object"}')
    text = '{"$id": "http://shop/order", "properties": {"p": {"$ref": "item#/definitions/price"}}}'
    parsed = parse(
        Schema(JSON, text, (Reference("item", "item", 1),)), resolving({("item", 1): item})
    )
    assert isinstance(parsed, JsonSchema)
    assert parsed.validator().is_valid({"p": 1.5})
    assert not parsed.validator().is_valid({"p": "1.5"})


def test_json_references_of_references(resolving: Callable[..., Resolve]) -> None:
    """Each relative to the place of the schema that has it."""
    known = {
        ("item", 1): Schema(
            JSON,
            '{"$id": "http://shop/parts/item.json", "properties": {"p": {"$ref": "money.json"}}}',
            (Reference("money.json", "money", 1),),
        ),
        ("money", 1): Schema(JSON, '{"type": "number"}'),
    }
    text = '{"$id": "http://shop/order.json", "items": {"$ref": "parts/item.json"}}'
    schema = Schema(JSON, text, (Reference("parts/item.json", "item", 1),))
    parsed = parse(schema, resolving(known))
    assert isinstance(parsed, JsonSchema)
    assert parsed.validator().is_valid([{"p": 1}])
    assert not parsed.validator().is_valid([{"p": "1"}])


def test_additional_items_beside_no_list(no_references: Resolve) -> None:
    """Where the library's own validators fail."""
    parsed = parse(Schema(JSON, '{"items": true, "additionalItems": false}'), no_references)
    assert isinstance(parsed, JsonSchema)
    assert parsed.validator().is_valid([1])


def test_protobuf_references_as_text_and_as_descriptor(resolving: Callable[..., Resolve]) -> None:
    inner = "package a; message N { map<string, int32> counts = 1; message O { } O o = 2; }"
    compiled = parse(Schema(PROTOBUF, P3 + inner), resolving({}))
    assert isinstance(compiled, ProtobufSchema)
    for text in (P3 + inner, base64.b64encode(compiled.file.SerializeToString()).decode()):
        outer = Schema(
            PROTOBUF,
            P3 + 'import "dir/n.proto"; message M { a.N n = 1; }',
            (Reference("dir/n.proto", "n", 1),),
        )
        parsed = parse(outer, resolving({("n", 1): Schema(PROTOBUF, text)}))
        assert isinstance(parsed, ProtobufSchema)
        message = parsed.message_class()()
        message.n.counts["x"] = 1
        assert message.n.counts["x"] == 1


def test_descriptor_of_a_client(no_references: Resolve) -> None:
    """As Confluent's Python client sends it, with names of imports that all know."""
    text = 'import "google/protobuf/timestamp.proto"; import "google/type/date.proto"; ' + (
        'import "confluent/meta.proto"; message M { google.protobuf.Timestamp t = 1; '
        'google.type.Date d = 2; string p = 3 [(confluent.field_meta).tags = "PII"]; }'
    )
    parsed = parse(Schema(PROTOBUF, P3 + text), no_references)
    assert isinstance(parsed, ProtobufSchema)
    file = FileDescriptorProto.FromString(parsed.file.SerializeToString())
    file.name = "user.proto"
    sent = Schema(PROTOBUF, base64.b64encode(file.SerializeToString()).decode())
    again = parse(sent, no_references)
    assert isinstance(again, ProtobufSchema)
    assert [field.name for field in again.message().fields] == ["t", "d", "p"]
    broken = FileDescriptorProto(name="x", dependency=["google/protobuf/timestamp.proto"])
    broken.message_type.add(name="M").field.add(
        name="a", number=1, type=11, type_name=".nowhere.N", label=1
    )
    bad = Schema(PROTOBUF, base64.b64encode(broken.SerializeToString()).decode())
    assert code_of(bad, no_references).code == "SCHEMA_MALFORMED"
    assert timestamp_pb2.DESCRIPTOR.name in [item.name for item in again.imports]


def test_messages_by_index(no_references: Resolve) -> None:
    text = P3 + "message A { map<string, int32> m = 1; message B {} } message C { message D {} }"
    parsed = parse(Schema(PROTOBUF, text), no_references)
    assert isinstance(parsed, ProtobufSchema)
    names = [parsed.message(way).full_name for way in [(0,), (0, 1), (1,), (1, 0)]]
    assert names == ["A", "A.B", "C", "C.D"]
    with pytest.raises(MainstemError):
        parsed.message((2,))


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (AVRO, '"shop.Item"'),
        (JSON, '{"$ref": "item.json"}'),
        (PROTOBUF, P3 + 'import "item.proto"; message M { Item i = 1; }'),
    ],
)
def test_what_is_not_among_the_references(
    type: SchemaType, text: str, no_references: Resolve
) -> None:
    expected = "SCHEMA_MALFORMED" if type is AVRO else "SCHEMA_REFERENCE_UNKNOWN"
    assert code_of(Schema(type, text), no_references).code == expected
    wrong = Schema(type, text, (Reference("x", "nobody", 1),))
    assert code_of(wrong, no_references).code == "SCHEMA_REFERENCE_UNKNOWN"


@pytest.mark.parametrize("type", SchemaType)
def test_references_in_a_circle(type: SchemaType, resolving: Callable[..., Resolve]) -> None:
    text = {AVRO: '"int"', JSON: "{}", PROTOBUF: P3}[type]
    known = {
        ("a", 1): Schema(type, text, (Reference("b.proto", "b", 1),)),
        ("b", 1): Schema(type, text, (Reference("c.proto", "c", 1),)),
        ("c", 1): Schema(type, text, (Reference("a.proto", "a", 1),)),
    }
    error = code_of(known["a", 1], resolving(known))
    assert error.code == "SCHEMA_REFERENCE_CIRCLE"
    assert "b version 1 -> c version 1 -> a version 1 -> b version 1" in error.message


@pytest.mark.parametrize(
    ("document", "circle"),
    [
        ({"$ref": "#"}, True),
        ({"anyOf": [{"$ref": "#"}, {"type": "string"}]}, True),
        ({"$ref": "#/definitions/a", "definitions": {"a": {"not": {"$ref": "#"}}}}, True),
        (
            {"definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}},
            True,
        ),
        ({"dependencies": {"a": {"$ref": "#"}}}, True),
        ({"properties": {"a": {"$ref": "#"}}}, False),
        ({"anyOf": [{"items": {"$ref": "#"}}, {"type": "string"}]}, False),
        ({"allOf": [{"$ref": "#/definitions/a"}] * 2, "definitions": {"a": {}}}, False),
    ],
)
def test_a_schema_leads_back_to_itself(
    document: dict[str, Any], circle: bool, no_references: Resolve
) -> None:
    """Through a part of the value that ends with the value; for the value itself it never would."""
    schema = Schema(JSON, json.dumps(document))
    if circle:
        assert code_of(schema, no_references).code == "SCHEMA_REFERENCE_CIRCLE"
    else:
        parse(schema, no_references)


def test_many_references_are_bounded(resolving: Callable[..., Resolve]) -> None:
    known = {
        ("s", n): Schema(JSON, "{}", (Reference(f"r{n + 1}", "s", n + 1),)) for n in range(1000)
    }
    error = code_of(Schema(JSON, "{}", (Reference("r0", "s", 0),)), resolving(known))
    assert error.code == "SCHEMA_TOO_LARGE"


def test_one_name_for_two_schemas(resolving: Callable[..., Resolve]) -> None:
    known = {("s", n): Schema(JSON, "{}") for n in (1, 2)}
    both = Schema(JSON, "{}", (Reference("r", "s", 1), Reference("r", "s", 2)))
    assert code_of(both, resolving(known)).code == "SCHEMA_REFERENCE_UNKNOWN"


@pytest.mark.parametrize(
    "name", ["../x.proto", "/etc/x.proto", "a/./b.proto", "a\\b", "", "x" * 999]
)
def test_imports_stay_in_their_folder(name: str, resolving: Callable[..., Resolve]) -> None:
    known = {("s", 1): Schema(PROTOBUF, P3)}
    schema = Schema(PROTOBUF, P3, (Reference(name, "s", 1),))
    assert code_of(schema, resolving(known)).code == "SCHEMA_REFERENCE_UNKNOWN"


@pytest.mark.parametrize("way", ["allOf", "anyOf", "oneOf"])
def test_a_value_is_not_held_against_schemas_without_end(way: str, no_references: Resolve) -> None:
    """Each of thirty leads to the next one twice: that would be a billion."""

    def chain(length: int) -> Schema:
        names = [f"#/definitions/a{number + 1}" for number in range(length)]
        inner = {f"a{n}": {way: [{"$ref": name}, {"$ref": name}]} for n, name in enumerate(names)}
        document = {"definitions": {**inner, f"a{length}": {}}, "$ref": "#/definitions/a0"}
        return Schema(JSON, json.dumps(document))

    parse(chain(8), no_references)
    assert code_of(chain(30), no_references).code == "SCHEMA_TOO_LARGE"
