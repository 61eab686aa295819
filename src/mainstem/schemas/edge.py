"""Rows that come in from outside -> values, by the schema that is registered for their topic.

Whoever registered a schema has said what records of the topic are like, so the newest version is
what a row is held against and written with, provided that it has a place for every column. A topic
without a schema, or with one that knows less than the definition, gets the definition's own: as a
new version, which the registry takes or refuses by the rule of the subject.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

import fastavro

from mainstem.definitions.model import Definition, Format
from mainstem.schemas import plain_values, wire
from mainstem.schemas.avro_model import Record
from mainstem.schemas.avro_read import NotReadable, reading, written
from mainstem.schemas.avro_rows import Unfit, carries, row_maker
from mainstem.schemas.json_columns import closed_to
from mainstem.schemas.json_text import row_text
from mainstem.schemas.json_values import checker
from mainstem.schemas.known import KnownSchemas
from mainstem.schemas.protobuf_codec import protobuf_bytes
from mainstem.schemas.protobuf_write import NotWritable
from mainstem.vocabulary import Column

Fields = Mapping[str, str]
"""JSON text by column, each of which fits it; a column may be missing."""
Write = Callable[[Fields], bytes]
_MOST_KEPT = 1000


class NotEncoded(ValueError):
    """A row that the registered schema refuses; `path` leads to what is wrong."""

    def __init__(self, path: tuple[str | int, ...], problem: str) -> None:
        super().__init__(problem)
        self.path = path
        self.problem = problem


class RegisteredWriters:
    """What writes rows by registered schemas. Registry errors pass through; any thread may call."""

    def __init__(self, known: KnownSchemas) -> None:
        self._known = known
        self._made: dict[tuple[object, ...], Write | None] = {}

    def writer(self, definition: Definition) -> Write:
        """What writes a definition's rows from now on; it raises NotEncoded.

        The registry is asked here, once for all rows of a request. Keys are written by the
        definition's own schema, whose id is a part of them; and so is Protobuf, whose schemas have
        no rules for values: the registry compares their types when it is registered.
        """
        write = None
        if not definition.of_keys and definition.format is not Format.PROTOBUF:
            newest = self._known.newest(definition)
            write = None if newest is None else self._by(newest.id, definition)
        if write is None:
            write = self._by(self._known.id_for(definition), definition)
        assert write is not None, "a definition's own schema has a place for all its columns"
        return write

    def _by(self, id: int, definition: Definition) -> Write | None:
        """What writes by one schema; None when it has no place for a column, or cannot be used."""
        kept = (id, definition.format, definition.value_columns, definition.of_keys)
        if kept not in self._made:
            make = {
                Format.AVRO: self._avro,
                Format.JSON_SCHEMA: self._json,
                Format.PROTOBUF: self._protobuf,
            }[definition.format]
            try:
                self._made[kept] = make(id, definition)
            except NotReadable:
                self._made[kept] = None
        return self._made[kept]

    def _avro(self, id: int, definition: Definition) -> Write | None:
        root, columns = self._known.avro(id), definition.value_columns
        reading(root, columns)  # what could not be read again is not written
        if not carries(root, columns):
            return None
        assert isinstance(root, Record)
        make, schema = row_maker(root, columns), fastavro.parse_schema(written(root))

        def write(fields: Fields) -> bytes:
            try:
                made = make(_row(fields))
            except Unfit as unfit:
                raise NotEncoded(unfit.path, f"{unfit.problem} (schema {id})") from None
            data = io.BytesIO()
            data.write(wire.header(id))
            fastavro.schemaless_writer(data, schema, made)
            return data.getvalue()

        return write

    def _json(self, id: int, definition: Definition) -> Write | None:
        schema = self._known.json(id)
        if closed_to(schema.schema.text, definition.value_columns):
            return None
        check, header, plain = checker(schema), wire.header(id), object_writer(definition)

        def write(fields: Fields) -> bytes:
            text = plain(fields)
            refused = check(text)
            if refused is None:
                return header + text
            # a column that is NULL and a field that is not there are the same to every reader
            lean = plain({name: piece for name, piece in fields.items() if piece != "null"})
            if lean != text and check(lean) is None:
                return header + lean
            raise NotEncoded(refused.path, f"{refused.reason} (schema {id})")

        return write

    def _protobuf(self, id: int, definition: Definition) -> Write:
        schema, columns = self._known.protobuf(id), definition.value_columns

        def write(fields: Fields) -> bytes:
            try:
                return protobuf_bytes(schema, columns, _row(fields))
            except NotWritable as error:
                path, _, problem = str(error).partition(": ")
                raise NotEncoded((path,), problem) from None

        return write


def object_writer(definition: Definition) -> Write:
    """What makes the JSON object of a row; that of a key is always spelled alike."""
    if definition.of_keys:
        return lambda fields: key_json(definition.columns, fields)
    return _object


def key_json(columns: Sequence[Column], fields: Fields) -> bytes:
    """The JSON object of a key: the same bytes for the same key, however its parts were sent."""
    return _key_writer(tuple(columns))(_row(fields)).encode()


@lru_cache(maxsize=_MOST_KEPT)
def _key_writer(columns: tuple[Column, ...]) -> Callable[[Mapping[str, Any]], str]:
    make, write = plain_values.row_maker(columns), row_text(columns)
    return lambda row: write(make(row))


def _object(fields: Fields) -> bytes:
    return ("{" + ",".join([f"{quoted(n)}:{piece}" for n, piece in fields.items()]) + "}").encode()


def _row(fields: Fields) -> dict[str, Any]:
    return {name: json.loads(piece, parse_float=Decimal) for name, piece in fields.items()}
