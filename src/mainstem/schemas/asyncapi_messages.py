"""Messages of an AsyncAPI document: what key and value of an object's records hold."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NoReturn

from mainstem.definitions.model import Definition, Format, Kind, SubjectStrategy
from mainstem.schemas.avro_parse import parse_avro
from mainstem.schemas.avro_print import with_references
from mainstem.schemas.json_columns import columns_schema
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.vocabulary import Column

BINDING_VERSION = "0.5.0"
_CONTENT = {
    Format.JSON: "application/json",
    Format.JSON_SCHEMA: "application/json",
    Format.AVRO: "application/vnd.apache.avro",
    Format.PROTOBUF: "application/x-protobuf",
    Format.CSV: "text/csv",
    Format.DEBEZIUM: "application/json",
}
_AVRO = "application/vnd.apache.avro+json;version=1.9.0"
_PROTOBUF = "application/vnd.google.protobuf;version=3"
_DRAFT = "application/schema+json;version=draft-07"
_LOOKUP = {
    SubjectStrategy.TOPIC_NAME: "TopicIdStrategy",
    SubjectStrategy.RECORD_NAME: "RecordIdStrategy",
    SubjectStrategy.TOPIC_RECORD_NAME: "TopicRecordIdStrategy",
}


def message(
    definition: Definition, schema: Schema | None, personal: Collection[str]
) -> dict[str, Any]:
    """The records of an object; `schema` is that of their values, if they have one.

    What AsyncAPI has no word for, personal data and rules, is in extensions of it.
    """
    made: dict[str, Any] = {
        "name": definition.record or definition.name,
        "title": definition.name,
        "contentType": _content(definition),
        "tags": [{"name": definition.kind.value}],
    }
    if definition.comment:
        made["description"] = definition.comment
    payload = _payload(definition, schema)
    if payload is not None:
        made["payload"] = payload
    marked = [c.name for c in definition.columns if c.name.lower() in personal]
    if marked:
        made["x-pii"] = marked
    if definition.rules:
        made["x-rules"] = [{"name": rule.name, "rule": rule.shown} for rule in definition.rules]
    made["bindings"] = {"kafka": _binding(definition)}
    return made


def _content(definition: Definition) -> str:
    if definition.format is Format.RAW:
        text = any(column.type == "string" for column in definition.value_columns)
        return "text/plain" if text else "application/octet-stream"
    return _CONTENT[definition.format]


def _payload(definition: Definition, schema: Schema | None) -> dict[str, Any] | None:
    """What a value holds; None where only the running catalog knows the columns of a query."""
    if schema is not None:
        return _with_format(schema)
    columns = definition.value_columns
    if not columns:
        return None
    match definition.format:
        case Format.CSV:
            names = (definition.delimiter or ",").join(column.name for column in columns)
            return {"type": "string", "description": f"One line: {names}"}
        case Format.RAW:
            return {"type": "string", "title": columns[0].name}
        case Format.DEBEZIUM:
            return {
                "type": "object",
                "description": "A change of a row as Debezium writes it, behind its own schema.",
                "properties": {"schema": {"type": "object"}, "payload": {"type": "object"}},
                "required": ["schema", "payload"],
            }
        case _:
            # others may put in more than the columns, which is passed over
            return columns_schema(columns, closed=definition.derived)


def _with_format(schema: Schema) -> dict[str, Any]:
    match schema.type:
        case SchemaType.PROTOBUF:
            return {"schemaFormat": _PROTOBUF, "schema": schema.text}
        case SchemaType.AVRO:
            # names in two parts, as tools for AsyncAPI want them
            whole = with_references(parse_avro(schema, _no_references))
            return {"schemaFormat": _AVRO, "schema": whole}
        case SchemaType.JSON:
            document = json.loads(schema.text)
            draft = document.get("$schema", "") if isinstance(document, dict) else ""
            version = draft.rstrip("#/").removesuffix("/schema").rpartition("/")[2]
            name = f"application/schema+json;version={version}" if version else _DRAFT
            return {"schemaFormat": name, "schema": document}


def _no_references(reference: Reference) -> NoReturn:
    """The schemas that come here are whole in themselves."""
    raise AssertionError(reference)


def _binding(definition: Definition) -> dict[str, Any]:
    binding: dict[str, Any] = {}
    key = _key(definition)
    if key is not None:
        binding["key"] = key
    if definition.format.registered:
        binding |= {
            "schemaIdLocation": "payload",
            "schemaIdPayloadEncoding": "confluent",
            "schemaLookupStrategy": _LOOKUP[definition.subject_strategy],
        }
    return {**binding, "bindingVersion": BINDING_VERSION}


def _key(definition: Definition) -> dict[str, Any] | None:
    """What a record's key holds: by its format if one is said, else a text, or a JSON object."""
    if not definition.key:
        return None
    keys = definition.keys
    if keys is not None and keys.value_columns and keys.format in (Format.AVRO, Format.PROTOBUF):
        # the binding knows JSON Schema only
        return {"type": "string", "format": "binary", "contentMediaType": _CONTENT[keys.format]}
    if keys is not None and keys.format is Format.RAW:
        return {"type": "string", "description": f"The text or bytes of {definition.key[0]}"}
    if keys is not None:
        return columns_schema(keys.value_columns)
    if definition.kind is Kind.STREAM and len(definition.key) == 1:
        return {"type": "string", "description": f"The text of {definition.key[0]}"}
    known = [definition.column(name) or Column(name, "string") for name in definition.key]
    return {**columns_schema(known, closed=True), "required": list(definition.key)}
