"""Avro's own JSON encoding -> values with the id of their schema before them."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro

from mainstem.errors import MainstemError
from mainstem.schemas import wire
from mainstem.schemas.model import Schema, SchemaType
from mainstem.schemas.source import SchemaSource

_LONGEST_PROBLEM = 200


class AvroIn:
    """Encodes values by one schema of a registry; made once for the records of a request."""

    def __init__(
        self, registry: SchemaSource, subject: str, text: str | None, id: int | None
    ) -> None:
        """By the text of a schema, which is registered; or by the id of one that is."""
        if text is not None:
            self.id = registry.register(subject, Schema(SchemaType.AVRO, text)).id
        elif id is not None:
            schema = registry.by_id(id)
            if schema.type is not SchemaType.AVRO:
                raise MainstemError("BAD_REQUEST", problem=f"schema {id} is not Avro's")
            self.id, text = id, schema.text
        else:
            problem = "records in Avro need value_schema or value_schema_id"
            raise MainstemError("BAD_REQUEST", problem=problem)
        try:
            self._schema = fastavro.parse_schema(json.loads(text))
        except Exception as error:  # noqa: BLE001 - schemas with references, say
            raise _wrong(f"the schema cannot be used here: {error}") from None

    def encode(self, value: Any) -> bytes:
        """The value in wire format; a union's value is `{"type": value}`."""
        try:
            [decoded] = fastavro.json_reader(io.StringIO(json.dumps(value)), self._schema)
            data = io.BytesIO()
            fastavro.schemaless_writer(data, self._schema, decoded)
        except Exception as error:  # noqa: BLE001 - values of any kind, and many errors
            raise _wrong(f"a value does not fit its Avro schema: {error!r}") from None
        return wire.header(self.id) + data.getvalue()


def _wrong(problem: str) -> MainstemError:
    return MainstemError("BAD_REQUEST", problem=problem[:_LONGEST_PROBLEM])
