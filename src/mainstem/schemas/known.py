"""Schemas by their id, asked for once: what an id stands for never changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mainstem.definitions.model import Definition
from mainstem.errors import MainstemError
from mainstem.schemas.avro_columns import value_schema
from mainstem.schemas.avro_model import AvroType
from mainstem.schemas.avro_parse import parse_avro
from mainstem.schemas.avro_read import NotReadable
from mainstem.schemas.model import Reference, Registered, Schema, SchemaType

_NOT_THERE = ("SCHEMA_UNKNOWN", "SUBJECT_UNKNOWN", "SCHEMA_VERSION_UNKNOWN")
_SPOILT = ("SCHEMA_MALFORMED", "SCHEMA_TOO_LARGE", "SCHEMA_REFERENCE_CIRCLE")


class Registry(Protocol):
    """What reading and writing records needs of a registry. Calls block; any thread may call."""

    def by_id(self, id: int) -> Schema:
        """The schema with that id; raises SCHEMA_UNKNOWN."""
        ...

    def versions(self, subject: str) -> Sequence[Registered]:
        """All versions of a subject, oldest first; none when there is no such subject."""
        ...

    def resolve(self, reference: Reference) -> Schema:
        """What a reference stands for; raises SCHEMA_REFERENCE_UNKNOWN."""
        ...

    def register(self, subject: str, schema: Schema) -> Registered:
        """The schema as a version of the subject, which it may be already."""
        ...


def subject_of(topic: str) -> str:
    """The subject of a topic's values."""
    return f"{topic}-value"


class KnownSchemas:
    """A registry's schemas, as far as they were asked for; any thread may call."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._avro: dict[int, AvroType] = {}
        self._written: dict[tuple[str, Schema], int] = {}

    def avro(self, id: int) -> AvroType:
        """The Avro type with that id.

        Raises NotReadable when there is none: the registry was asked, and has said so. That it does
        not answer is another error, and no judgement of a record.
        """
        if id not in self._avro:
            try:
                schema = self._registry.by_id(id)
                if schema.type is not SchemaType.AVRO:
                    message = f"schema {id} is of type {schema.type}, not {SchemaType.AVRO}"
                    raise NotReadable(message)
                self._avro[id] = parse_avro(schema, self._registry.resolve).root
            except MainstemError as error:
                if error.code in _NOT_THERE:
                    message = f"the registry has no schema {id}"
                    raise NotReadable(message) from None
                if error.code in _SPOILT:
                    message = f"schema {id} cannot be used: {error.message}"
                    raise NotReadable(message) from None
                raise
        return self._avro[id]

    def ids_of(self, topic: str) -> list[int]:
        """The ids of all versions that are registered for a topic."""
        return [version.id for version in self._registry.versions(subject_of(topic))]

    def id_for(self, definition: Definition) -> int:
        """The id that the definition's own records carry; registers their schema if need be."""
        subject, schema = subject_of(definition.topic), value_schema(definition)
        if (subject, schema) not in self._written:
            registered = self._registry.register(subject, schema)
            self._written[subject, schema] = registered.id
        return self._written[subject, schema]
