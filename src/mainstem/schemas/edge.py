"""Rows that come in from outside -> values, by the schema that is registered for their topic.

Whoever registered a schema has said what records of the topic are like, so the newest version is
what a row is held against and written with, provided that it has a place for every column. A topic
without a schema, or with one that knows less than the definition, gets the definition's own: as a
new version, which the registry takes or refuses by the rule of the subject.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import fastavro

from mainstem.definitions.model import Definition, Format
from mainstem.schemas import wire
from mainstem.schemas.avro_model import Record
from mainstem.schemas.avro_read import NotReadable, reading, written
from mainstem.schemas.avro_rows import Unfit, carries, row_maker
from mainstem.schemas.json_columns import closed_to
from mainstem.schemas.json_values import checker
from mainstem.schemas.known import KnownSchemas
from mainstem.vocabulary import Column

Fields = Mapping[str, str]
"""JSON text by column, each of which fits it; a column may be missing."""
Write = Callable[[Fields], bytes]


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
        self._made: dict[tuple[int, Format, tuple[Column, ...]], Write | None] = {}

    def writer(self, definition: Definition) -> Write:
        """What writes a definition's rows from now on; it raises NotEncoded.

        The registry is asked here, once for all rows of a request.
        """
        newest = self._known.newest(definition.topic)
        write = None if newest is None else self._by(newest.id, definition)
        if write is None:
            write = self._by(self._known.id_for(definition), definition)
        assert write is not None, "a definition's own schema has a place for all its columns"
        return write

    def _by(self, id: int, definition: Definition) -> Write | None:
        """What writes by one schema; None when it has no place for a column, or cannot be used."""
        kept = (id, definition.format, definition.value_columns)
        if kept not in self._made:
            make = self._json if definition.format is Format.JSON_SCHEMA else self._avro
            try:
                self._made[kept] = make(id, definition.value_columns)
            except NotReadable:
                self._made[kept] = None
        return self._made[kept]

    def _avro(self, id: int, columns: tuple[Column, ...]) -> Write | None:
        root = self._known.avro(id)
        reading(root, columns)  # what could not be read again is not written
        if not carries(root, columns):
            return None
        assert isinstance(root, Record)
        make, schema = row_maker(root, columns), fastavro.parse_schema(written(root))

        def write(fields: Fields) -> bytes:
            row = {name: _loaded(piece) for name, piece in fields.items()}
            try:
                made = make(row)
            except Unfit as unfit:
                raise NotEncoded(unfit.path, f"{unfit.problem} (schema {id})") from None
            data = io.BytesIO()
            data.write(wire.header(id))
            fastavro.schemaless_writer(data, schema, made)
            return data.getvalue()

        return write

    def _json(self, id: int, columns: tuple[Column, ...]) -> Write | None:
        schema = self._known.json(id)
        if closed_to(schema.schema.text, columns):
            return None
        check, header = checker(schema), wire.header(id)

        def write(fields: Fields) -> bytes:
            text = json_object(fields)
            refused = check(text)
            if refused is None:
                return header + text
            # a column that is NULL and a field that is not there are the same to every reader
            lean = json_object({name: piece for name, piece in fields.items() if piece != "null"})
            if lean != text and check(lean) is None:
                return header + lean
            raise NotEncoded(refused.path, f"{refused.reason} (schema {id})")

        return write


def json_object(fields: Fields) -> bytes:
    """The JSON object of a row."""
    pieces = (f"{json.dumps(name)}:{piece}" for name, piece in fields.items())
    return ("{" + ",".join(pieces) + "}").encode()


def _loaded(piece: str) -> Any:
    return json.loads(piece, parse_float=Decimal)
