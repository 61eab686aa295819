"""What records of a schema are called."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.cli.schema_files import no_references
from mainstem.schemas import wire
from mainstem.schemas.model import Schema, SchemaType
from mainstem.schemas.parse import parse
from mainstem.schemas.record_names import record_names

A = {"type": "record", "name": "A", "namespace": "com.shop", "fields": []}
FILE = """syntax = "proto3"; package com.shop;
message A { message Inner { map<string, int32> m = 1; } Inner i = 1; } message B {}
enum E { X = 0; }"""


@pytest.mark.parametrize(
    ("type_", "text", "names"),
    [
        ("AVRO", json.dumps(A), {"com.shop.A"}),
        ("AVRO", json.dumps(["null", A, {**A, "name": "B"}]), {"com.shop.A", "com.shop.B"}),
        ("AVRO", '"string"', set()),
        ("AVRO", '{"type": "enum", "name": "E", "symbols": []}', set()),
        ("JSON", '{"title": "Order placed"}', {"Order placed"}),
        ("JSON", "{}", set()),
        ("JSON", "true", set()),
        ("PROTOBUF", FILE, {"com.shop.A", "com.shop.A.Inner", "com.shop.B"}),
        ("PROTOBUF", 'syntax = "proto3"; message M {}', {"M"}),
    ],
)
def test_names(type_: str, text: str, names: set[str]) -> None:
    schema = Schema(SchemaType(type_), text)
    assert record_names(parse(schema, no_references)).keys() == names


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5).map(tuple))
def test_places_of_messages(place: tuple[int, ...]) -> None:
    for form in wire.index_forms(place):
        assert wire.message_indexes(wire.header(1) + form + b"x") == (place, 5 + len(form))
