"""A small value cannot keep the checker busy for ever."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mainstem.schemas import json_steps
from mainstem.schemas.json_values import Check, JsonReading, checker
from mainstem.schemas.model import Reference, Schema, SchemaType

DRAFTS = (
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)


def checked(document: Any, **referred: Any) -> Check:
    given = {name: Schema(SchemaType.JSON, json.dumps(text)) for name, text in referred.items()}
    references = tuple(Reference(name, name, 1) for name in given)
    schema = Schema(SchemaType.JSON, json.dumps(document), references)
    return checker(JsonReading(schema, tuple(zip(references, given.values(), strict=True))))


def nested(levels: int, inside: Any = None) -> bytes:
    value: Any = {} if inside is None else inside
    for _ in range(levels):
        value = {"a": value}
    return json.dumps(value).encode()


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_level_that_is_checked_twice_by_each_above(
    draft: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_steps, "_STEPS", 5_000)
    twice = {"$schema": draft, "properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}
    check = checked(twice)
    assert check(nested(5)) is None
    assert "too many steps" in str(check(nested(40)))
    assert check(nested(5)) is None  # each value has steps of its own
    elsewhere = checked({"$schema": draft, "$ref": "t"}, t={**twice, "$id": "t"})
    assert elsewhere(nested(5)) is None
    assert "too many steps" in str(elsewhere(nested(40)))


@pytest.mark.parametrize("draft", DRAFTS)
def test_references_are_followed_as_ever(draft: str) -> None:
    number = {"$id": "number", "type": "integer"}
    document = {
        "$schema": draft,
        "definitions": {"list": {"items": {"$ref": "number"}}},
        "properties": {"a": {"$ref": "#"}, "n": {"$ref": "#/definitions/list"}},
    }
    check = checked(document, number=number)
    assert check(nested(3, {"n": list(range(1000))})) is None
    assert "/n/1" in str(check(nested(3, {"n": [1, "x"]})))


def test_what_a_dynamic_reference_means() -> None:
    tree = {
        "$schema": DRAFTS[2],
        "$id": "tree",
        "$dynamicAnchor": "node",
        "properties": {"children": {"items": {"$dynamicRef": "#node"}}},
    }
    strict = {
        "$schema": DRAFTS[2],
        "$id": "strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": False,
    }
    check = checked(strict, tree=tree)
    assert check(b'{"children": [{"children": []}]}') is None
    assert check(b'{"children": [{"daat": 1}]}') is not None
