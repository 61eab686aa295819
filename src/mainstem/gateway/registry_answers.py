"""What the schema registry answers: versions, schemas, errors, and how its API describes them."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse, Response

from mainstem.errors import MainstemError
from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.avro_print import with_references
from mainstem.schemas.canonical import serialized
from mainstem.schemas.model import Resolve, Schema
from mainstem.schemas.parse import parse
from mainstem.schemas.protobuf_parse import ProtobufSchema
from mainstem.schemas.registry_errors import number_of, status_of, told
from mainstem.schemas.text import dump
from mainstem.schemas.topic_records import Kept, contents

REGISTRY_JSON = "application/vnd.schemaregistry.v1+json"
PLAIN_JSON = "application/json"


class Answer(JSONResponse):
    """JSON under the registry's own content type."""

    media_type = REGISTRY_JSON


def failure(error: MainstemError) -> Response:
    """An error as Confluent's clients read it."""
    number = number_of(error)
    return Answer({"error_code": number, "message": told(error)}, status_of(number))


def version_document(kept: Kept, resolve: Resolve, form: str = "") -> dict[str, Any]:
    """A version of a subject."""
    its = kept.registered
    document = {"subject": its.subject, "version": its.version, "id": its.id}
    document |= schema_document(kept, resolve, form)
    if its.deleted:
        document["deleted"] = True
    return document


def schema_document(kept: Kept, resolve: Resolve, form: str = "") -> dict[str, Any]:
    """A schema without its place."""
    document = contents(kept.registered.schema)
    document["schema"] = text_of(kept.registered.schema, resolve, form)
    return document | {name: json.loads(text) for name, text in kept.contract}


def text_of(schema: Schema, resolve: Resolve, form: str) -> str:
    """The text of a schema as it is kept, or in the form that is asked for."""
    if not form:
        return schema.text
    match form, parse(schema, resolve):
        case "serialized", ProtobufSchema() as protobuf:
            return serialized(protobuf)
        case "resolved", AvroSchema() as avro:
            return dump(with_references(avro))
    problem = f'there is no format "{form}" for {schema.type}'
    raise MainstemError("BAD_REQUEST", problem=problem)


# -- how the API describes it

_ERROR = {
    "type": "object",
    "required": ["error_code", "message"],
    "properties": {"error_code": {"type": "integer"}, "message": {"type": "string"}},
}
_MEANINGS = {
    40401: "there is no such subject",
    40402: "there is no such version",
    40403: "there is no such schema",
    40404: "the subject is deleted already",
    40405: "the subject must be deleted first",
    40406: "the version is deleted already",
    40407: "the version must be deleted first",
    40408: "the subject has no level of its own",
    40409: "the subject has no mode of its own",
    40901: "the schema breaks the subject's rule",
    422: "the request cannot be read",
    42201: "the schema is malformed, or what it refers to is",
    42202: "that is not a version",
    42203: "that is not a compatibility level",
    42204: "that is not a mode",
    42205: "the mode does not permit it",
    42206: "another schema refers to it",
    42208: "the subject's name cannot be used",
    42209: "the schema is too large",
    50001: "the log does not answer",
    50002: "others keep writing; nothing was written",
}
_ALWAYS = (404, 422, 42208, 50001)
"""404: the project uses a registry elsewhere."""
_CHANGES = (50002,)


def described(
    schema: dict[str, Any], example: Any, *numbers: int, changes: bool = False
) -> dict[int | str, dict[str, Any]]:
    """The answers of a route: one that is good, and the errors by their numbers."""
    found: dict[int | str, dict[str, Any]] = {200: _content(schema, example, "As asked for.")}
    by_status: dict[int, list[int]] = {}
    for number in sorted({*_ALWAYS, *numbers, *(_CHANGES if changes else ())}, key=str):
        by_status.setdefault(status_of(number), []).append(number)
    for status, its in by_status.items():
        told = [n for n in its if n in _MEANINGS]
        text = "; ".join(f"{n}: {_MEANINGS[n]}" for n in told) or "There is no registry here."
        example_number = told[0] if told else its[0]
        error = {"error_code": example_number, "message": _MEANINGS.get(example_number, text)}
        found[status] = _content(_ERROR, error, text)
    return found


def described_text(*numbers: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that gives a schema's text alone: JSON, but for Protobuf."""
    found = described({}, json.loads(CLICK), *numbers)
    found[200]["content"]["text/plain"] = {"schema": TEXT}
    return found


def _content(schema: dict[str, Any], example: Any, text: str) -> dict[str, Any]:
    shown = {"schema": schema, "example": example}
    return {"description": text, "content": {REGISTRY_JSON: shown, PLAIN_JSON: shown}}


def listed(item: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema of a list."""
    return {"type": "array", "items": item}


def object_of(**members: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema of an object."""
    return {"type": "object", "properties": members}


TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
YES = {"type": "boolean"}
REFERENCES = listed(object_of(name=TEXT, subject=TEXT, version=NUMBER))
SCHEMA = object_of(schema=TEXT, schemaType=TEXT, references=REFERENCES)
VERSION = object_of(
    subject=TEXT, version=NUMBER, id=NUMBER, schema=TEXT, schemaType=TEXT, references=REFERENCES
)

CLICK = (
    '{"type":"record","name":"Click","fields":[{"name":"user","type":"string"},'
    '{"name":"page","type":["null","string"],"default":null}]}'
)
CLICK_VERSION = {"subject": "clicks-value", "version": 1, "id": 1, "schema": CLICK}
EXAMPLES: dict[str, Any] = {
    "Avro": {"value": {"schema": CLICK}},
    "JSON Schema": {
        "value": {
            "schemaType": "JSON",
            "schema": '{"type":"object","properties":{"user":{"type":"string"}}}',
        }
    },
    "Protobuf with a reference": {
        "value": {
            "schemaType": "PROTOBUF",
            "schema": 'syntax = "proto3"; import "user.proto"; message Click { User user = 1; }',
            "references": [{"name": "user.proto", "subject": "user", "version": 1}],
        }
    },
}
