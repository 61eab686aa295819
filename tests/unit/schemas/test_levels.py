"""Which versions are compared under which level, and what is said of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mainstem.errors import MainstemError
from mainstem.schemas.compatibility import Level, check
from mainstem.schemas.model import Resolve, Schema, SchemaType

AVRO, JSON = SchemaType.AVRO, SchemaType.JSON


def record(*fields: dict[str, Any]) -> Schema:
    return Schema(AVRO, json.dumps({"type": "record", "name": "R", "fields": list(fields)}))


A = {"name": "a", "type": "int"}
B = {"name": "b", "type": "int"}
B0 = {"name": "b", "type": "int", "default": 0}
# the second has a field with a default, which the third makes necessary
VERSIONS = [record(A), record(A, B0)]


@pytest.mark.parametrize(
    ("level", "against"),
    [
        (Level.NONE, []),
        (Level.BACKWARD, []),
        (Level.BACKWARD_TRANSITIVE, [0]),
        (Level.FORWARD, []),
        (Level.FORWARD_TRANSITIVE, []),
        (Level.FULL, []),
        (Level.FULL_TRANSITIVE, [0]),
    ],
)
def test_transitive_levels_look_at_all(
    level: Level, against: list[int], no_references: Resolve
) -> None:
    found = check(record(A, B), VERSIONS, level, no_references)
    assert [item.against for item in found] == against
    for item in found:
        assert item.as_dict() == {
            "path": "R.b",
            "kind": "READER_FIELD_MISSING_DEFAULT_VALUE",
            "reason": "the field b is not written, and has no default",
            "direction": "BACKWARD",
            "against": 0,
        }


def test_the_first_version_is_free_but_sound(no_references: Resolve) -> None:
    assert check(record(A), [], Level.FULL_TRANSITIVE, no_references) == []
    for level in Level:
        with pytest.raises(MainstemError) as caught:
            check(Schema(AVRO, '"strin"'), [], level, no_references)
        assert caught.value.code == "SCHEMA_MALFORMED"


def test_another_type_breaks_both_ways(no_references: Resolve) -> None:
    found = check(Schema(JSON, "{}"), [record(A)], Level.FULL, no_references)
    assert {(item.direction, item.kind) for item in found} == {
        ("BACKWARD", "SCHEMA_TYPE_CHANGED"),
        ("FORWARD", "SCHEMA_TYPE_CHANGED"),
    }


def chain(type: str, length: int) -> Schema:
    """Definitions that refer to the next one, far deeper than the text is nested."""
    links = {
        f"d{n}": {"properties": {"v": {"type": type}, "n": {"$ref": f"#/definitions/d{n + 1}"}}}
        for n in range(length)
    }
    links[f"d{length}"] = {}
    return Schema(JSON, json.dumps({"$ref": "#/definitions/d0", "definitions": links}))


def test_long_chains_end(no_references: Resolve) -> None:
    """What cannot be proved within bounds is not called compatible."""
    short = check(chain("number", 20), [chain("integer", 20)], Level.BACKWARD, no_references)
    assert short == []
    long = check(chain("number", 1000), [chain("integer", 1000)], Level.BACKWARD, no_references)
    assert {item.kind for item in long} == {"TOO_COMPLEX"}
    names = [f"R{n}" for n in range(2000)]
    for type, count in (("long", 0), ("string", 200)):
        old, new = (
            [
                {"type": "record", "name": name, "fields": [
                    {"name": "v", "type": kind},
                    {"name": "n", "type": ["null", *names[max(index - 1, 0):index]]},
                ]}
                for index, name in enumerate(names)
            ]
            for kind in ("int", type)
        )  # fmt: skip
        schemas = [Schema(AVRO, json.dumps(item)) for item in (old, new)]
        assert len(check(schemas[1], schemas[:1], Level.BACKWARD, no_references)) == count


def test_many_alternatives_end(no_references: Resolve) -> None:
    def schema(count: int) -> Schema:
        kinds = [
            {"type": "object", "properties": {"k": {"const": n}}, "required": ["k"]}
            for n in range(count)
        ]
        return Schema(JSON, json.dumps({"oneOf": kinds}))

    assert check(schema(31), [schema(30)], Level.BACKWARD, no_references) == []
    assert check(schema(30), [schema(31)], Level.BACKWARD, no_references) != []


def test_patterns_that_would_take_for_ever_are_not_searched(no_references: Resolve) -> None:
    name = "a" * 60 + "!"
    old = {
        "type": "object",
        "properties": {name: {"type": "string"}},
        "additionalProperties": False,
    }
    new = {"type": "object", "patternProperties": {"^(a+)+$": {"type": "integer"}}}
    schemas = [Schema(JSON, json.dumps(item)) for item in (old, new)]
    found = check(schemas[1], schemas[:1], Level.BACKWARD, no_references)
    assert found != []
    value = {"enum": [name]}
    slow = {"pattern": "^(a+)+$"}
    schemas = [Schema(JSON, json.dumps(item)) for item in (value, slow)]
    assert check(schemas[1], schemas[:1], Level.BACKWARD, no_references) != []
