"""Schemas out of samples, definitions out of schemas; fastavro and jsonschema are the referees."""

from __future__ import annotations

import itertools
import json
import sys
from types import ModuleType
from typing import Any

import fastavro
import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse as parse_sql
from mainstem.errors import MainstemError
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.avro_read import reading
from mainstem.schemas.infer import infer
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.schemas.parse import parse
from mainstem.schemas.to_python import to_python
from mainstem.schemas.to_sql import to_sql
from mainstem.vocabulary import Column


def nothing(reference: Reference) -> Schema:
    raise AssertionError(reference)


def sql(kind: SchemaType, document: Any, topic: str = "clicks") -> str:
    return to_sql(parse(Schema(kind, json.dumps(document)), nothing), topic)


def columns(text: str) -> dict[str, str]:
    """The columns as the language reads them."""
    (found,) = parse_sql(text, "test", functions=None)
    assert isinstance(found, Create)
    return {column.name: column.type for column in found.definition.columns}


def avro(*fields: tuple[str, Any]) -> dict[str, Any]:
    members = [{"name": name, "type": type_} for name, type_ in fields]
    return {"type": "record", "name": "R", "fields": members}


_names = st.from_regex(r"[a-z]{1,3}", fullmatch=True)
_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "text", "2026-01-01", "2026-01-01T00:00:00Z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=8,
)
_samples = st.lists(st.dictionaries(_names, _values, max_size=4), min_size=1, max_size=4)


@given(_samples)
def test_all_samples_fit_the_json_schema(samples: list[dict[str, Any]]) -> None:
    found = infer(samples, SchemaType.JSON, "R")
    validator = parse(found, nothing)
    for sample in samples:
        validator.validator().validate(sample)  # type: ignore[union-attr]
    with pytest.raises(jsonschema.ValidationError):
        validator.validator().validate({"not in a sample": 1})  # type: ignore[union-attr]


@given(_samples)
def test_all_samples_fit_the_avro_schema(samples: list[dict[str, Any]]) -> None:
    found = infer(samples, SchemaType.AVRO, "R")
    parse(found, nothing)
    schema = fastavro.parse_schema(json.loads(found.text))
    for sample in samples:
        assert fastavro.validation.validate(sample, schema)


def test_what_may_be_absent() -> None:
    samples = [{"a": 1, "b": 2, "c": None}, {"a": 1.5, "c": "x"}]
    found = json.loads(infer(samples, SchemaType.AVRO, "a-b").text)
    assert found["name"] == "a_b"
    assert found["fields"] == [
        {"name": "a", "type": "double"},
        {"name": "b", "type": ["null", "long"], "default": None},
        {"name": "c", "type": ["null", "string"], "default": None},
    ]
    document = json.loads(infer(samples, SchemaType.JSON, "R").text)
    assert document["required"] == ["a", "c"]


@pytest.mark.parametrize(
    ("samples", "kind"),
    [
        ([], SchemaType.JSON),
        ([1], SchemaType.JSON),
        ([{"a": 1}, None], SchemaType.JSON),
        ([{"a": 1}, [1]], SchemaType.AVRO),
        ([{"a-b": 1}], SchemaType.AVRO),
        ([{"a": 2**63}], SchemaType.AVRO),
        ([{"a": 1}, 1], SchemaType.PROTOBUF),
        ([{f"k{number}": 1 for number in range(1001)}], SchemaType.JSON),
    ],
)
def test_what_cannot_be_derived(samples: list[Any], kind: SchemaType) -> None:
    with pytest.raises(MainstemError) as raised:
        infer(samples, kind, "R")
    assert raised.value.code == "SCHEMA_NOT_DERIVED"


def test_samples_are_not_nested_without_end() -> None:
    value: Any = 1
    for _ in range(40):
        value = {"a": value}
    with pytest.raises(MainstemError) as raised:
        infer([value], SchemaType.JSON, "R")
    assert raised.value.code == "SCHEMA_NOT_DERIVED"


