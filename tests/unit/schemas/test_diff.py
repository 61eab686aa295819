"""What a difference says, and whether it breaks."""

from __future__ import annotations

import json
from typing import Any

from mainstem.schemas.compatibility import Level
from mainstem.schemas.diff import Change, diff, render
from mainstem.schemas.model import Resolve, Schema, SchemaType

AVRO, JSON, PROTOBUF = SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF


def order(*fields: dict[str, Any], **more: Any) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields), **more})


def lines(changes: list[Change], level: Level = Level.BACKWARD) -> list[str]:
    verdict = {True: "BREAKS", False: "ok"}
    return [f"{c.action} {c.what} {c.path} {verdict[c.breaking(level)]}" for c in changes]


def changes(type: SchemaType, old: str, new: str, resolve: Resolve) -> list[Change]:
    return diff(Schema(type, old), Schema(type, new), resolve)


def test_avro(no_references: Resolve) -> None:
    kind = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
    old = order(
        {"name": "id", "type": "int", "doc": "number"},
        {"name": "note", "type": "string"},
        {"name": "total", "type": "double", "default": 0},
        {"name": "kind", "type": kind},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "at", "type": ["null", "long"], "default": None},
    )
    new = order(
        {"name": "id", "type": "long", "doc": "the number"},
        {"name": "remark", "type": "string", "aliases": ["note"]},
        {"name": "total", "type": "double", "default": 1},
        {"name": "kind", "type": {**kind, "symbols": ["A", "C"]}},
        {"name": "tags", "type": {"type": "array", "items": "int"}},
        {"name": "at", "type": ["null", "long", "string"], "default": None},
        {"name": "more", "type": "string"},
        doc="An order",
    )
    found = changes(AVRO, old, new, no_references)
    assert sorted(lines(found)) == [
        "added aliases Order.remark ok",
        "added doc Order ok",
        "added field Order.more BREAKS",
        "added symbol Order.kind ok",
        "added type Order.at ok",
        "changed default Order.total ok",
        "changed doc Order.id ok",
        "changed type Order.id ok",
        "changed type Order.tags[] BREAKS",
        "removed symbol Order.kind BREAKS",
        "renamed field Order.remark ok",
    ]
    forward = [line for line in lines(found, Level.FORWARD) if line.endswith("BREAKS")]
    assert sorted(forward) == [
        "added symbol Order.kind BREAKS",
        "added type Order.at BREAKS",
        "changed type Order.id BREAKS",
        "changed type Order.tags[] BREAKS",
        "renamed field Order.remark BREAKS",
    ]
    assert not any(change.breaking(Level.NONE) for change in found)


def test_json_schema(no_references: Resolve) -> None:
    old = {
        "type": "object",
        "properties": {"id": {"$ref": "#/definitions/id"}, "note": {"type": "string"}},
        "required": ["id"],
        "definitions": {"id": {"type": "integer"}},
    }
    new = {
        "type": "object",
        "title": "Order",
        "properties": {"id": {"$ref": "#/definitions/id"}, "total": {"type": "number"}},
        "required": ["id", "total"],
        "definitions": {"id": {"type": "number", "maximum": 9}},
    }
    found = changes(JSON, json.dumps(old), json.dumps(new), no_references)
    assert sorted(lines(found)) == [
        "added doc #/title ok",
        "added maximum #/properties/id/maximum BREAKS",
        "added property #/properties/total BREAKS",
        "added required #/required BREAKS",
        "changed type #/properties/id/type ok",
        "removed property #/properties/note ok",
    ]


def test_protobuf(no_references: Resolve) -> None:
    head = 'syntax = "proto3"; '
    old = head + "message M { int32 a = 1; string b = 2; E e = 3; int32 f = 4; } enum E { X = 0; }"
    new = head + (
        "message M { int64 a = 1; string c = 2; E e = 3; oneof o { int32 f = 4; } string g = 5; }"
        " enum E { X = 0; Y = 1; } message N {}"
    )
    found = changes(PROTOBUF, old, new, no_references)
    assert sorted(lines(found)) == [
        "added field M.g ok",
        "added message N ok",
        "added oneof M.f ok",
        "added symbol E.Y ok",
        "changed JSON name M.c ok",
        "changed type M.a ok",
        "renamed field M.c ok",
    ]
    assert [change.path for change in found if change.breaking(Level.FORWARD)] == ["N"]


