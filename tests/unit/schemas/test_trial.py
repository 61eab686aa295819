"""Records that are there, held against a schema that they were not written with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mainstem.errors import MainstemError
from mainstem.schemas.given import gathered
from mainstem.schemas.json_values import Refusal
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.schemas.tally import MOST_REASONS, MOST_SAMPLES, Tally
from mainstem.schemas.trial import NOT_READ, Trial
from mainstem.testing.registry import MemoryRegistry, written_by

LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {
            "name": "state",
            "type": {"type": "enum", "name": "S", "symbols": ["NEW"]},
            "default": "NEW",
        },
        {"name": "lines", "type": {"type": "array", "items": LINE}, "default": []},
        {"name": "more", "type": ["null", {"type": "map", "values": "boolean"}], "default": None},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {
            "name": "sum",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
            ],
        },
        {"name": "mark", "type": ["null", {"type": "fixed", "name": "F", "size": 2}]},
        {"name": "x", "type": ["null", "double", "string"]},
        {"name": "u", "type": ["null", "string"], "aliases": ["user"]},
    ],
}
WRITTEN = {
    "type": "record",
    "name": "Old",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}


def judged(schema: Any, value: bytes, kind: SchemaType = SchemaType.AVRO) -> Refusal | None:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    trial = Trial(Schema(kind, text), gathered(MemoryRegistry(), (), Schema(kind, text)))
    return trial.judge()(value)


@pytest.mark.parametrize(
    "row",
    [
        {"id": 1},
        {"id": 1, "state": "NEW", "lines": [{"sku": "a"}], "more": {"a": True}, "other": [1]},
        {"id": 1, "at": "2026-01-01T00:00:00Z", "sum": 12.5, "mark": "AAA=", "x": "NaN"},
        {"id": 1, "at": 1700000000000, "sum": None, "x": "text", "user": "ann"},
    ],
)
def test_what_passes(row: dict[str, Any]) -> None:
    assert judged(AVRO, json.dumps(row).encode()) is None


@pytest.mark.parametrize(
    ("row", "path", "rule"),
    [
        ({}, ("id",), "required"),
        ({"id": "1"}, ("id",), "int"),
        ({"id": True}, ("id",), "int"),
        ({"id": 1.5}, ("id",), "int"),
        ({"id": 2**31}, ("id",), "int"),
        ({"id": 1, "state": "OLD"}, ("state",), "enum S"),
        ({"id": 1, "state": None}, ("state",), "enum S"),
        ({"id": 1, "lines": [{"sku": "a"}, {"sku": 1}]}, ("lines", 1, "sku"), "string"),
        ({"id": 1, "lines": {}}, ("lines",), "array<record Line>"),
        ({"id": 1, "more": {"a": 1}}, ("more", "a"), "boolean"),
        ({"id": 1, "at": "soon"}, ("at",), "long (timestamp-millis)"),
        ({"id": 1, "sum": 12.25}, ("sum",), "bytes (decimal(4, 1))"),
        ({"id": 1, "sum": 1000}, ("sum",), "bytes (decimal(4, 1))"),
        ({"id": 1, "mark": "AA=="}, ("mark",), "fixed F of 2 bytes"),
        ({"id": 1, "mark": "?"}, ("mark",), "fixed F of 2 bytes"),
        ({"id": 1, "x": [1]}, ("x",), "[null, double, string]"),
        ([], (), "record Order"),
    ],
)
def test_what_does_not_pass_says_where_and_why(row: Any, path: tuple[Any, ...], rule: str) -> None:
    refusal = judged(AVRO, json.dumps(row).encode())
    assert refusal is not None
    assert (refusal.path, refusal.rule) == (path, rule)


@pytest.mark.parametrize("value", [b"{", b"\xff", b'{"a": ' + b"[" * 100_000, b"\0\0", b""])
def test_what_cannot_be_read(value: bytes) -> None:
    refusal = judged(AVRO, value)
    assert refusal is not None and refusal.rule == NOT_READ


def test_each_record_is_read_by_its_own_schema() -> None:
    registry = MemoryRegistry()
    values = [
        written_by(registry, json.dumps(WRITTEN), {"id": number, "at": 1_000_001})
        for number in (1, 2**40)
    ]
    schema = Schema(SchemaType.AVRO, json.dumps(AVRO))
    judge = Trial(schema, gathered(registry, (1, 9), schema)).judge()
    assert judge(values[0]) is None
    refusal = judge(values[1])
    assert refusal is not None and refusal.path == ("id",)
    unknown = judge(b"\0\0\0\0\x09x")
    assert unknown is not None
    assert (unknown.rule, unknown.reason) == (NOT_READ, "the registry has no schema 9")


def test_json_schemas_and_protobuf() -> None:
    schema = {"properties": {"n": {"minimum": 1}, "l": {"items": {"type": "string"}}}}
    assert judged(schema, b'{"n": 1.5, "l": ["a"]}', SchemaType.JSON) is None
    refusal = judged(schema, b'{"n": 0}', SchemaType.JSON)
    assert refusal is not None
    assert (refusal.path, refusal.rule, str(refusal)[:4]) == (("n",), "minimum", "/n: ")
    proto = 'syntax = "proto3"; message M { int32 n = 1; repeated string l = 2; }'
    assert judged(proto, b'{"n": 1, "l": ["a"], "more": 1}', SchemaType.PROTOBUF) is None
    refusal = judged(proto, b'{"n": "x"}', SchemaType.PROTOBUF)
    assert refusal is not None and "n" in refusal.reason


def test_references_go_along_and_a_registry_that_is_away_decides_nothing() -> None:
    registry = MemoryRegistry()
    registry.register("line", Schema(SchemaType.AVRO, json.dumps(LINE)))
    reference = Reference("Line", "line", 1)
    schema = Schema(
        SchemaType.AVRO,
        '{"type":"record","name":"O","fields":[{"name":"l","type":"Line"}]}',
        (reference,),
    )
    trial = Trial(schema, gathered(registry, (), schema))
    assert trial.judge()(b'{"l": {"sku": "a"}}') is None

    class Away(MemoryRegistry):
        def by_id(self, id: int) -> Schema:
            raise MainstemError("REGISTRY_UNREACHABLE", url="http://registry", problem="no route")

    with pytest.raises(MainstemError, match="no route"):
        gathered(Away(), (1,), Schema(SchemaType.AVRO, '"int"'))


def test_a_tally_is_bounded_and_adds_up() -> None:
    one, other = Tally(passed=2), Tally(passed=1, deletions=1)
    for number in range(MOST_REASONS + 50):
        one.refuse([Refusal((f"f{number}",), "no", "int")], ("t", 0, number))
    for offset in range(MOST_SAMPLES + 5):
        other.refuse([Refusal(("l", offset, "n"), f"not {offset}", "int")], ("t", 1, offset))
    assert list(other.reasons) == [("l[].n", "int")]
    other.add(Tally.from_document(json.loads(json.dumps(one.document()))))
    document = other.document()
    assert (document["passed"], document["deletions"]) == (3, 1)
    assert document["failed"] == MOST_REASONS + 50 + MOST_SAMPLES + 5
    assert len(document["reasons"]) <= MOST_REASONS + 1
    first = next(each for each in document["reasons"] if each["path"] == "l[].n")
    assert first["samples"][0] == {
        "topic": "t", "partition": 1, "offset": 0, "path": "l[0].n", "reason": "not 0",
    }  # fmt: skip
    assert len(first["samples"]) == MOST_SAMPLES
