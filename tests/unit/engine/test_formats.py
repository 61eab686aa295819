"""Which schemas a plan knows, and how a flow gets to know another."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mainstem.definitions.model import Definition, Format, Kind, SubjectStrategy
from mainstem.engine.formats import AWAITED, NEW_ID, Formats, Versions
from mainstem.errors import MainstemError
from mainstem.schemas import wire
from mainstem.schemas.model import Schema, SchemaType
from mainstem.testing.registry import MemoryRegistry
from mainstem.vocabulary import Column, SourceLocation


def stream(format_: Format = Format.AVRO, **columns: str) -> Definition:
    made = tuple(Column(name, type_) for name, type_ in columns.items())
    here = SourceLocation("x.sql", 1, 1)
    return Definition("s", Kind.STREAM, "t", here, "", made, format=format_)


def register(registry: MemoryRegistry, subject: str, record: str = "r", **fields: Any) -> int:
    made = [{"name": name, "type": type_} for name, type_ in fields.items()]
    text = json.dumps({"type": "record", "name": record, "fields": made})
    return registry.register(subject, Schema(SchemaType.AVRO, text)).id


def new(id: int, topic: str = "t") -> MainstemError:
    return MainstemError(NEW_ID, name="s", topic=topic, id=id)


def test_a_plan_knows_all_versions_of_its_topic() -> None:
    registry = MemoryRegistry()
    one, two = register(registry, "t-value", id="int"), register(registry, "t-value", id="long")
    other = register(registry, "u-value", name="string")
    formats = Formats(registry)
    found = formats.of_stream(stream(id="int"))
    assert (set(found.readable), found.refused) == ({one}, {two})  # a long is no INT
    assert set(formats.of_stream(stream(id="bigint")).readable) == {one, two}
    assert other not in found.readable


def test_an_id_that_was_met_is_asked_for() -> None:
    registry = MemoryRegistry()
    formats = Formats(registry)
    elsewhere = register(registry, "s.Order", id="int")
    assert formats.of_stream(stream(id="int")) == Versions()
    assert formats.meet(new(elsewhere))
    assert formats.meet(new(99))
    found = formats.of_stream(stream(id="int"))
    assert (set(found.readable), found.refused) == ({elsewhere}, {99})
    assert formats.of_stream(stream(Format.JSON, id="int")) == Versions()


def test_a_plan_knows_which_records_are_of_its_name() -> None:
    registry = MemoryRegistry()
    formats = Formats(registry)
    mine = replace(stream(id="int"), record="shop.A")
    one = register(registry, "t-value", "shop.A", id="int")
    unfit = register(registry, "t-value", "shop.A", id="string")
    other = register(registry, "t-value", "shop.B", id="int")
    formats.meet(new(99))
    found = formats.of_stream(mine)
    assert (set(found.readable), found.others) == ({one}, {wire.header(other)})
    assert (found.refused, found.named) == ({unfit, 99}, {wire.header(one), wire.header(unfit)})
    union = Schema(SchemaType.AVRO, json.dumps([json.loads(registry.by_id(one).text), "string"]))
    text = Schema(SchemaType.AVRO, '"string"')
    both = registry.register("t-value", union).id, registry.register("t-value", text).id
    found = formats.of_stream(mine)
    assert both[0] in found.refused  # it may hold such a record, but not as a row
    assert wire.header(both[0]) in found.named
    assert wire.header(both[1]) in found.others


def test_messages_of_one_schema_are_told_by_their_place() -> None:
    registry = MemoryRegistry()
    file = 'syntax = "proto3"; package x; message A { message I {} int32 id = 1; } message B {}'
    head = wire.header(registry.register("t-value", Schema(SchemaType.PROTOBUF, file)).id)
    own = {"x.A": {b"\0", b"\2\0"}, "x.A.I": {b"\4\0\0"}, "x.B": {b"\2\2"}}
    for name, forms in own.items():
        mine = replace(stream(Format.PROTOBUF, id="int"), record=name)
        found = Formats(registry).of_stream(mine)
        assert found.named == {head + form for form in forms}
        assert found.others == {head + f for n, more in own.items() if n != name for f in more}
    none = Formats(registry).of_stream(replace(mine, record="x.C"))
    assert (none.named, none.others, none.readable) == (frozenset(), {head}, {})


def test_versions_of_a_record_are_known_by_its_name() -> None:
    registry = MemoryRegistry()
    id = register(registry, "shop.A", "shop.A", id="int")
    mine = replace(stream(id="int"), record="shop.A", subject_strategy=SubjectStrategy.RECORD_NAME)
    assert set(Formats(registry).of_stream(mine).readable) == {id}
    wide = replace(mine, topic="*.t")
    assert set(Formats(registry).of_stream(wide).readable) == {id}


def test_other_failures_are_not_about_schemas() -> None:
    assert not Formats(MemoryRegistry()).meet(MainstemError("FLOW_FAILED", name="s", problem="x"))


def test_a_definition_writes_with_its_own_schema() -> None:
    registry = MemoryRegistry()
    written = Formats(registry).written(stream(id="int"))
    assert written.header == b"\0\0\0\0\1"
    assert registry.latest("t-value").schema.text == written.schema


def test_the_problem_of_a_value_is_told() -> None:
    formats = Formats(MemoryRegistry())
    assert "byte 123" in formats.problem(stream(id="int"), b'{"id": 1}')
    assert "2 fields" in formats.problem(stream(Format.CSV, id="int"), b"1,2")
    assert "type" in formats.problem(stream(Format.CSV, at="timestamp"), b"noon")


def test_keys_have_schemas_of_their_own() -> None:
    registry = MemoryRegistry()
    value, key = register(registry, "t-value", id="int"), register(registry, "t-key", id="long")
    bare = registry.register("t-key", Schema(SchemaType.AVRO, '"long"')).id
    formats = Formats(registry)
    keyed = replace(stream(id="bigint"), key=("id",), key_format=Format.AVRO)
    found = formats.of_stream(keyed)
    assert found.keys is not None
    assert (set(found.readable), set(found.keys.readable)) == ({value}, {key, bare})
    plain = replace(keyed, format=Format.JSON)
    assert formats.of_stream(plain) == Versions(keys=found.keys)
    keys = keyed.keys
    assert keys is not None
    assert formats.meet(MainstemError(NEW_ID, name=keys.name, topic=keys.topic, id=99))
    again = formats.of_stream(plain).keys
    assert again is not None and again.refused == {99}
    header = formats.written(keys).header
    assert registry.latest("t-key").id == int.from_bytes(header[1:])


def test_who_takes_all_columns_waits_until_they_are_there() -> None:
    registry = MemoryRegistry()
    one = register(registry, "t-value", id="int")
    formats = Formats(registry)
    follows = replace(stream(id="int"), follows=True)
    assert set(formats.of_stream(follows).readable) == {one}
    two = register(registry, "t-value", id="int", note="string")
    assert formats.meet(new(two))
    with pytest.raises(MainstemError) as caught:
        formats.of_stream(follows)
    assert (caught.value.code, caught.value.params["columns"]) == (AWAITED, "note")
    assert set(formats.of_stream(stream(id="int")).readable) == {one, two}, "others need not"
    wider = replace(stream(id="int", note="string"), follows=True)
    assert set(formats.of_stream(wider).readable) == {one, two}


def test_a_stream_that_follows_others_is_not_written_to() -> None:
    formats = Formats(MemoryRegistry())
    with pytest.raises(MainstemError) as caught:
        formats.written(replace(stream(id="int"), follows=True))
    assert caught.value.code == "NOT_SUPPORTED"