def test_no_difference(no_references: Resolve) -> None:
    assert changes(AVRO, '"int"', '{"type": "int"}', no_references) == []


def test_another_type_of_schema(no_references: Resolve) -> None:
    [change] = diff(Schema(AVRO, '"int"'), Schema(JSON, "{}"), no_references)
    assert change.what == "schema type"
    assert change.breaking(Level.BACKWARD)


def test_a_break_without_a_difference_of_its_own_is_not_lost(no_references: Resolve) -> None:
    """A field that is required by a rule elsewhere still breaks somewhere."""
    old = '{"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}'
    new = '{"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["c"]}]}'
    found = changes(JSON, old, new, no_references)
    assert any(change.breaking(Level.BACKWARD) for change in found)


def test_as_text_and_as_json(no_references: Resolve) -> None:
    old, new = order(), order({"name": "id", "type": "int"})
    found = changes(AVRO, old, new, no_references)
    assert render(found, Level.BACKWARD) == (
        '+ Order.id: field added: {"type": "int"} (BREAKING)\n'
        "    cannot read earlier records: the field id is not written, and has no default"
    )
    assert render(found, Level.FORWARD) == '+ Order.id: field added: {"type": "int"} (compatible)'
    [shown] = [change.as_dict(Level.BACKWARD) for change in found]
    assert json.loads(json.dumps(shown))["breaking"] is True


def test_types_of_a_union_are_told_apart_by_their_full_names(no_references: Resolve) -> None:
    def one(name: str, field: str) -> dict[str, Any]:
        return {"type": "record", "name": name, "fields": [{"name": field, "type": "int"}]}

    both, first = [one("a.X", "p"), one("b.X", "q")], [one("a.X", "p")]
    found = changes(AVRO, json.dumps(both), json.dumps(first), no_references)
    assert [(c.action, c.what, c.before) for c in found] == [("removed", "type", "record b.X")]
    found = changes(AVRO, json.dumps(first), json.dumps(both), no_references)
    assert [(c.action, c.what, c.after) for c in found] == [("added", "type", "record b.X")]
    moved = changes(AVRO, json.dumps(first), json.dumps([one("c.X", "p")]), no_references)
    assert [(c.action, c.what, c.after) for c in moved] == [("renamed", "record", "c.X")]


def test_what_stands_beside_a_reference_counts_since_2019(no_references: Resolve) -> None:
    def one(draft: str, **beside: Any) -> str:
        whole = {"$schema": draft, "$defs": {"n": {"type": "number", "maximum": 9}}}
        return json.dumps({**whole, "properties": {"a": {"$ref": "#/$defs/n", **beside}}})

    new, old = (
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema",
    )
    found = changes(JSON, one(new, maximum=5), one(new, maximum=3), no_references)
    assert [(c.path, c.before, c.after) for c in found] == [("#/properties/a/maximum", 5, 3)]
    found = changes(JSON, one(new), one(new, maximum=3), no_references)
    assert [(c.action, c.path) for c in found] == [("added", "#/properties/a/maximum")]
    other = one(new, maximum=3).replace('"number"', '"integer"')
    found = changes(JSON, one(new, maximum=3), other, no_references)
    assert [(c.path, c.before, c.after) for c in found] == [
        ("#/properties/a/type", "number", "integer")
    ]
    assert changes(JSON, one(old, maximum=5), one(old, maximum=3), no_references) == []


def test_protobuf_differences_come_in_the_order_of_the_text(no_references: Resolve) -> None:
    names = ["Zeta", "Alpha", "Mid", "Beta", "Eta", "Iota", "Kappa"]
    text = 'syntax = "proto3"; message Kept {} '
    inner = "".join(f"message {n} {{ enum E{n} {{ X = 0; }} }} " for n in names)
    gone = changes(PROTOBUF, text + inner, text, no_references)
    assert [c.path for c in gone if c.what == "message"] == names
    assert [c.path for c in gone if c.what == "enum"] == [f"{n}.E{n}" for n in names]
