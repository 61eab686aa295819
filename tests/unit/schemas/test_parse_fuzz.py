"""Whatever is given as a schema, it is read or refused with a code; nothing else comes out."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mainstem.errors import MainstemError
from mainstem.schemas.canonical import canonical, normalize
from mainstem.schemas.compatibility import Level, check
from mainstem.schemas.diff import diff, render
from mainstem.schemas.model import Resolve, Schema, SchemaType
from mainstem.schemas.parse import parse

LISTED = """
    type name fields items values symbols size default aliases record enum fixed array map int
    string null logicalType decimal precision scale namespace object integer properties required
    additionalProperties patternProperties pattern $ref # #/definitions/a definitions a allOf
    anyOf oneOf not const $id $schema http://json-schema.org/draft-04/schema# minimum if then
    https://json-schema.org/draft/2020-12/schema dependencies contains $anchor $dynamicRef
    prefixItems unevaluatedProperties
"""
WORDS = LISTED.split()
WORD = st.one_of(st.sampled_from(WORDS), st.sampled_from(WORDS), st.text(max_size=3))
DOCUMENTS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(), WORD),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(WORD, inner, max_size=4),
        st.fixed_dictionaries(
            {"type": st.sampled_from(WORDS[9:18]), "name": WORD, "fields": inner}
        ),
    ),
    max_leaves=12,
)
PROTO = """
    = ; { } , > ( ) [ ] // /* \\ ' . - message M int32 a 1 2 oneof map< string
    repeated reserved enum import option extend group package syntax
    "proto3" "x.proto" "google/protobuf/any.proto"
"""
TOKENS = st.sampled_from([*PROTO.split(), "\n"])
TEXTS = {
    SchemaType.AVRO: DOCUMENTS.map(json.dumps),
    SchemaType.JSON: DOCUMENTS.map(json.dumps),
    SchemaType.PROTOBUF: st.one_of(
        st.lists(TOKENS, max_size=15).map(" ".join),
        st.lists(TOKENS, max_size=12).map(lambda t: 'syntax = "proto3"; message M {' + " ".join(t)),
        st.binary(max_size=30).map(lambda data: base64.b64encode(data).decode()),
    ),
}


def whole(schema: Schema, other: Schema, resolve: Resolve) -> None:
    """All that can be asked of two schemas."""
    parsed: Any = parse(schema, resolve)
    again = parse(Schema(schema.type, normalize(parsed)), resolve)
    assert normalize(again) == normalize(parsed)
    assert canonical(parsed) == canonical(parse(schema, resolve))
    check(schema, [other], Level.FULL, resolve)
    assert check(schema, [schema], Level.FULL, resolve) == [] or schema.type is SchemaType.JSON
    json.dumps([change.as_dict(Level.FULL) for change in diff(schema, other, resolve)])
    render(diff(schema, other, resolve), Level.FULL)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), type=st.sampled_from(SchemaType))
def test_nothing_but_codes(no_references: Resolve, data: st.DataObject, type: SchemaType) -> None:
    texts = data.draw(
        st.lists(st.one_of(TEXTS[type], TEXTS[type], st.text()), min_size=2, max_size=2)
    )
    one, two = (Schema(type, text) for text in texts)
    try:
        whole(one, two, no_references)
    except MainstemError as error:
        assert error.code.startswith("SCHEMA_")