def test_avro_columns() -> None:
    """They are also columns that the reader of Avro takes."""
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
    document = avro(
        ("id", "long"),
        ("t", {"type": "int", "logicalType": "time-millis"}),
        ("u", {"type": "string", "logicalType": "uuid"}),
        ("f", {"type": "fixed", "name": "F", "size": 16}),
        ("order", ["null", "int"]),
        ("at", {"type": "long", "logicalType": "timestamp-millis"}),
        ("day", {"type": "int", "logicalType": "date"}),
        ("price", decimal),
        ("kind", {"type": "enum", "name": "K", "symbols": ["A"]}),
        ("tags", {"type": "array", "items": ["string", "null"]}),
        ("m", {"type": "map", "values": "double"}),
        ("who", {"type": "record", "name": "W", "fields": [{"name": "end", "type": "bytes"}]}),
        ("either", ["string", "long"]),
        ("ID", "string"),
        ("huge", {**decimal, "precision": 40}),
    )
    text = sql(SchemaType.AVRO, document)
    found = [Column(name, type_) for name, type_ in columns(text).items()]
    parsed = parse(Schema(SchemaType.AVRO, json.dumps(document)), nothing)
    assert isinstance(parsed, AvroSchema)
    assert reading(parsed.root, found)
    assert columns(text) == {
        "id": "bigint",
        "t": "int",
        "u": "string",
        "f": "binary",
        "order": "int",
        "at": "timestamp",
        "day": "date",
        "price": "decimal(12,2)",
        "kind": "string",
        "tags": "array<string>",
        "m": "map<string,double>",
        "who": "struct<`end`:binary>",
    }
    assert text.splitlines()[:3] == [
        "-- left out: either: it is one of several types: [string, long]",
        "-- left out: ID: another field has the same name but for its case",
        "-- left out: huge: decimal(40, 2) has more than 38 digits",
    ]
    assert text.endswith(") WITH (format = 'avro');")


def test_a_topic_of_another_name() -> None:
    text = sql(SchemaType.AVRO, avro(("id", "long")), "shop.nodes")
    assert "CREATE STREAM shop_nodes (" in text
    assert "topic = 'shop.nodes'" in text


def test_shared_types_do_not_multiply_without_end() -> None:
    """Thirty records, each with the next one twice, are a billion fields."""
    type_: Any = "int"
    for number in range(30):
        name = f"R{number}"
        fields = [{"name": "a", "type": type_}]
        if number:
            fields.append({"name": "b", "type": f"R{number - 1}"})
        type_ = {"type": "record", "name": name, "fields": fields}
    with pytest.raises(MainstemError) as raised:
        sql(SchemaType.AVRO, avro(("big", type_), ("id", "int")))
    assert raised.value.code == "SCHEMA_NOT_DERIVED"
    definitions: dict[str, Any] = {"d0": {"type": "integer"}}
    for number in range(1, 31):
        inner = {"$ref": f"#/definitions/d{number - 1}"}
        definitions[f"d{number}"] = {"type": "object", "properties": {"a": inner, "b": inner}}
    properties = {"big": {"$ref": "#/definitions/d30"}, "id": {"type": "integer"}}
    document = {"properties": properties, "definitions": definitions}
    assert "-- left out: big: it is too large" in sql(SchemaType.JSON, document)


def test_json_columns() -> None:
    properties = {
        "id": {"type": "integer"},
        "at": {"type": ["null", "string"], "format": "date-time"},
        "amount": {"anyOf": [{"type": "null"}, {"type": "number"}]},
        "who": {"$ref": "#/definitions/who"},
        "by_name": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "list": {"type": "array", "items": {"enum": ["a", "b"]}},
        "any": {},
        "two": {"type": ["string", "integer"]},
        "node": {"$ref": "#"},
    }
    who = {"type": "object", "properties": {"first name": {"type": "string"}}}
    document = {"type": "object", "properties": properties, "definitions": {"who": who}}
    text = sql(SchemaType.JSON, document)
    assert columns(text) == {
        "id": "bigint",
        "at": "timestamp",
        "amount": "double",
        "who": "struct<`first name`:string>",
        "by_name": "map<string,boolean>",
        "list": "array<string>",
    }
    assert text.count("-- left out: ") == 3


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        (SchemaType.AVRO, "string"),
        (SchemaType.AVRO, avro()),
        (SchemaType.AVRO, avro(("a", ["int", "string"]))),
        (SchemaType.AVRO, avro(("id", "long"), ("next", ["null", "R"]))),
        (SchemaType.JSON, {"type": "string"}),
        (SchemaType.JSON, True),
    ],
)
def test_nothing_to_make_a_stream_of(kind: SchemaType, document: Any) -> None:
    with pytest.raises(MainstemError) as raised:
        sql(kind, document)
    assert raised.value.code == "SCHEMA_NOT_DERIVED"


