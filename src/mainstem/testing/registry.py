"""A schema registry in memory, for tests of pipelines: it takes every schema, and judges none."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Mapping
from typing import Any

import fastavro
from google.protobuf import json_format

from mainstem.errors import MainstemError
from mainstem.schemas import wire
from mainstem.schemas.compatibility import Level
from mainstem.schemas.model import Reference, Registered, Schema, SchemaType
from mainstem.schemas.protobuf_parse import parse_protobuf


class MemoryRegistry:
    """Ids are given in the order in which schemas come, beginning with 1."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids: dict[Schema, int] = {}
        self._subjects: dict[str, list[Registered]] = {}

    def by_id(self, id: int) -> Schema:
        """The schema with that id."""
        for schema, known in self._ids.items():
            if known == id:
                return schema
        raise MainstemError("SCHEMA_UNKNOWN", what=f"with id {id}")

    def latest(self, subject: str) -> Registered:
        """The newest version of a subject."""
        return self.version(subject, len(self._subjects.get(subject, ())))

    def version(self, subject: str, version: int) -> Registered:
        """One version of a subject."""
        for registered in self._subjects.get(subject, ()):
            if registered.version == version:
                return registered
        raise MainstemError("SUBJECT_UNKNOWN", subject=subject)

    def versions(self, subject: str, *, fresh: bool = True) -> list[int]:
        """All versions of a subject."""
        if subject not in self._subjects:
            raise MainstemError("SUBJECT_UNKNOWN", subject=subject)
        return [registered.version for registered in self._subjects[subject]]

    def resolve(self, reference: Reference) -> Schema:
        """What a reference stands for."""
        for registered in self._subjects.get(reference.subject, ()):
            if registered.version == reference.version:
                return registered.schema
        problem = f'there is no version {reference.version} of "{reference.subject}"'
        raise MainstemError("SCHEMA_REFERENCE_UNKNOWN", name=reference.name, problem=problem)

    def level(self, subject: str) -> Level:
        """The rule of a subject: there is none."""
        return Level.NONE

    def check(self, subject: str, schema: Schema) -> list[str]:
        """What registering the schema would break: nothing."""
        return []

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> Registered:
        """The schema as a version of the subject."""
        with self._lock:
            versions = self._subjects.setdefault(subject, [])
            for known in versions:
                if known.schema == schema:
                    return known
            id = self._ids.setdefault(schema, len(self._ids) + 1)
            versions.append(Registered(subject, len(versions) + 1, id, schema))
            return versions[-1]


def written_by(registry: MemoryRegistry, schema: str, row: Mapping[str, Any]) -> bytes:
    """A row as a writer with this schema has it, which registers it under its own name.

    A text is Protobuf, whose first message the row is; a schema of type object is a JSON Schema;
    others are Avro.
    """
    document = json.loads(schema)
    if isinstance(document, str):
        parsed = parse_protobuf(Schema(SchemaType.PROTOBUF, document), registry.resolve)
        id = registry.register(parsed.message().full_name, parsed.schema).id
        message = json_format.ParseDict(dict(row), parsed.message_class()())
        return wire.header(id) + wire.FIRST_MESSAGE + message.SerializeToString()
    if document["type"] == "object":
        id = registry.register(document["title"], Schema(SchemaType.JSON, schema)).id
        return wire.header(id) + json.dumps(row).encode()
    id = registry.register(document["name"], Schema(SchemaType.AVRO, schema)).id
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(document), row)
    return wire.header(id) + data.getvalue()
