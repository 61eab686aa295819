"""What we call compatible, jsonschema lets pass: schemas are made up and changed at random."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from mainstem.schemas.json_drafts import DRAFTS
from mainstem.schemas.json_parse import JsonSchema, parse_json_schema
from mainstem.schemas.json_rules import json_breaks
from mainstem.schemas.model import Resolve, Schema, SchemaType

SCALARS: list[Any] = [None, True, False, 0, 1, 2, 3, 1.0, 1.5, -1, "", "a", "ab", "b", "xa", "abc"]
ARRAYS: list[Any] = [
    [], [None], [1], [2.5], ["a"], [[]], [{}],
    [1, 1], [1, 2], ["a", 1], [1, "a", 2], ["a", "a"],
]  # fmt: skip
OBJECTS: list[Any] = [
    dict(zip(keys, values, strict=True))
    for size in (0, 1, 2)
    for keys in itertools.combinations(["a", "b", "xa"], size)
    for values in itertools.product([None, 1, 1.5, "a", {"a": 1}], repeat=size)
]
VALUES = SCALARS + ARRAYS + OBJECTS

TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
NAMES = st.sampled_from(["a", "b", "xa"])
SMALL = st.integers(0, 3)


def schemas(depth: int = 2) -> st.SearchStrategy[Any]:
    if depth == 0:
        return st.one_of(st.booleans(), leaves())
    return st.one_of(leaves(), leaves(), objects(depth), arrays(depth), unions(depth))


def leaves() -> st.SearchStrategy[Any]:
    some = {
        "type": st.one_of(
            st.sampled_from(TYPES),
            st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        ),
        "enum": st.lists(st.sampled_from(SCALARS), min_size=1, max_size=3),
        "const": st.sampled_from(SCALARS),
        "minimum": SMALL, "maximum": SMALL, "exclusiveMinimum": SMALL, "exclusiveMaximum": SMALL,
        "multipleOf": st.sampled_from([0.5, 1, 2, 3]),
        "minLength": SMALL, "maxLength": SMALL, "pattern": st.sampled_from(["^a", "b$"]),
        "minItems": SMALL, "maxItems": SMALL, "uniqueItems": st.booleans(),
        "minProperties": SMALL, "maxProperties": SMALL,
        "required": st.lists(NAMES, max_size=2, unique=True),
    }  # fmt: skip
    return few(some, 2)


def few(keywords: dict[str, st.SearchStrategy[Any]], most: int) -> st.SearchStrategy[Any]:
    """A schema of some of the keywords."""
    names = st.lists(st.sampled_from(sorted(keywords)), max_size=most, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({k: keywords[k] for k in chosen}))


def objects(depth: int) -> st.SearchStrategy[Any]:
    inner = st.deferred(lambda: schemas(depth - 1))
    keywords = {
        "type": st.just("object"),
        "properties": st.dictionaries(
            NAMES, st.one_of(inner, inner, st.just({"$ref": "#"})), max_size=2
        ),
        "patternProperties": st.dictionaries(st.sampled_from(["^x", "a$"]), inner, max_size=1),
        "additionalProperties": st.one_of(st.just(False), inner),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "propertyNames": leaves(),
        "unevaluatedProperties": st.one_of(st.just(False), inner),
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, unique=True), max_size=1),
        "dependentSchemas": st.dictionaries(NAMES, inner, max_size=1),
        "dependencies": st.dictionaries(
            NAMES, st.one_of(st.lists(NAMES, unique=True), inner), max_size=1
        ),
    }
    return few(keywords, 4)


def arrays(depth: int) -> st.SearchStrategy[Any]:
    inner = st.deferred(lambda: schemas(depth - 1))
    keywords = {
        "type": st.just("array"),
        "items": st.one_of(inner, inner, st.lists(inner, min_size=1, max_size=2)),
        "additionalItems": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "unevaluatedItems": inner,
        "contains": st.one_of(inner, st.just({"$ref": "#"})),
        "minContains": SMALL,
        "maxContains": SMALL,
        "minItems": SMALL,
        "maxItems": SMALL,
    }
    return few(keywords, 4)


def unions(depth: int) -> st.SearchStrategy[Any]:
    inner = st.deferred(lambda: schemas(depth - 1))
    many = st.lists(inner, min_size=1, max_size=3)
    keywords = {
        "allOf": many, "anyOf": many, "oneOf": many, "not": inner,
        "if": inner, "then": inner, "else": inner,
        "type": st.sampled_from(TYPES),
    }  # fmt: skip
    return few(keywords, 3)


@st.composite
def changed(draw: st.DrawFn, schema: Any) -> Any:
    """The schema with one keyword, somewhere in it, taken away, replaced or added."""
    schema = copy.deepcopy(schema)
    places = [schema] if isinstance(schema, dict) else []
    for place in places:
        places += [item for item in place.values() if isinstance(item, dict)]
        places += [
            i for v in place.values() if isinstance(v, list) for i in v if isinstance(i, dict)
        ]
    if not places:
        return draw(schemas(1))
    # what stands under "properties" is names, so that a change there adds a property
    place = draw(st.sampled_from(places))
    if place and draw(st.booleans()):
        del place[draw(st.sampled_from(sorted(place)))]
    else:
        more = draw(leaves())
        place.update(
            {key: value for key, value in more.items() if place is schema or key != "enum"}
        )
    return schema


def read(document: Any, draft: type, resolve: Resolve) -> JsonSchema | None:
    if isinstance(document, dict):
        document = {"$schema": draft.META_SCHEMA["$schema"], **document}
    schema = Schema(SchemaType.JSON, json.dumps(document))
    try:
        return parse_json_schema(schema, resolve)
    except Exception as error:
        # a change may have put a keyword where a name was, or what the draft does not have
        if getattr(error, "code", None) in ("SCHEMA_MALFORMED", "SCHEMA_REFERENCE_CIRCLE"):
            return None
        raise


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_was_valid_stays_valid(no_references: Resolve, data: st.DataObject) -> None:
    draft = data.draw(st.sampled_from(DRAFTS))
    old = data.draw(schemas())
    new = data.draw(st.one_of(changed(old), changed(old), schemas()))
    writer, reader = read(old, draft, no_references), read(new, draft, no_references)
    if writer is None or reader is None:
        event("malformed")
        return
    if json_breaks(reader, writer):
        event("incompatible")
        return
    event("compatible")
    valid, still = writer.validator(), reader.validator()
    for value in VALUES:
        if valid.is_valid(value):
            assert still.is_valid(value), (old, new, value)
