"""Protobuf values <-> JSON text, one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import compress
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor

from mainstem.schemas.json_text import bytes_text, escape, number_text, row_text
from mainstem.schemas.plain_values import row_maker
from mainstem.schemas.protobuf_read import (
    BadMessage,
    ProtobufReading,
    descriptor,
    message_of,
)
from mainstem.schemas.protobuf_types import known_text, wrapped
from mainstem.schemas.protobuf_write import encoder
from mainstem.schemas.wire import FIRST_MESSAGE, header
from mainstem.vocabulary import Column

_MOST_KEPT = 1000


def protobuf_text(value: bytes, reading: ProtobufReading, columns: tuple[Column, ...]) -> str:
    """The value as a JSON object of the columns that it has.

    Raises NotFramed, NotReadable, BadMessage.
    """
    message, reader = message_of(value, reading, columns)
    try:
        row = [get(message) for get in compress(reader.columns, reader.known)]
    except ValueError as error:
        text = f"{error} (schema {reading.id})"
        raise BadMessage(text) from None
    return _row_text(columns, reader.known)(row)


def protobuf_bytes(
    reading: ProtobufReading, columns: tuple[Column, ...], row: Mapping[str, Any]
) -> bytes:
    """A row of JSON values as a value with that schema; raises NotWritable."""
    return header(reading.id) + FIRST_MESSAGE + _row_encoder(reading, columns)(row)


def message_encoder(
    reading: ProtobufReading, columns: tuple[Column, ...]
) -> Callable[[Any], bytes]:
    """What makes data of a row's plain values (`protobuf_write`): a schema's first message."""
    made = message_factory.GetMessageClass(descriptor(reading, (0,)))
    return encoder(made, columns)


def natural_text(value: bytes, reading: ProtobufReading) -> str:
    """The value as JSON with all that it holds; raises NotFramed, NotReadable, BadMessage."""
    message, _ = message_of(value, reading, ())
    return _natural(message)


@lru_cache(maxsize=_MOST_KEPT)
def _row_encoder(
    reading: ProtobufReading, columns: tuple[Column, ...]
) -> Callable[[Mapping[str, Any]], bytes]:
    make, encode = row_maker(columns), message_encoder(reading, columns)
    return lambda row: encode(make(row))


@lru_cache(maxsize=_MOST_KEPT)
def _row_text(columns: tuple[Column, ...], known: tuple[bool, ...]) -> Callable[[Any], str]:
    return row_text(list(compress(columns, known)))


def _natural(message: Any) -> str:
    known = known_text(message)
    if known is not None:
        return known
    only = wrapped(message)
    if only is not None:
        return _one(only, message.value)
    pieces = []
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        pieces.append(f"{escape(field.name)}:{_field(field, getattr(message, field.name))}")
    return "{" + ",".join(pieces) + "}"


def _field(field: FieldDescriptor, value: Any) -> str:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        pairs = (f"{json.dumps(str(k))}:{_one(inner, value[k])}" for k in sorted(value))
        return "{" + ",".join(pairs) + "}"
    if field.is_repeated:
        return "[" + ",".join(_one(field, item) for item in value) + "]"
    return _one(field, value)


def _one(field: FieldDescriptor, value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() if field.enum_type is not None:
            known = field.enum_type.values_by_number.get(value)
            return str(value) if known is None else escape(known.name)
        case int():
            return str(value)
        case float():
            return number_text(value)
        case str():
            return escape(value)
        case bytes():
            return bytes_text(value)
        case _:
            return _natural(value)
