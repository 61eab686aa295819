"""The views' home in PostgreSQL: their tables, what they were built from, and how far they are.

Schema `public` holds one table per view, under the view's own name. Schema `_mainstem` holds
`views` (one row per view), `offsets` (next offset to read per view and partition) and `rules`
(those that the view's records were judged by, and how many have broken each). Rows, offsets and
counts change in the same transaction, so the tables say exactly which records they contain.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Definition
from mainstem.errors import MainstemError
from mainstem.schemas.postgres_types import postgres_type
from mainstem.views import indexes
from mainstem.views.rows import literal, names, quoted, table
from mainstem.vocabulary import Column, Offsets

Connection = psycopg.Connection[tuple[Any, ...]]

SESSION = "-c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=iso_8601 -c bytea_output=hex"
"""Settings that the text form of values depends on."""
# Offsets and rows are committed together, so a commit that a crash of PostgreSQL swallows is read
# from the log again: waiting for the disk at each commit would buy nothing.
# A writer that is frozen, or whose machine is gone, must not hold its views for ever: PostgreSQL
# ends a session that says nothing, and with it its locks.
_WRITER_SESSION = (
    f"{SESSION} -c synchronous_commit=off -c client_min_messages=warning"
    " -c idle_session_timeout=60s -c idle_in_transaction_session_timeout=120s"
    " -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
)
_CONNECT_SECONDS = 5
_NAME_BYTES = 63
_PREPARE_LOCK = 7_236_457_002
"""Advisory lock of whoever makes the bookkeeping tables: two at once would meet."""

_SCHEMA = """
CREATE SCHEMA IF NOT EXISTS _mainstem;
CREATE TABLE IF NOT EXISTS _mainstem.views (
  name text PRIMARY KEY,
  generation integer NOT NULL,
  topic text NOT NULL,
  columns jsonb NOT NULL,
  key jsonb NOT NULL,
  derived boolean NOT NULL,
  built_from jsonb NOT NULL,
  quarantined bigint NOT NULL DEFAULT 0,
  built_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS _mainstem.offsets (
  view text NOT NULL REFERENCES _mainstem.views (name) ON DELETE CASCADE,
  partition integer NOT NULL,
  next_offset bigint NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (view, partition)
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS _mainstem.rules (
  view text NOT NULL REFERENCES _mainstem.views (name) ON DELETE CASCADE,
  rule text NOT NULL,
  condition text NOT NULL,
  broken bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (view, rule)
);
CREATE TEMPORARY TABLE IF NOT EXISTS stage (n integer NOT NULL, key text, value text)
  ON COMMIT DELETE ROWS;
"""
_SAVE_OFFSETS = """
INSERT INTO _mainstem.offsets (view, partition, next_offset)
SELECT $1, * FROM unnest($2::integer[], $3::bigint[])
ON CONFLICT (view, partition) DO UPDATE
SET next_offset = EXCLUDED.next_offset, updated_at = now()
"""


@dataclass(frozen=True, slots=True)
class StoredView:
    """What `_mainstem.views` says of one view."""

    name: str
    generation: int
    topic: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    derived: bool
    built_from: dict[int, int]
    """The topic's first offsets when the view was built."""
    quarantined: int
    offsets: dict[int, int]
    rules: dict[str, str]
    """Name -> condition of each rule that the records were judged by."""
    broken: dict[str, int]
    """How many records have broken each."""
    updated_at: float = 0.0
    """When its offsets last moved, in seconds since the epoch."""


def connect(url: str) -> Connection:
    """A connection for writing; VIEW_STORE_UNREACHABLE when there is none to be had."""
    try:
        return psycopg.connect(
            url,
            autocommit=True,
            cursor_factory=psycopg.RawCursor,
            connect_timeout=_CONNECT_SECONDS,
            options=_WRITER_SESSION,
            application_name="mainstem views",
            keepalives_idle=10,
        )
    except psycopg.OperationalError as error:
        raise MainstemError("VIEW_STORE_UNREACHABLE") from error


def reader_role(owner_url: str, reader_url: str) -> str | None:
    """The role that must be let in to read, or None when the owner itself reads."""
    owner, reader = (conninfo_to_dict(url).get("user") for url in (owner_url, reader_url))
    return str(reader) if reader and reader != owner else None


class ViewStore:
    """Tables and offsets of all views, over one connection; used by one thread."""

    def __init__(self, connection: Connection, reader: str | None) -> None:
        self.connection = connection
        self._reader = quoted(reader) if reader else None

    def prepare(self) -> None:
        """Make the schema, the bookkeeping tables and the staging table, where missing."""
        with self.connection.transaction():
            self.connection.execute("SELECT pg_advisory_xact_lock($1)", [_PREPARE_LOCK])
            for statement in _SCHEMA.split(";\n"):
                if statement.strip():
                    self._run(statement)
            if self._reader:
                self._run(f"GRANT USAGE ON SCHEMA _mainstem, public TO {self._reader}")
                self._run(f"GRANT SELECT ON _mainstem.views, _mainstem.offsets TO {self._reader}")

    def views(self) -> dict[str, StoredView]:
        """All views by name, with their offsets."""
        offsets: dict[str, dict[int, int]] = {}
        rules: dict[str, dict[str, str]] = {}
        broken: dict[str, dict[str, int]] = {}
        updated: dict[str, float] = {}
        with self.connection.transaction():
            for view, partition, offset, at in self.connection.execute(
                "SELECT view, partition, next_offset, extract(epoch FROM updated_at)::float8"
                " FROM _mainstem.offsets"
            ):
                offsets.setdefault(view, {})[partition] = offset
                updated[view] = max(at, updated.get(view, 0.0))
            for view, rule, condition, count in self.connection.execute(
                "SELECT view, rule, condition, broken FROM _mainstem.rules"
            ):
                rules.setdefault(view, {})[rule] = condition
                broken.setdefault(view, {})[rule] = count
            rows = self.connection.execute(
                "SELECT name, generation, topic, columns, key, derived, built_from, quarantined"
                " FROM _mainstem.views"
            ).fetchall()
        return {
            row[0]: StoredView(
                name=row[0],
                generation=row[1],
                topic=row[2],
                columns=tuple(Column(c["name"], c["type"]) for c in row[3]),
                key=tuple(row[4]),
                derived=row[5],
                built_from=_partitions(row[6]),
                quarantined=row[7],
                offsets=offsets.get(row[0], {}),
                rules=rules.get(row[0], {}),
                broken=broken.get(row[0], {}),
                updated_at=updated.get(row[0], 0.0),
            )
            for row in rows
        }

    def build(self, entry: Entry, begin: Offsets) -> None:
        """Make the view anew, empty and at the beginning of its topic, in one transaction."""
        definition = entry.definition
        check_names(definition)
        with self.connection.transaction():
            self._check_ours(definition.name)
            self._drop(definition.name)
            for statement in _create(definition, self._reader):
                self._run(statement)
            self.connection.execute(
                "INSERT INTO _mainstem.views"
                " (name, generation, topic, columns, key, derived, built_from)"
                " VALUES ($1, $2, $3, $4, $5, $6, $7)",
                [
                    definition.name,
                    entry.served_generation,
                    definition.topic,
                    _columns_json(definition.columns),
                    json.dumps(definition.key),
                    definition.derived,
                    json.dumps(dict(begin)),
                ],
            )
            rules = judged_by(definition)
            self.connection.execute(
                "INSERT INTO _mainstem.rules (view, rule, condition)"
                " SELECT $1, * FROM unnest($2::text[], $3::text[])",
                [definition.name, list(rules), list(rules.values())],
            )
            self.save_offsets(definition.name, begin)

    def widen(self, entry: Entry, columns: Iterable[Column], offsets: Offsets) -> None:
        """Add columns to a view and set it to these offsets, in one transaction."""
        definition = entry.definition
        check_names(definition)
        with self.connection.transaction():
            for column in columns:
                kind = postgres_type(column.type, column.name)
                added = f"ADD COLUMN {quoted(column.name)} {kind}"
                self._run(f"ALTER TABLE {table(definition.name)} {added}")
            self.connection.execute(
                "UPDATE _mainstem.views SET columns = $2 WHERE name = $1",
                [definition.name, _columns_json(definition.columns)],
            )
            self.save_offsets(definition.name, offsets)

    def drop(self, name: str) -> None:
        """Remove a view and its bookkeeping; nothing happens when it is not there."""
        with self.connection.transaction():
            self._drop(name)

    def drop_indexes(self, view: str) -> None:
        """Remove all indexes of a view but that of its key."""
        for name in indexes.found_in(self.connection).get(view, {}):
            indexes.drop(self.connection, name)

    def save_offsets(self, view: str, offsets: Offsets) -> None:
        """Say how far a view is; call inside the transaction that changes its rows."""
        self.connection.execute(
            _SAVE_OFFSETS, [view, list(offsets.keys()), list(offsets.values())], prepare=True
        )

    def count_quarantined(self, view: str, records: int) -> None:
        """Add to the number of records that a view could not take."""
        self.connection.execute(
            "UPDATE _mainstem.views SET quarantined = quarantined + $2 WHERE name = $1",
            [view, records],
        )

    def count_broken(self, view: str, records: Mapping[str, int]) -> None:
        """Add to the numbers of records that have broken each rule."""
        self.connection.execute(
            "UPDATE _mainstem.rules r SET broken = broken + n"
            " FROM unnest($2::text[], $3::bigint[]) AS more(name, n)"
            " WHERE r.view = $1 AND r.rule = more.name",
            [view, list(records), list(records.values())],
        )

    def _check_ours(self, name: str) -> None:
        row = self.connection.execute(
            "SELECT to_regclass($2) IS NOT NULL"
            " AND NOT EXISTS (SELECT FROM _mainstem.views WHERE name = $1)",
            [name, table(name)],
        ).fetchone()
        if row and row[0]:
            raise MainstemError("VIEW_NAME_TAKEN", name=name)

    def _drop(self, name: str) -> None:
        # CASCADE: a psql user's own view over the table must not keep it alive
        self._run(f"DROP TABLE IF EXISTS {table(name)} CASCADE")
        self.connection.execute("DELETE FROM _mainstem.views WHERE name = $1", [name])

    def _run(self, statement: str) -> None:
        self.connection.execute(statement)


def judged_by(definition: Definition) -> dict[str, str]:
    """Name -> condition of each rule that a view judges its records by: a flow judges its own."""
    rules = () if definition.derived else definition.rules
    return {rule.name: rule.condition.canonical for rule in rules}


def check_names(definition: Definition) -> None:
    """Refuse names that PostgreSQL would cut: two of them could become one."""
    for name, what in [
        (definition.name, "a served table"),
        *((c.name, f'a column of served table "{definition.name}"') for c in definition.columns),
    ]:
        if len(name.encode()) > _NAME_BYTES:
            raise MainstemError("INVALID_NAME", name=name, what=f"{what} (over 63 bytes)")


def _create(definition: Definition, reader: str | None) -> list[str]:
    target = table(definition.name)
    columns = [f"{quoted(c.name)} {postgres_type(c.type, c.name)}" for c in definition.columns]
    key = names(definition.key)
    statements = []
    if definition.key and not definition.derived:
        columns.append(f"PRIMARY KEY ({key})")
    # room on each page lets PostgreSQL update rows in place, without touching the index
    statements.append(f"CREATE TABLE {target} ({', '.join(columns)}) WITH (fillfactor = 85)")
    if not definition.key:
        statements.append(f"CREATE UNIQUE INDEX ON {target} ((1))")
    elif definition.derived:
        # a grouping column may be NULL, and that is one group: no primary key could hold it
        statements.append(f"CREATE UNIQUE INDEX ON {target} ({key}) NULLS NOT DISTINCT")
    statements += [indexes.create(definition, index) for index in definition.indexes]
    comment = definition.comment or f"Mainstem: served from topic {definition.topic}"
    statements.append(f"COMMENT ON TABLE {target} IS {literal(comment)}")
    if reader:
        statements.append(f"GRANT SELECT ON {target} TO {reader}")
    return statements


def _columns_json(columns: Iterable[Column]) -> str:
    return json.dumps([{"name": c.name, "type": c.type} for c in columns])


def _partitions(document: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in document.items()}
