"""What we call compatible, fastavro reads: schemas are made up and changed at random."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import avro.schema
import fastavro
import pytest
import yaml
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from mainstem.schemas.avro_parse import AvroSchema, parse_avro
from mainstem.schemas.avro_rules import avro_breaks
from mainstem.schemas.model import Resolve, Schema, SchemaType

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
DEFAULTS: dict[str, Any] = {
    "null": None, "boolean": True, "int": 1, "long": 2, "float": 1.5, "double": 2.5,
    "bytes": "b", "string": "s",
}  # fmt: skip


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> Any:
    """A type without names, which would have to be unique; records are made by `records`."""
    kind = draw(st.sampled_from(["primitive"] * 3 + (["array", "map", "union"] if depth else [])))
    match kind:
        case "array":
            return {"type": "array", "items": draw(types(depth - 1))}
        case "map":
            return {"type": "map", "values": draw(types(depth - 1))}
        case "union":
            return draw(st.lists(st.sampled_from(PRIMITIVES), min_size=1, max_size=3, unique=True))
        case _:
            return draw(st.sampled_from(PRIMITIVES))


@st.composite
def records(draw: st.DrawFn, name: str = "R", depth: int = 2) -> dict[str, Any]:
    fields = []
    for field in draw(st.lists(st.sampled_from("abcd"), max_size=3, unique=True)):
        kind = draw(st.sampled_from(["type"] * 4 + (["record", "enum", "fixed"] if depth else [])))
        inner = f"{name}_{field}"
        match kind:
            case "record":
                type: Any = draw(records(inner, depth - 1))
            case "enum":
                symbols = draw(st.lists(st.sampled_from("XYZ"), min_size=1, unique=True))
                type = {"type": "enum", "name": inner, "symbols": symbols}
                if draw(st.booleans()):
                    type["default"] = symbols[0]
            case "fixed":
                type = {"type": "fixed", "name": inner, "size": draw(st.integers(1, 2))}
            case _:
                type = draw(types())
        if draw(st.integers(0, 4)) == 0 and kind in ("record", "enum"):
            type = ["null", type]
        fields.append(with_default(draw, {"name": field, "type": type}))
    return {"type": "record", "name": name, "fields": fields}


def with_default(draw: st.DrawFn, field: dict[str, Any]) -> dict[str, Any]:
    first = field["type"][0] if isinstance(field["type"], list) else field["type"]
    if isinstance(first, str) and first in DEFAULTS and draw(st.booleans()):
        field["default"] = DEFAULTS[first]
    return field


@st.composite
def changed(draw: st.DrawFn, record: dict[str, Any]) -> dict[str, Any]:
    """The record after one to three steps that people take."""
    record = copy.deepcopy(record)
    for _ in range(draw(st.integers(1, 3))):
        fields = record["fields"]
        step = draw(st.sampled_from(["add", "remove", "retype", "rename", "swap", "inner", "null"]))
        target = draw(st.sampled_from(fields)) if fields else None
        if step == "add":
            name = f"n{len(fields)}"
            if all(field["name"] != name for field in fields):
                fields.append(with_default(draw, {"name": name, "type": draw(types(1))}))
        elif target is None:
            continue
        elif step == "remove":
            fields.remove(target)
        elif step == "retype":
            target["type"] = draw(types(1))
            target.pop("default", None)
        elif step == "rename":
            target["aliases"] = [target["name"]]
            target["name"] += "_"
        elif step == "swap":
            fields.reverse()
        elif step == "inner" and isinstance(target["type"], dict):
            inner = target["type"]
            if inner["type"] == "record":
                target["type"] = draw(changed(inner))
            elif inner["type"] == "enum":
                inner["symbols"] = inner["symbols"][:1] if draw(st.booleans()) else [*"XYZ"]
        elif step == "null" and isinstance(target["type"], str) and target["type"] != "null":
            target["type"] = ["null", target["type"]]
            target.pop("default", None)
    return record


def value(draw: Callable[[Any], Any], type: Any) -> Any:
    """A value of a type, told apart within unions as fastavro wants it."""
    match type:
        case list():
            branch = draw(st.sampled_from(type))
            name = branch if isinstance(branch, str) else branch.get("name", branch["type"])
            return (name, value(draw, branch))
        case {"type": "record"}:
            return {field["name"]: value(draw, field["type"]) for field in type["fields"]}
        case {"type": "enum"}:
            return draw(st.sampled_from(type["symbols"]))
        case {"type": "fixed"}:
            return b"f" * type["size"]
        case {"type": "array"}:
            return [value(draw, type["items"]) for _ in range(draw(st.integers(0, 2)))]
        case {"type": "map"}:
            return {key: value(draw, type["values"]) for key in "kl"[: draw(st.integers(0, 2))]}
        case _:
            return draw(
                {
                    "null": st.none(),
                    "boolean": st.booleans(),
                    "int": st.integers(-(2**31), 2**31 - 1),
                    "long": st.integers(-(2**63), 2**63 - 1),
                    "float": st.floats(width=32, allow_nan=False),
                    "double": st.floats(allow_nan=False),
                    # bytes may be read as text, so they are some
                    "bytes": st.text("abc", max_size=3).map(str.encode),
                    "string": st.text(max_size=3),
                }[type]
            )


def read(document: Any, resolve: Resolve) -> AvroSchema:
    return parse_avro(Schema(SchemaType.AVRO, json.dumps(document)), resolve)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_compatible_data_is_read(no_references: Resolve, data: st.DataObject) -> None:
    old = data.draw(records())
    new = data.draw(st.one_of(changed(old), records()))
    if avro_breaks(read(new, no_references), read(old, no_references)):
        event("incompatible")
        return
    event("compatible")
    written = io.BytesIO()
    datum = value(data.draw, old)
    fastavro.schemaless_writer(written, fastavro.parse_schema(old), datum)
    written.seek(0)
    found = fastavro.schemaless_reader(
        written, fastavro.parse_schema(old), fastavro.parse_schema(new)
    )
    assert set(found) == {field["name"] for field in new["fields"]}


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(record=records())
def test_a_schema_reads_its_own_data(no_references: Resolve, record: dict[str, Any]) -> None:
    assume(record["fields"])
    assert avro_breaks(read(record, no_references), read(record, no_references)) == []


def own_rules(document: str) -> bool:
    """Where the library knows less than the specification, or we say more than it does."""
    return any(word in document for word in ('"aliases"', '"logicalType"', '"error"'))


@pytest.mark.parametrize("name", ["backward", "forward"])
def test_verdicts_of_the_tables_are_those_of_the_library(name: str) -> None:
    text = (Path(__file__).parent / "cases" / "avro.yaml").read_text("utf-8")
    compared = 0
    for case in yaml.safe_load(text):
        old, new = (json.dumps(whole(case[key])) for key in ("old", "new"))
        if own_rules(old + new):
            continue
        reader, writer = (new, old) if name == "backward" else (old, new)
        found = ReaderWriterCompatibilityChecker().get_compatibility(
            avro.schema.parse(reader), avro.schema.parse(writer)
        )
        verdict = found.compatibility == SchemaCompatibilityType.compatible
        assert verdict is case[name], case["name"]
        compared += 1
    assert compared > 120


def whole(given: Any) -> Any:
    """A record of the tables, which name no more than its fields."""
    if not isinstance(given, dict) or given.keys() != {"fields"}:
        return given
    keys = ("name", "type", "default")
    fields = [
        item if isinstance(item, dict) else dict(zip(keys, item, strict=False))
        for item in given["fields"]
    ]
    return {"type": "record", "name": "R", "fields": fields}
