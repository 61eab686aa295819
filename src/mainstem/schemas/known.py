"""Schemas by their id, asked for once: what an id stands for never changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from mainstem.definitions.formats import record_name
from mainstem.definitions.model import Definition, Format, SubjectStrategy
from mainstem.errors import MainstemError
from mainstem.schemas import avro_columns, json_columns, protobuf_columns
from mainstem.schemas.avro_model import AvroType
from mainstem.schemas.avro_parse import parse_avro
from mainstem.schemas.avro_print import with_references
from mainstem.schemas.avro_read import NotReadable
from mainstem.schemas.json_parse import parse_json_schema
from mainstem.schemas.json_values import JsonReading
from mainstem.schemas.model import Reference, Registered, Schema, SchemaType
from mainstem.schemas.parse import parse
from mainstem.schemas.protobuf_parse import ProtobufSchema, parse_protobuf
from mainstem.schemas.protobuf_read import ProtobufReading, protobuf_reading
from mainstem.schemas.record_names import record_names
from mainstem.schemas.source import SchemaSource
from mainstem.schemas.text import dump
from mainstem.vocabulary import BACKFILL_PREFIX

_AWAY = ("REGISTRY_UNREACHABLE", "LOG_UNREACHABLE")
_MOST_STRANGE = 100
_NOT_THERE = ("SCHEMA_UNKNOWN", "SUBJECT_UNKNOWN", "SCHEMA_VERSION_UNKNOWN")
_SPOILT = (
    "SCHEMA_MALFORMED",
    "SCHEMA_TOO_LARGE",
    "SCHEMA_REFERENCE_CIRCLE",
    "SCHEMA_REFERENCE_UNKNOWN",
)


def own_schema(definition: Definition, before: ProtobufSchema | None = None) -> Schema:
    """The schema that the definition's own records are written with.

    Protobuf keeps the numbers that fields had in the version before.
    """
    match definition.format:
        case Format.JSON_SCHEMA:
            return json_columns.value_schema(definition)
        case Format.PROTOBUF:
            message = None if before is None else before.named(definition.record)
            columns = definition.value_columns
            return protobuf_columns.message_schema(record_name(definition), columns, message)
        case _:
            return avro_columns.value_schema(definition)


def next_schema(definition: Definition, registry: SchemaSource) -> Schema:
    """The same, made of the newest version that the registry has, where that matters."""
    if definition.format is not Format.PROTOBUF:
        return own_schema(definition)
    found = newest_version(definition, registry)
    if found is None or found.schema.type is not SchemaType.PROTOBUF:
        return own_schema(definition)
    return own_schema(definition, parse_protobuf(found.schema, registry.resolve))


def newest_version(definition: Definition, registry: SchemaSource) -> Registered | None:
    """The newest version that is registered for records of the definition's name, if any."""
    subject, record = subject_of(definition), definition.record
    try:
        if record is None:
            return registry.latest(subject)
        for version in reversed(registry.versions(subject)):
            found = registry.version(subject, version)
            if record in record_names(parse(found.schema, registry.resolve)):
                return found
    except MainstemError as error:
        if error.code not in _NOT_THERE:
            raise
    return None


def described(definition: Definition) -> Schema | None:
    """The schema of a definition's values, as far as it tells that itself."""
    if not definition.format.registered or not definition.value_columns:
        return None
    return own_schema(definition)


def subject_of(definition: Definition) -> str:
    """The subject of its values, or keys; what a backfill computes for it is of the same kind."""
    if definition.of_keys:
        return key_subject(definition.topic)
    topic = _own_topic(definition.topic)
    match definition.subject_strategy:
        case SubjectStrategy.TOPIC_NAME:
            return f"{topic}-value"
        case SubjectStrategy.RECORD_NAME:
            return record_name(definition)
        case SubjectStrategy.TOPIC_RECORD_NAME:
            return f"{topic}-{record_name(definition)}"


def key_subject(topic: str) -> str:
    """The subject of a topic's keys."""
    return f"{_own_topic(topic)}-key"


def _own_topic(topic: str) -> str:
    if topic.startswith(BACKFILL_PREFIX):
        return topic.removeprefix(BACKFILL_PREFIX).rpartition(".")[0]
    return topic


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
        self._names: dict[int, Mapping[str, tuple[int, ...]]] = {}
        self._protobuf: dict[int, ProtobufReading] = {}
        self._ids: dict[tuple[str, int], int] = {}
        """By subject and version, which stays what it is even when it is deleted."""
        self._written: dict[tuple[object, ...], int] = {}
        self._newest: dict[tuple[str, str | None], Registered | None] = {}
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

    def names(self, id: int) -> Mapping[str, tuple[int, ...]]:
        """The names that records with that id have (`record_names`); NotReadable as above."""
        if id not in self._names:
            with _judged(id):
                parsed = parse(self._registry.by_id(id), self._registry.resolve)
                self._names[id] = record_names(parsed)
        return self._names[id]

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

    def ids_of(self, definition: Definition) -> list[int]:
        """The ids of all versions that are registered for a definition's values, or its keys.

        While the registry does not answer, those that it has told of before. That is no judgement
        of a record: one with another id is asked about when it is met.
        """
        return self._ids_under(subject_of(definition))

    def _ids_under(self, subject: str) -> list[int]:
        try:
            for version in self._versions_of(subject):
                if (subject, version) not in self._ids:
                    self._ids[subject, version] = self._registry.version(subject, version).id
        except MainstemError as error:
            if error.code not in _AWAY:
                raise
        return [id for (known, _), id in self._ids.items() if known == subject]

    def newest(self, definition: Definition) -> Registered | None:
        """The newest version for records of the definition's name; None when there is none.

        While the registry does not answer, the one that was the newest before.
        """
        asked = subject_of(definition), definition.record
        try:
            self._newest[asked] = newest_version(definition, self._registry)
        except MainstemError as error:
            if error.code not in _AWAY or self._newest.get(asked) is None:
                raise
        return self._newest[asked]

    def is_of_keys(self, id: int, topic: str) -> bool:
        """True when that schema is registered for a topic's keys."""
        subject = key_subject(topic)
        strange = self._strange.setdefault(subject, set())
        if id in strange:
            return False
        if any(known == subject and each == id for (known, _), each in self._ids.items()):
            return True
        if len(strange) < _MOST_STRANGE and id in self._ids_under(subject):
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
        subject = subject_of(definition)
        parts = (record_name(definition), definition.format, definition.value_columns)
        written = (subject, *parts)
        if written not in self._written:
            schema = next_schema(definition, self._registry)
            self._written[written] = self._registry.register(subject, schema).id
        return self._written[written]

    def described(self, definition: Definition) -> Schema | None:
        """The schema of a definition's values, whole in itself: the registry's, or else its own."""
        registered = definition.format.registered and definition.pattern is None
        newest = newest_version(definition, self._registry) if registered else None
        found = None if newest is None else newest.schema
        if found is None or (found.references and found.type is not SchemaType.AVRO):
            return described(definition)
        if not found.references:
            return found
        whole = with_references(parse_avro(found, self._registry.resolve))
        return Schema(found.type, dump(whole))
