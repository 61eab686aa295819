"""Changes as Debezium writes them, made by hand: for tests without a database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mainstem.connect.brought import CHANGES
from mainstem.connect.capture import Captured
from mainstem.connect.planned import PlannedConnectors
from mainstem.connect.secrets import Secrets
from mainstem.schemas.changes import KEY_HEADERS
from mainstem.testing.driver import Driver, Event
from mainstem.vocabulary import Column

START = 1_790_000_000_000_000
"""Microseconds: when the first change is committed; each one later by a second."""
_Fields = Sequence[tuple[str, str, bool]]
_SOURCE: _Fields = [
    ("version", "string", False),
    ("connector", "string", False),
    ("name", "string", False),
    ("ts_ms", "int64", False),
    ("snapshot", "string", True),
    ("db", "string", False),
    ("sequence", "string", True),
    ("ts_us", "int64", True),
    ("ts_ns", "int64", True),
]
"""What all sources say of themselves; each has more of its own."""
_OF_TABLES: _Fields = [("schema", "string", False), ("table", "string", False)]
_POSTGRES: _Fields = [("txId", "int64", True), ("lsn", "int64", True), ("xmin", "int64", True)]
_SQL_SERVER: _Fields = [
    ("change_lsn", "string", True),
    ("commit_lsn", "string", True),
    ("event_serial_no", "int64", True),
]
_MONGODB: _Fields = [
    ("collection", "string", False),
    ("ord", "int32", False),
    ("lsid", "string", True),
    ("txnNumber", "int64", True),
    ("wallTime", "int64", True),
]
_DOCUMENT = {"type": "string", "optional": True, "name": "io.debezium.data.Json", "version": 1}


@dataclass(frozen=True, slots=True)
class Given:
    """A column as Debezium describes it, and as Spark is to see it."""

    name: str
    type: str
    schema: Mapping[str, Any]


def given(name: str, type_: str, kind: str, semantic: str | None = None, **more: Any) -> Given:
    """A column; `kind` and `semantic` are Connect's type and name for it."""
    named = {} if semantic is None else {"name": semantic, "version": 1}
    return Given(name, type_, {"type": kind, "optional": True, **named, **more})


def told(type_: str, length: int, scale: int) -> dict[str, Any]:
    """What goes along with the schema of a decimal."""
    prefix = "__debezium.source.column"
    parts = {"type": type_.upper(), "length": str(length), "scale": str(scale)}
    return {"parameters": {f"{prefix}.{name}": value for name, value in parts.items()}}


class CapturedTable:
    """The table `public.orders` of a source `shop`, of which there is only what is captured."""

    def __init__(
        self, driver: Driver, columns: Sequence[Given], *key: str, whole: bool = False
    ) -> None:
        self._driver = driver
        self._whole = whole
        self._key = key
        self.columns = list(columns)
        self._written = 0
        driver.connectors = PlannedConnectors(
            Secrets(driver.folder, {"SHOP": "postgresql://shop"}),
            lambda _: self,
            lambda *_: None,
        )
        self.name = driver.prefix.replace("-", "_").rstrip(".") + "_orders"
        self.changes = self.name + CHANGES

    def look(self, name: str, options: Mapping[str, Any]) -> tuple[Captured, ...]:
        """The table, as a source finds it."""
        columns = tuple(Column(column.name, column.type) for column in self.columns)
        topic = f"{self._driver.prefix}{name}.public.orders"
        return (Captured("public.orders", topic, columns, self._key, self._whole),)

    def apply(self, more: str = "") -> None:
        """Makes the source, or looks into it again; and what a text defines beside it."""
        self._driver.apply(
            "CREATE SOURCE shop WITH (connector = 'postgres-cdc', url = '${env:SHOP}',"
            f" tables = 'orders', prefix = '{self.name.removesuffix('orders')}'); {more}"
        )

    def send(self, *changes: Event) -> None:
        """Writes changes to the topic of the table."""
        self._driver.send(changes)

    def change(
        self,
        op: str,
        after: Mapping[str, Any] | None = None,
        before: Mapping[str, Any] | None = None,
        columns: Sequence[Given] | None = None,
        snapshot: tuple[str, int] | None = None,
    ) -> Event:
        """A change, with the schema of the columns that there are now, or of others.

        `snapshot`: the mark of a snapshot's record, and where in the source's log that began.
        """
        self._written += 1
        known = self.columns if columns is None else columns
        row = after or before
        key = None if row is None else _compact({name: row[name] for name in self._key})
        value = change_value(known, op, after, before, self._written, snapshot)
        return Event(self.changes, raw=value, key=key)

    def rekey(self, old: Mapping[str, Any], row: Mapping[str, Any]) -> list[Event]:
        """A row that gets another key: a delete, and a new row."""
        changes = (self.change("d", before=old), self.change("c", row))
        keys = ({name: of[name] for name in self._key} for of in (row, old))
        return [
            replace(change, headers=((header, _compact(key).encode()),))
            for change, header, key in zip(changes, KEY_HEADERS, keys, strict=True)
        ]