def test_names_cannot_leave_their_comment() -> None:
    properties = {"a": {"type": "integer"}, "x\nDROP TABLE a; --": {}, "b`c": {"type": "string"}}
    text = sql(SchemaType.JSON, {"properties": properties})
    assert columns(text) == {"a": "bigint", "b`c": "string"}


# -- Python

_numbers = itertools.count()


def last_class(schema: Schema) -> type[BaseModel]:
    """The class of the record itself, out of a module that was run."""
    text = to_python(parse(schema, nothing), "test")
    module = ModuleType(f"derived_{next(_numbers)}")
    sys.modules[module.__name__] = module  # where pydantic looks names up
    try:
        exec(compile(text, module.__name__, "exec"), module.__dict__)
        found = [
            one
            for one in vars(module).values()
            if getattr(one, "__module__", "") == module.__name__
        ]
        found[-1].model_rebuild()
        assert issubclass(found[-1], BaseModel)
        return found[-1]
    finally:
        del sys.modules[module.__name__]


@settings(max_examples=50)  # to make classes takes long, and the schemas are tried above
@given(_samples, st.sampled_from([SchemaType.AVRO, SchemaType.JSON]))
def test_all_samples_fit_the_classes(samples: list[dict[str, Any]], kind: SchemaType) -> None:
    made = last_class(infer(samples, kind, "R"))
    for sample in samples:
        made.model_validate_json(json.dumps(sample))


def test_avro_classes() -> None:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "class", "type": "string", "default": 'a"b'},
        {"name": "str", "type": ["null", "string"], "default": None},
        {"name": "_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "Next", "type": ["null", "Node"], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    ]
    document = {"type": "record", "name": "Node", "namespace": "shop", "fields": fields, "doc": "x"}
    made = last_class(Schema(SchemaType.AVRO, json.dumps(document)))
    assert made.__doc__ == "x"
    inner = {"id": 2, "_at": "2026-01-01T00:00:00Z", "kind": "B"}
    row = made.model_validate({"id": 1, "_at": "2026-01-01T00:00:00Z", "kind": "A", "Next": inner})
    dumped = row.model_dump(mode="json")
    assert dumped["class"] == 'a"b'
    assert dumped["Next"]["kind"] == "B"
    assert dumped["str"] is None
    for wrong in ({"kind": "C"}, {"id": "x"}, {"Next": 1}):
        with pytest.raises(ValidationError):
            made.model_validate({**inner, **wrong})


def test_json_classes() -> None:
    document = {
        "title": "an order",
        "type": "object",
        "required": ["id", "datetime"],
        "additionalProperties": False,
        "properties": {
            "id": {"type": "integer"},
            "datetime": {"type": "string", "format": "date-time"},
            "a b": {"const": 1},
            "parts": {"type": "array", "items": {"$ref": "#"}},
            "who": {"properties": {"name": {"type": ["string", "null"]}}},
        },
    }
    made = last_class(Schema(SchemaType.JSON, json.dumps(document)))
    assert made.__name__ == "AnOrder"
    part = {"id": 1, "datetime": "2026-01-01T00:00:00Z"}
    made.model_validate({**part, "parts": [part], "a b": 1, "who": {"name": None}})
    for wrong in ({"more": 1}, {"a b": 2}, {"parts": [{}]}, {"datetime": "x"}):
        with pytest.raises(ValidationError):
            made.model_validate({**part, **wrong})


@pytest.mark.parametrize(
    "schema",
    [
        Schema(SchemaType.AVRO, '"string"'),
        Schema(SchemaType.JSON, '{"type": "string"}'),
        Schema(SchemaType.PROTOBUF, 'syntax = "proto3"; enum E { A = 0; }'),
    ],
)
def test_no_classes(schema: Schema) -> None:
    with pytest.raises(MainstemError) as raised:
        to_python(parse(schema, nothing), "test")
    assert raised.value.code == "SCHEMA_NOT_DERIVED"
