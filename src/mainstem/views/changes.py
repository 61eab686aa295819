"""Records into changes: the subscription's filter and columns, evaluated by PostgreSQL in batches.

The same transpiled expressions that a pull query runs over a view's table run here over the
records themselves, so a condition means the same in both.
"""

# ruff: noqa: S608 - names go through `quoted`; expressions were checked and transpiled from a tree

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from mainstem.definitions.model import Definition, Kind, Select
from mainstem.definitions.table_conditions import postgres_condition
from mainstem.definitions.to_postgres import EVERY_ROW, RECORDS, push_condition
from mainstem.schemas.postgres_types import spark_type
from mainstem.views.readers import AsyncConnection, Readers
from mainstem.views.rows import (
    quoted,
    record_columns,
    table,
    typed_columns,
    value_object,
)
from mainstem.views.values import json_names, json_object
from mainstem.vocabulary import Column, Record


@dataclass(frozen=True, slots=True)
class Selection:
    """What a subscription wants of one object, in PostgreSQL's words."""

    definition: Definition
    projection: str
    """The SELECT list, over the object's columns under the name `to_postgres.RECORDS`."""
    where: str
    headers: bool = False
    """True when `_headers` is used: it costs a conversion per record."""
    digest: str = ""
    """Of the text that was asked, without its layout: the same for a table that has grown."""
    filtered: bool = False
    """True when not every row matches."""


def selection_of(select: Select, definition: Definition) -> Selection:
    """What a push query over this object wants."""
    projection, where = push_condition(select, definition)
    digest = hashlib.sha256(select.query.canonical.encode()).hexdigest()[:16]
    headers = "_headers" in select.query.columns_read
    return Selection(definition, projection, where, headers, digest, where != EVERY_ROW)


@dataclass(frozen=True, slots=True)
class Change:
    """One event: `append`, `upsert` or `delete`, with the JSON text of its data."""

    kind: str
    data: str
    key: str
    """JSON text of the key."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The changes that a batch of records makes, each with its record; and the unreadable ones."""

    changes: tuple[tuple[Record, Change], ...]
    skipped: int


class Evaluation:
    """The statements of one subscription."""

    def __init__(self, selection: Selection) -> None:
        definition = selection.definition
        self._definition = definition
        self._headers = selection.headers
        self._table = definition.kind is Kind.TABLE
        self._key_names = json_names(definition.key)
        alias = quoted(RECORDS)
        condition = f"({selection.where}) IS TRUE"
        keys = "".join(f"{alias}.{quoted(k)}, " for k in definition.key)
        shown = selection.projection
        self.describe = f"SELECT {shown} FROM {_from_records(definition, alias)} WHERE false"
        self.snapshot = (
            f"SELECT {keys}{shown} FROM {table(definition.name)} AS {alias} WHERE {condition}"
        )
        self._evaluate = (
            f"SELECT {alias}._mainstem_n, {alias}._mainstem_gone, {condition}, {keys}{shown}"
            f" FROM {_from_records(definition, alias)}{_keeping_rules(definition)} ORDER BY 1"
        )

    @property
    def width(self) -> int:
        """Columns before those of the SELECT list in a row of the snapshot."""
        return len(self._definition.key)

    async def columns(self, connection: AsyncConnection) -> tuple[Column, ...]:
        """The columns that the subscription's rows will have."""
        cursor = await connection.execute(self.describe, _arguments([], False), prepare=False)
        return tuple(Column(d.name, spark_type(d.type_display)) for d in cursor.description or ())

    def upsert(self, names: Sequence[str], row: Sequence[Any]) -> Change:
        """The change that a row of the snapshot is."""
        key = json_object(self._key_names, row[: self.width])
        return _change("upsert", key, json_object(names, row[self.width :]))

    async def changes(
        self, readers: Readers, names: Sequence[str], records: Sequence[Record]
    ) -> Evaluated:
        """The changes that the records make, in their order."""
        readable = [r for r in records if _readable(r, self._table)]
        async with readers.single() as connection:
            made, skipped = await self._run(connection, names, readable)
        return Evaluated(tuple(made), skipped + len(records) - len(readable))

    async def _run(
        self, connection: AsyncConnection, names: Sequence[str], records: Sequence[Record]
    ) -> tuple[list[tuple[Record, Change]], int]:
        if not records:
            return [], 0
        try:
            cursor = await connection.execute(
                self._evaluate, _arguments(records, self._headers), prepare=True
            )
            rows = await cursor.fetchall()
        except psycopg.DataError:
            # one of them is no row of this object: find it by halves
            if len(records) == 1:
                return [], 1
            middle = len(records) // 2
            first, bad = await self._run(connection, names, records[:middle])
            second, worse = await self._run(connection, names, records[middle:])
            return first + second, bad + worse
        return [c for row in rows if (c := self._change(names, records, row))], 0

    def _change(
        self, names: Sequence[str], records: Sequence[Record], row: Sequence[Any]
    ) -> tuple[Record, Change] | None:
        record = records[int(row[0])]
        matches = row[2] == "true"
        key = json_object(self._key_names, row[3 : 3 + self.width])
        shown = row[3 + self.width :]
        if not self._table:
            if not matches:
                return None
            no_key = not self._definition.key
            return record, _change("append", "null" if no_key else key, json_object(names, shown))
        if row[1] == "true" or not matches:
            return record, _change("delete", key, None)
        return record, _change("upsert", key, json_object(names, shown))


def _change(kind: str, key: str, row: str | None) -> Change:
    shown = "" if row is None else f'"row":{row},'
    return Change(kind, f'{{{shown}"key":{key}}}', key)


def _readable(record: Record, of_table: bool) -> bool:
    if record.value is None and not of_table:
        return False
    data = (record.key or b"") + (record.value or b"")
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _arguments(records: Sequence[Record], headers: bool) -> list[list[Any]]:
    return [
        [r.key.decode() if r.key is not None else None for r in records],
        [r.value.decode() if r.value is not None else None for r in records],
        [r.partition for r in records],
        [r.offset for r in records],
        [r.timestamp / 1000 for r in records],
        [_headers_json(r) if headers else None for r in records],
        [r.topic for r in records],
    ]


def _headers_json(record: Record) -> str:
    return json.dumps(
        [
            {"key": k, "value": None if v is None else base64.b64encode(v).decode()}
            for k, v in record.headers
        ]
    )


def _keeping_rules(definition: Definition) -> str:
    """Leaves out what breaks a rule of a declared table, as its view does."""
    if definition.kind is not Kind.TABLE or definition.derived or not definition.rules:
        return ""
    kept = (f"{postgres_condition(r, definition.columns)} IS NOT FALSE" for r in definition.rules)
    return f" WHERE _mainstem_gone OR ({' AND '.join(kept)})"


def _from_records(definition: Definition, alias: str) -> str:
    told = definition.kind is Kind.TABLE or definition.keys is not None
    value = value_object(definition) if told else "s.value::jsonb"
    return (
        "(SELECT (s.n - 1)::integer AS _mainstem_n, s.value IS NULL AS _mainstem_gone,"
        f" {typed_columns(definition)}, s.key AS _key,"
        " s.topic AS _topic, s.partition AS _partition,"
        " s.position AS _offset, to_timestamp(s.at) AS _timestamp, s.headers AS _headers"
        " FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::double precision[],"
        " $6::jsonb[], $7::text[])"
        " WITH ORDINALITY AS s(key, value, partition, position, at, headers, topic, n)"
        f" CROSS JOIN LATERAL jsonb_to_record({value})"
        f" AS r({record_columns(definition)})) AS {alias}"
    )