def change_value(
    columns: Sequence[Given],
    op: str,
    after: Mapping[str, Any] | None = None,
    before: Mapping[str, Any] | None = None,
    number: int = 1,
    snapshot: tuple[str, int] | None = None,
) -> bytes:
    """The value of a record: the so many-th change of a table with these columns."""
    mark, lsn = snapshot or ("false", (5 << 32) + 0xA0 + number)
    source = {"schema": "public", "table": "orders", "txId": 700 + number, "lsn": lsn, "xmin": None}
    sides = [None if row is None else _full(row, columns) for row in (before, after)]
    fields = [*_OF_TABLES, *_POSTGRES]
    said = _Said("postgresql", fields, source, mark)
    return _value(_row_schema(columns), said, op, sides, number)


def sqlserver_value(
    columns: Sequence[Given],
    op: str,
    after: Mapping[str, Any] | None = None,
    before: Mapping[str, Any] | None = None,
    number: int = 1,
) -> bytes:
    """The same of a table of SQL Server."""
    source = {
        "schema": "dbo",
        "table": "orders",
        "change_lsn": f"00000025:00000d98:{number:04x}",
        "commit_lsn": f"00000025:00000da0:{number:04x}",
        "event_serial_no": 1,
    }
    sides = [None if row is None else _full(row, columns) for row in (before, after)]
    said = _Said("sqlserver", [*_OF_TABLES, *_SQL_SERVER], source)
    return _value(_row_schema(columns), said, op, sides, number)


def document_value(op: str, after: str | None = None, number: int = 1) -> bytes:
    """The same of a collection of MongoDB; a document is a text of its extended JSON."""
    source = {
        "collection": "orders",
        "ord": number,
        "lsid": '{"id": 7}',
        "txnNumber": number,
        "wallTime": None,
    }
    said = _Said("mongodb", _MONGODB, source)
    return _value(_DOCUMENT, said, op, [None, after], number)


@dataclass(frozen=True, slots=True)
class _Said:
    """What a change says of its source."""

    connector: str
    fields: _Fields
    own: Mapping[str, Any]
    mark: str = "false"


def _value(
    row: Mapping[str, Any], said: _Said, op: str, sides: Sequence[Any], number: int
) -> bytes:
    micros = START + number * 1_000_000
    times = {"ts_ms": micros // 1000, "ts_us": micros, "ts_ns": micros * 1000}
    source = {
        "snapshot": said.mark,
        "version": "3.6.1.Final",
        "connector": said.connector,
        "name": "shop",
        "db": "shop",
        "sequence": '["1","2"]',
        **said.own,
        **times,
    }
    payload = {
        "before": sides[0],
        "after": sides[1],
        "source": source,
        "transaction": None,
        "op": op,
        **times,
    }
    return _compact({"schema": _envelope(row, said), "payload": payload}).encode()


def _full(row: Mapping[str, Any], columns: Sequence[Given]) -> dict[str, Any]:
    return {column.name: row.get(column.name) for column in columns}


def _row_schema(columns: Sequence[Given]) -> dict[str, Any]:
    fields = [{**column.schema, "field": column.name} for column in columns]
    name = "shop.public.orders.Value"
    return {"type": "struct", "fields": fields, "optional": True, "name": name}


def _envelope(row: Mapping[str, Any], said: _Said) -> dict[str, Any]:
    fields = [*_SOURCE, *said.fields]
    source = [{"type": t, "optional": optional, "field": n} for n, t, optional in fields]
    block = [{"type": "string", "optional": False, "field": "id"}]
    return {
        "type": "struct",
        "fields": [
            {**row, "field": "before"},
            {**row, "field": "after"},
            {
                "type": "struct",
                "fields": source,
                "optional": False,
                "name": f"io.debezium.connector.{said.connector}.Source",
                "field": "source",
            },
            {
                "type": "struct",
                "fields": block,
                "optional": True,
                "name": "event.block",
                "version": 1,
                "field": "transaction",
            },
            {"type": "string", "optional": False, "field": "op"},
            {"type": "int64", "optional": True, "field": "ts_ms"},
            {"type": "int64", "optional": True, "field": "ts_us"},
            {"type": "int64", "optional": True, "field": "ts_ns"},
        ],
        "optional": False,
        "name": "shop.public.orders.Envelope",
        "version": 2,
    }


def _compact(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
