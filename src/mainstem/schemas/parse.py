"""Reads a schema of any type, or says what is wrong with it and where."""

from __future__ import annotations

from mainstem.schemas.avro_parse import AvroSchema, parse_avro
from mainstem.schemas.json_parse import JsonSchema, parse_json_schema
from mainstem.schemas.model import Resolve, Schema, SchemaType
from mainstem.schemas.protobuf_parse import ProtobufSchema, parse_protobuf

Parsed = AvroSchema | JsonSchema | ProtobufSchema


def parse(schema: Schema, resolve: Resolve) -> Parsed:
    """The schema, checked by the rules of its type.

    SCHEMA_MALFORMED has a place and a reason, SCHEMA_REFERENCE_UNKNOWN and
    SCHEMA_REFERENCE_CIRCLE are about what it refers to, and SCHEMA_TOO_LARGE keeps time and
    memory within bounds.
    """
    match schema.type:
        case SchemaType.AVRO:
            return parse_avro(schema, resolve)
        case SchemaType.JSON:
            return parse_json_schema(schema, resolve)
        case SchemaType.PROTOBUF:
            return parse_protobuf(schema, resolve)
