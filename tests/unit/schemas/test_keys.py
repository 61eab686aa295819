"""Keys in a format of their own: read like values, and always the same bytes for the same key."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mainstem.definitions.model import Definition, Format, Kind
from mainstem.schemas import wire
from mainstem.schemas.codec import Codec, NotDecoded
from mainstem.schemas.known import KnownSchemas
from mainstem.schemas.model import Schema, SchemaType
from mainstem.testing.registry import MemoryRegistry, written_by
from mainstem.vocabulary import Column, SourceLocation

COLUMNS = (Column("id", "bigint"), Column("at", "timestamp"), Column("name", "string"))


def keys_of(key_format: Format, *key: str, **more: Any) -> Definition:
    here = SourceLocation("x.sql", 1, 1)
    whole = Definition(
        "orders", Kind.TABLE, "t", here, "", COLUMNS, key=key, key_format=key_format, **more
    )
    assert whole.keys is not None
    return whole.keys


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


def codec(registry: MemoryRegistry) -> Codec:
    return Codec(KnownSchemas(registry))


ROW = {"id": "5", "at": '"2026-01-01T00:00:00.000001Z"'}


@pytest.mark.parametrize("form", [Format.AVRO, Format.PROTOBUF, Format.JSON_SCHEMA, Format.JSON])
def test_two_writers_give_the_same_bytes(registry: MemoryRegistry, form: Format) -> None:
    keys = keys_of(form, "id", "at")
    one, other = codec(registry).writer(keys)(ROW), codec(registry).writer(keys)(ROW)
    assert one == other
    found = json.loads(codec(registry).key_text(keys, one))
    assert found == {name: json.loads(text) for name, text in ROW.items()}
    known = KnownSchemas(registry)
    assert known.ids_of(replace(keys, of_keys=False)) == []
    assert known.ids_of(keys) == ([1] if form.registered else [])


@pytest.mark.parametrize("form", [Format.AVRO, Format.PROTOBUF, Format.JSON_SCHEMA, Format.JSON])
def test_however_it_was_sent(registry: MemoryRegistry, form: Format) -> None:
    columns = (Column("a", "string"), Column("at", "timestamp"), Column("c", "decimal(6,2)"))
    here = SourceLocation("x.sql", 1, 1)
    keys = Definition(
        "o", Kind.TABLE, "t", here, "", columns, key=("a", "at", "c"), key_format=form
    ).keys
    assert keys is not None
    sent = [
        {"a": '"\\u00e4\\u001f"', "at": '"2026-01-01T01:00:00+01:00"', "c": "1.5"},
        {"c": "1.50", "at": '"2026-01-01T00:00:00.000Z"', "a": '"ä\\u001F"'},
    ]
    one, other = (codec(registry).writer(keys)(each) for each in sent)
    assert one == other


def test_other_columns_make_no_other_key(registry: MemoryRegistry) -> None:
    """A table that gets a column writes the keys that it has written before."""
    keys = keys_of(Format.PROTOBUF, "id")
    wider = (*COLUMNS, Column("more", "string"))
    here = SourceLocation("x.sql", 1, 1)
    more = Definition(
        "orders", Kind.TABLE, "t", here, "", wider, key=("id",), key_format=Format.PROTOBUF
    ).keys
    assert more is not None
    value = codec(registry).writer(keys)({"id": "1"})
    assert codec(registry).writer(more)({"id": "1"}) == value


def test_raw_keys(registry: MemoryRegistry) -> None:
    keys, reader = keys_of(Format.RAW, "name"), codec(registry)
    assert reader.writer(keys)({"name": '"{ü}"'}) == "{ü}".encode()
    assert json.loads(reader.key_text(keys, "{ü}".encode())) == {"name": "{ü}"}
    with pytest.raises(NotDecoded, match="the key: it is not UTF-8"):
        reader.key_text(keys, b"\xff")


def test_an_avro_key_may_be_the_bare_column(registry: MemoryRegistry) -> None:
    """As ksqlDB and plain clients write keys of one column."""
    id = registry.register("t-key", Schema(SchemaType.AVRO, '"long"')).id
    keys, reader = keys_of(Format.AVRO, "id"), codec(registry)
    assert json.loads(reader.key_text(keys, wire.header(id) + b"\x0a")) == {"id": 5}
    with pytest.raises(NotDecoded, match="not a record"):
        reader.key_text(keys_of(Format.AVRO, "id", "at"), wire.header(id) + b"\x0a")
    with pytest.raises(NotDecoded, match='"at" is of type long'):
        reader.key_text(keys_of(Format.AVRO, "at"), wire.header(id) + b"\x0a")


@pytest.mark.parametrize(
    ("form", "key", "words"),
    [
        (Format.AVRO, b"5", "the key: it has 1 bytes"),
        (Format.PROTOBUF, b"\0\0\0\0\x63\0", "the key: the registry has no schema 99"),
        (Format.JSON, b"5", "the key: it is not a JSON object"),
        (Format.JSON, b'{"id": ', "the key: "),
        (Format.JSON, b"[" * 100_000, "the key: "),
        (Format.JSON_SCHEMA, b'{"id": 5}', "the key: it begins with the byte 123"),
    ],
)
def test_bad_keys_say_why(registry: MemoryRegistry, form: Format, key: bytes, words: str) -> None:
    with pytest.raises(NotDecoded, match=words):
        codec(registry).key_text(keys_of(form, "id"), key)


def test_only_schemas_for_keys_are_shown(registry: MemoryRegistry) -> None:
    """Numbers of eight bytes begin like a schema's id."""
    reader, keys = codec(registry), keys_of(Format.PROTOBUF, "id")
    other = written_by(registry, '{"type": "record", "name": "r", "fields": []}', {})
    key = reader.writer(keys)({"id": "5"})
    assert reader.shown_key("t", key) == '{"id":5}'
    assert reader.shown_key("t", other) is None
    assert reader.shown_key("t", (0).to_bytes(8, "big")) is None
    assert reader.shown_key("u", key) is None
