"""How Protobuf messages become the columns of a definition. Needs no registry to read.

A column takes the field of its name, when the field's type can only become wider by it; a column
without a field is NULL, and fields without a column are passed over. Values come out plain: times
in microseconds, dates in days, decimals as such, structs as tuples, maps as pairs in the order of
their keys, so that a message always gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError, Message

from mainstem.definitions.types import struct_fields, type_parts
from mainstem.errors import MainstemError
from mainstem.schemas import wire
from mainstem.schemas.avro_read import NotReadable
from mainstem.schemas.model import Schema
from mainstem.schemas.protobuf_parse import ProtobufSchema
from mainstem.schemas.protobuf_types import Convert, described, known_message, scalar
from mainstem.schemas.protobuf_weight import HEAVIEST, Weights
from mainstem.vocabulary import Column

Get = Callable[[Any], Any]
_MOST_KEPT = 1000


class BadMessage(ValueError):
    """Data that is no message of its type, or one that does not fit; the text says why."""


@dataclass(frozen=True, slots=True)
class ProtobufReading:
    """A schema as descriptors, each behind what it imports: plain values for any process."""

    id: int
    schema: Schema
    files: tuple[bytes, ...]

    def parsed(self) -> ProtobufSchema:
        """The schema, as if it had just been compiled."""
        *imports, file = (FileDescriptorProto.FromString(data) for data in self.files)
        return ProtobufSchema(self.schema, file, tuple(imports))


@dataclass(frozen=True, slots=True)
class MessageReader:
    """Reads messages of one type: their data, and each column of them."""

    parse: Callable[[bytes], Message]
    columns: tuple[Get, ...]
    known: tuple[bool, ...]
    """Of each column, whether the messages have such a field."""
    weights: Weights
    """How much memory the data may take."""


def protobuf_reading(id: int, parsed: ProtobufSchema) -> ProtobufReading:
    """What a worker needs to read records of a schema."""
    files = (*parsed.imports, parsed.file)
    return ProtobufReading(id, parsed.schema, tuple(f.SerializeToString() for f in files))


def message_of(value: bytes, reading: ProtobufReading, columns: tuple[Column, ...]) -> Any:
    """A framed value's message and its reader; raises NotFramed, NotReadable, BadMessage."""
    indexes, begin = wire.message_indexes(value)
    found = reader(reading, indexes, columns)
    if isinstance(found, str):
        raise NotReadable(found)
    data = value[begin:]
    if found.weights.of(data) > HEAVIEST:
        message = f"it would take more than {HEAVIEST >> 20} MB of memory"
        raise BadMessage(message)
    try:
        return found.parse(data), found
    except DecodeError as error:
        message = f"it does not hold what schema {reading.id} says: {error}"
        raise BadMessage(message) from None


@lru_cache(maxsize=_MOST_KEPT)
def reader(
    reading: ProtobufReading, indexes: tuple[int, ...], columns: tuple[Column, ...]
) -> MessageReader | str:
    """The reader of a message type; a text says why none of its messages can be read."""
    try:
        message = descriptor(reading, indexes)
        known = tuple(column.name in message.fields_by_name for column in columns)
        getters = tuple(_getters(message, columns, ""))
        return MessageReader(_parser(message), getters, known, Weights(message))
    except NotReadable as error:
        return str(error)


def _parser(type_: Descriptor) -> Callable[[bytes], Message]:
    parse = message_factory.GetMessageClass(type_).FromString
    if not _has_required(type_, set()):
        return parse

    def whole(data: bytes) -> Message:
        message = parse(data)
        if not message.IsInitialized():
            text = "a required field is missing"
            raise DecodeError(text)
        return message

    return whole


def _has_required(type_: Descriptor, seen: set[str]) -> bool:
    if type_.full_name in seen:
        return False
    seen.add(type_.full_name)
    inside = [field.message_type for field in type_.fields if field.message_type is not None]
    required = any(field.is_required for field in type_.fields)
    return required or any(_has_required(inner, seen) for inner in inside)


@lru_cache(maxsize=_MOST_KEPT)
def _parsed(reading: ProtobufReading) -> ProtobufSchema:
    return reading.parsed()


def descriptor(reading: ProtobufReading, indexes: tuple[int, ...]) -> Descriptor:
    """The message at a place of the schema."""
    try:
        return _parsed(reading).message(indexes)
    except MainstemError:
        message = f"schema {reading.id} has no message at {list(indexes)}"
        raise NotReadable(message) from None


def _getters(message: Descriptor, columns: Sequence[Column], path: str) -> list[Get]:
    known = message.fields_by_name
    return [
        _getter(known[c.name], c.type, f"{path}{c.name}") if c.name in known else _nothing
        for c in columns
    ]


def _getter(field: FieldDescriptor, column: str, path: str) -> Get:
    get, name = attrgetter(field.name), field.name
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _map(field, field.message_type, column, path)
    if field.is_repeated:
        if not column.startswith("array<"):
            raise _misfit(field, column, path)
        item = _converted(field, column[len("array<") : -1], f"{path}[]")
        if item is None:
            return lambda message: list(get(message))
        return lambda message: [item(value) for value in get(message)]
    convert = _converted(field, column, path)
    if not field.has_presence or field.has_default_value:
        return get if convert is None else (lambda message: convert(get(message)))
    if convert is None:
        return lambda message: get(message) if message.HasField(name) else None
    return lambda message: convert(get(message)) if message.HasField(name) else None


def _map(field: FieldDescriptor, entry: Descriptor, column: str, path: str) -> Get:
    if not column.startswith("map<"):
        raise _misfit(field, column, path)
    get = attrgetter(field.name)
    kinds = type_parts(column[len("map<") : -1])
    key = _converted(entry.fields_by_name["key"], kinds[0], f"{path}[]")
    value = _converted(entry.fields_by_name["value"], kinds[1], f"{path}[]")
    if key is None and value is None:
        return lambda message: sorted(get(message).items(), key=_first)
    key, value = key or _same, value or _same
    return lambda message: [(key(k), value(v)) for k, v in sorted(get(message).items(), key=_first)]


def _converted(field: FieldDescriptor, column: str, path: str) -> Convert | None:
    """What makes a column's value of a field's; None when that is the same."""
    if field.message_type is None:
        fits, convert = scalar(field, column)
        if fits:
            return convert
    else:
        meant = known_message(field.message_type, column)
        if meant is not None:
            return meant
        if column.startswith("struct<"):
            inside = [Column(name, kind) for name, kind in struct_fields(column).values()]
            getters = _getters(field.message_type, inside, f"{path}.")
            return lambda message: tuple([get(message) for get in getters])
    raise _misfit(field, column, path)


def _misfit(field: FieldDescriptor, column: str, path: str) -> NotReadable:
    return NotReadable(f'field "{path}" is of type {described(field)}, which is no {column}')


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _same(value: Any) -> Any:
    return value


def _nothing(_: Any) -> None:
    return None
