"""The tables of named cases in `cases/`: verdicts of the specifications, ours must be the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mainstem.schemas.compatibility import Level, check
from mainstem.schemas.model import Resolve, Schema, SchemaType

CASES = {
    SchemaType.AVRO: "avro.yaml",
    SchemaType.JSON: "json_schema.yaml",
    SchemaType.PROTOBUF: "protobuf.yaml",
}
AT_LEAST = {SchemaType.AVRO: 150, SchemaType.JSON: 80, SchemaType.PROTOBUF: 80}


def load(type: SchemaType) -> list[dict[str, Any]]:
    text = (Path(__file__).parent / "cases" / CASES[type]).read_text("utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def schema(type: SchemaType, given: Any) -> Schema:
    match type:
        case SchemaType.PROTOBUF:
            head = "" if given.lstrip().startswith("syntax") else 'syntax = "proto3"; '
            return Schema(type, head + given)
        case SchemaType.AVRO if isinstance(given, dict) and given.keys() == {"fields"}:
            fields = [field(item) for item in given["fields"]]
            given = {"type": "record", "name": "R", "fields": fields}
    return Schema(type, json.dumps(given))


def field(item: Any) -> dict[str, Any]:
    return (
        item
        if isinstance(item, dict)
        else dict(zip(("name", "type", "default"), item, strict=False))
    )


ALL = [(type, case) for type in CASES for case in load(type)]


@pytest.mark.parametrize(
    ("type", "case"), ALL, ids=[f"{type.lower()}: {case['name']}" for type, case in ALL]
)
def test_verdict(type: SchemaType, case: dict[str, Any], no_references: Resolve) -> None:
    old, new = schema(type, case["old"]), schema(type, case["new"])
    found = check(new, [old], Level.FULL, no_references)
    shown = "\n".join(f"{item.direction} {item}" for item in found)
    for direction in ("backward", "forward"):
        compatible = not any(item.direction == direction.upper() for item in found)
        assert compatible is case[direction], f"{direction}: {shown or 'nothing found'}"
    listed = {f"{item.direction} {item.path} {item.kind}" for item in found}
    assert set(case.get("breaks", ())) <= listed, shown


@pytest.mark.parametrize("type", CASES)
def test_tables_are_large_and_named(type: SchemaType) -> None:
    names = [case["name"] for case in load(type)]
    assert len(names) >= AT_LEAST[type]
    assert len(set(names)) == len(names)
