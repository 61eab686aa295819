"""Values of records in every format <-> JSON text, for all who do not read with Spark."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import fastavro

from mainstem.definitions.model import Definition, Format
from mainstem.errors import MainstemError
from mainstem.schemas import csv_rows, wire
from mainstem.schemas.avro_json import natural_writer, row_writer
from mainstem.schemas.avro_model import AvroType, Record
from mainstem.schemas.avro_read import NotReadable, bare_key, check_bounded, reading, written
from mainstem.schemas.change_text import change_text
from mainstem.schemas.changes import NotAChange
from mainstem.schemas.csv_text import BadLine
from mainstem.schemas.edge import Fields, RegisteredWriters, Write, object_writer
from mainstem.schemas.json_values import checker
from mainstem.schemas.known import KnownSchemas
from mainstem.schemas.model import SchemaType
from mainstem.schemas.protobuf_codec import natural_text, protobuf_text
from mainstem.schemas.protobuf_read import BadMessage
from mainstem.schemas.record_names import is_named
from mainstem.vocabulary import Column

_LONGEST_PROBLEM = 200
_MOST_KEPT = 1000


class NotDecoded(ValueError):
    """A value that does not hold what its format says; the text says why."""


class Codec:
    """Decodes and encodes values. Registry errors pass through: they say nothing of a value."""

    def __init__(self, known: KnownSchemas) -> None:
        self._known = known
        self._writers = RegisteredWriters(known)
        self._rows: dict[tuple[int, tuple[Column, ...], bool], Callable[[bytes], str]] = {}

    def text(self, definition: Definition, value: bytes, key: bytes | None = None) -> bytes:
        """The value as a JSON object of the definition's columns; raises NotDecoded.

        A column may be missing there. What is JSON already is not looked into. Captured changes of
        documents have a part of what they tell in the record's key.
        """
        match definition.format:
            case Format.JSON:
                return value
            case Format.AVRO:
                return self._avro(value, definition).encode()
            case Format.JSON_SCHEMA:
                return self._json(value)
            case Format.PROTOBUF:
                return self._protobuf(value, definition.value_columns).encode()
            case Format.CSV:
                try:
                    return csv_rows.row_text(definition, _decoded(value)).encode()
                except BadLine as error:
                    raise NotDecoded(str(error)) from None
            case Format.RAW:
                [column] = definition.value_columns
                text = column.type == "string"
                plain = _decoded(value) if text else base64.b64encode(value).decode()
                return json.dumps({column.name: plain}).encode()
            case Format.DEBEZIUM:
                try:
                    return change_text(definition, value, key).encode()
                except NotAChange as error:
                    raise NotDecoded(str(error)) from None

    def is_own(self, definition: Definition, value: bytes | None) -> bool:
        """True when the value is one of the definition's, by the name that its schema gives it.

        NotDecoded when nothing says a name; what has no value has none.
        """
        if definition.record is None:
            return True
        if value is None:
            return False
        try:
            return is_named(value, self._known.names(wire.schema_id(value)), definition.record)
        except (wire.NotFramed, NotReadable) as error:
            raise NotDecoded(str(error)) from None

    def key_text(self, keys: Definition, key: bytes) -> bytes:
        """A key as a JSON object; `keys` is what a definition says of them. Raises NotDecoded."""
        try:
            text = self.text(keys, key)
            if keys.format is Format.JSON and not isinstance(json.loads(text), dict):
                message = "it is not a JSON object"
                raise NotDecoded(message)
        except (ValueError, RecursionError) as error:  # NotDecoded is one of them
            message = f"the key: {error}"
            raise NotDecoded(message) from None
        return text

    def writer(self, definition: Definition) -> Write:
        """What makes the value of a row, whose fields come as JSON text that fits their columns.

        Made once for all rows of a request. It raises `edge.NotEncoded` for a row that the format
        has no words for, or that the schema which is registered for the topic refuses.
        """
        match definition.format:
            case Format.JSON:
                return object_writer(definition)
            case Format.JSON_SCHEMA | Format.AVRO | Format.PROTOBUF:
                return self._writers.writer(definition)
            case Format.CSV:
                return lambda fields: csv_rows.line_of(definition, fields).encode()
            case Format.RAW:
                return lambda fields: _raw(definition, fields)
            case Format.DEBEZIUM:
                raise not_written(definition)

    def shown(self, value: bytes) -> str | None:
        """JSON of a value that begins with the id of a schema; None for any other.

        None as well when the registry cannot be asked: the bytes themselves can still be shown.
        """
        try:
            return self.natural(value)
        except (MainstemError, ValueError, OverflowError):
            return None

    def natural(self, value: bytes) -> str:
        """JSON of all that a value holds which begins with the id of a schema.

        Raises NotFramed, NotReadable, NotDecoded or BadMessage, or OverflowError for a time out of
        all bounds.
        """
        id = wire.schema_id(value)
        match self._known.type_of(id):
            case SchemaType.JSON:
                return self._json(value).decode()
            case SchemaType.PROTOBUF:
                return natural_text(value, self._known.protobuf(id))
            case SchemaType.AVRO:
                root = self._known.avro(id)
                check_bounded(root)
                return natural_writer(root)(_decode(_decoder(id, _text(root)), value))

    def shown_key(self, topic: str, key: bytes) -> str | None:
        """The same for a key, whose schema has to be one for keys: many keys begin with zeros."""
        try:
            id = wire.schema_id(key)
            return self.shown(key) if self._known.is_of_keys(id, topic) else None
        except (MainstemError, ValueError):
            return None

    def _json(self, value: bytes) -> bytes:
        try:
            id = wire.schema_id(value)
            check = checker(self._known.json(id))
        except (wire.NotFramed, NotReadable) as error:
            raise NotDecoded(str(error)) from None
        text = value[wire.HEADER_BYTES :]
        problem = check(text)
        if problem is not None:
            message = f"it is not what schema {id} says: {problem}"
            raise NotDecoded(message)
        return text

    def _protobuf(self, value: bytes, columns: tuple[Column, ...]) -> str:
        try:
            return protobuf_text(value, self._known.protobuf(wire.schema_id(value)), columns)
        except (wire.NotFramed, NotReadable, BadMessage) as error:
            raise NotDecoded(str(error)) from None

    def _avro(self, value: bytes, definition: Definition) -> str:
        columns, of_keys = definition.value_columns, definition.of_keys
        try:
            id = wire.schema_id(value)
            known = self._rows.get((id, columns, of_keys))
            if known is None:
                root = self._known.avro(id)
                root = bare_key(root, columns) if of_keys else root
                known = self._rows[id, columns, of_keys] = _reader(id, root, columns)
            return known(value)
        except (wire.NotFramed, NotReadable) as error:
            raise NotDecoded(str(error)) from None


def not_written(definition: Definition) -> MainstemError:
    """Nobody but its source writes a stream of captured changes."""
    return MainstemError(
        "OBJECT_OF_SOURCE",
        kind=definition.kind,
        name=definition.name,
        source=definition.source,
        advice="Write to the table there: its changes come by themselves.",
    )


def _reader(id: int, root: AvroType, columns: tuple[Column, ...]) -> Callable[[bytes], str]:
    document = reading(root, columns).written
    assert isinstance(root, Record)
    write, decoder = row_writer(root, columns), _decoder(id, document)

    def text(value: bytes) -> str:
        try:
            return write(_decode(decoder, value))
        except OverflowError:
            message = f"a time in it is out of all bounds (schema {id})"
            raise NotDecoded(message) from None

    return text


def _text(root: AvroType) -> str:
    return json.dumps(written(root))


@lru_cache(maxsize=_MOST_KEPT)
def _decoder(id: int, document: str) -> Any:
    return id, fastavro.parse_schema(json.loads(document))


def _decode(decoder: Any, value: bytes) -> Any:
    id, schema = decoder
    data = io.BytesIO(value)
    data.seek(wire.HEADER_BYTES)
    try:
        return fastavro.schemaless_reader(data, schema, None)
    except Exception as error:  # noqa: BLE001 - bytes of any kind, and a decoder of many errors
        problem = str(error)[:_LONGEST_PROBLEM] or type(error).__name__
        message = f"it does not hold what schema {id} says: {problem}"
        raise NotDecoded(message) from None


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        message = f"it is not UTF-8 text: {error.reason} at byte {error.start}"
        raise NotDecoded(message) from None


def _raw(definition: Definition, fields: Fields) -> bytes:
    [column] = definition.value_columns
    plain = str(json.loads(fields.get(column.name, '""')) or "")
    return plain.encode() if column.type == "string" else base64.b64decode(plain)
