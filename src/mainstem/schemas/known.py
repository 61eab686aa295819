"""Schemas by their id, asked for once: what an id stands for never changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mainstem.definitions.model import Definition, Format
from mainstem.errors import MainstemError
from mainstem.schemas import avro_columns, json_columns, protobuf_columns
from mainstem.schemas.avro_model import AvroType
from mainstem.schemas.avro_parse import parse_avro
from mainstem.schemas.avro_read import NotReadable
from mainstem.schemas.json_parse import parse_json_schema
from mainstem.schemas.json_values import JsonReading
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.schemas.protobuf_parse import ProtobufSchema, parse_protobuf
from mainstem.schemas.protobuf_read import ProtobufReading, protobuf_reading
from mainstem.schemas.source import SchemaSource
from mainstem.vocabulary import BACKFILL_PREFIX

_MOST_STRANGE = 100
_NOT_THERE = ("SCHEMA_UNKNOWN", "SUBJECT_UNKNOWN", "SCHEMA_VERSION_UNKNOWN")
_SPOILT = ("SCHEMA_MALFORMED", "SCHEMA_TOO_LARGE", "SCHEMA_REFERENCE_CIRCLE")


def own_schema(definition: Definition, before: ProtobufSchema | None = None) -> Schema:
    """The schema that the definition's own records are written with.

    Protobuf keeps the numbers that fields had in the version before.
    """
    match definition.format:
        case Format.JSON_SCHEMA:
            return json_columns.value_schema(definition)
        case Format.PROTOBUF:
            message = None if before is None else before.first_message()
            columns = definition.value_columns
            return protobuf_columns.message_schema(definition.name, columns, message)
        case _:
            return avro_columns.value_schema(definition)


def next_schema(definition: Definition, registry: SchemaSource) -> Schema:
    """The same, made of the newest version that the registry has, where that matters."""
    if definition.format is not Format.PROTOBUF:
        return own_schema(definition)
    try:
        found = registry.latest(subject_of(definition.topic, keys=definition.of_keys)).schema
    except MainstemError as error:
        if error.code in _NOT_THERE:
            return own_schema(definition)
        raise
    if found.type is not SchemaType.PROTOBUF:
        return own_schema(definition)
    return own_schema(definition, parse_protobuf(found, registry.resolve))


def subject_of(topic: str, *, keys: bool = False) -> str:
    """The subject of a topic's values or keys; what a backfill computes for it is of that kind."""
    if topic.startswith(BACKFILL_PREFIX):
        topic = topic.removeprefix(BACKFILL_PREFIX).rpartition(".")[0]
    return f"{topic}-{'key' if keys else 'value'}"


@contextmanager
def _judged(id: int) -> Iterator[None]:
    """What the registry says of a schema means that its records cannot be read."""
    try:
        yield
    except MainstemError as error:
        if error.code in _NOT_THERE:
            message = f"the registry has no schema {id}"
            raise NotReadable(message) from None
        if error.code in _SPOILT:
            message = f"schema {id} cannot be used: {error.message}"
            raise NotReadable(message) from None
        raise


class KnownSchemas:
    """A registry's schemas, as far as they were asked for; any thread may call."""

    def __init__(self, registry: SchemaSource) -> None:
        self._registry = registry
        self._avro: dict[int, AvroType] = {}
        self._json: dict[int, JsonReading] = {}
        self._protobuf: dict[int, ProtobufReading] = {}
        self._ids: dict[tuple[str, int], int] = {}
        """By subject and version, which stays what it is even when it is deleted."""
        self._written: dict[tuple[object, ...], int] = {}
        self._strange: dict[str, set[int]] = {}
        """By subject: ids that were asked for, and are none of its versions."""

    def type_of(self, id: int) -> SchemaType:
        """Of which type the schema with that id is; raises NotReadable in the same way."""
        for known, type_ in (
            (self._avro, SchemaType.AVRO),
            (self._json, SchemaType.JSON),
            (self._protobuf, SchemaType.PROTOBUF),
        ):
            if id in known:
                return type_
        with _judged(id):
            return self._registry.by_id(id).type

    def avro(self, id: int) -> AvroType:
        """The Avro type with that id.

        Raises NotReadable when there is none: the registry was asked, and has said so. That it does
        not answer is another error, and no judgement of a record.
        """
        if id not in self._avro:
            with _judged(id):
                schema = self._schema(id, SchemaType.AVRO)
                self._avro[id] = parse_avro(schema, self._registry.resolve).root
        return self._avro[id]

    def json(self, id: int) -> JsonReading:
        """The JSON Schema with that id; raises NotReadable in the same way."""
        if id not in self._json:
            referred: dict[Reference, Schema] = {}

            def resolve(reference: Reference) -> Schema:
                referred[reference] = self._registry.resolve(reference)
                return referred[reference]

            with _judged(id):
                schema = self._schema(id, SchemaType.JSON)
                parse_json_schema(schema, resolve)
                self._json[id] = JsonReading(schema, tuple(referred.items()))
        return self._json[id]

    def protobuf(self, id: int) -> ProtobufReading:
        """The Protobuf schema with that id; raises NotReadable in the same way."""
        if id not in self._protobuf:
            with _judged(id):
                schema = self._schema(id, SchemaType.PROTOBUF)
                parsed = parse_protobuf(schema, self._registry.resolve)
                self._protobuf[id] = protobuf_reading(id, parsed)
        return self._protobuf[id]

    def _schema(self, id: int, wanted: SchemaType) -> Schema:
        schema = self._registry.by_id(id)
        if schema.type is not wanted:
            message = f"schema {id} is of type {schema.type}, not {wanted}"
            raise NotReadable(message)
        return schema

    def ids_of(self, topic: str, *, keys: bool = False) -> list[int]:
        """The ids of all versions that are registered for a topic's values, or for its keys."""
        subject = subject_of(topic, keys=keys)
        for version in self._versions_of(subject):
            if (subject, version) not in self._ids:
                self._ids[subject, version] = self._registry.version(subject, version).id
        return [id for (known, _), id in self._ids.items() if known == subject]

    def is_of_keys(self, id: int, topic: str) -> bool:
        """True when that schema is registered for a topic's keys."""
        subject = subject_of(topic, keys=True)
        strange = self._strange.setdefault(subject, set())
        if id in strange:
            return False
        if any(known == subject and each == id for (known, _), each in self._ids.items()):
            return True
        if len(strange) < _MOST_STRANGE and id in self.ids_of(topic, keys=True):
            return True
        strange.add(id)
        return False

    def _versions_of(self, subject: str) -> list[int]:
        try:
            return self._registry.versions(subject)
        except MainstemError as error:
            if error.code in _NOT_THERE:
                return []
            raise

    def id_for(self, definition: Definition) -> int:
        """The id that the definition's own records carry; registers their schema if need be."""
        if definition.follows and not definition.derived:
            raise MainstemError(
                "NOT_SUPPORTED",
                what=f'writing to "{definition.name}"',
                where="a stream that takes its columns from the registry",
                advice="Write with a client that has the schema, or give the stream columns.",
            )
        subject = subject_of(definition.topic, keys=definition.of_keys)
        written = (subject, definition.name, definition.format, definition.value_columns)
        if written not in self._written:
            schema = next_schema(definition, self._registry)
            self._written[written] = self._registry.register(subject, schema).id
        return self._written[written]
