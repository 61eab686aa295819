"""Looks into a PostgreSQL from which changes are captured: its tables, and whether that can work.

What is missing is told with the statement that mends it, before anything is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from fnmatch import fnmatchcase
from typing import Any

from psycopg import sql

from mainstem.connect.capture import Captured, Outbox
from mainstem.connect.chosen_tables import captured_column, check_table_name, chosen_tables
from mainstem.connect.postgres_connection import Connected, connected, place
from mainstem.connect.postgres_slots import slot_of
from mainstem.connect.postgres_types import PostgresType, spark_type
from mainstem.connect.source_transforms import DROP, check_table, check_tables
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

_MOST_NAMED = 10
_SNAPSHOTS_SINCE = 130_000
"""The version that tells which transactions a snapshot has seen."""
_TEXT = re.compile(r"text|character(?: varying)?(?:\(\d+\))?")
"""Types that Debezium takes for texts, as PostgreSQL shows them; domains are none of them."""

_MARKED_IN_ARRAYS = ("bpchar", "bytea", "date", "int4", "int8", "json", "jsonb", "text", "uuid",
                     "varchar")  # fmt: skip
"""Of arrays of these, and no domains of them, Debezium says when a value was left out."""

_TABLES = """
SELECT n.nspname AS schema, c.relname AS name, c.relreplident AS identity,
  pg_get_userbyid(c.relowner) AS owner,
  has_schema_privilege(n.oid, 'USAGE') AS usable,
  has_table_privilege(c.oid, 'SELECT') AS readable,
  pg_has_role(c.relowner, 'USAGE') AS owned,
  (SELECT array_agg(a.attname ORDER BY k.at)
   FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, at)
   JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
   WHERE i.indrelid = c.oid AND i.indisprimary) AS key,
  EXISTS (SELECT FROM pg_index i
          WHERE i.indrelid = c.oid AND i.indisreplident AND NOT i.indisprimary) AS other_index
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND NOT c.relispartition AND c.relpersistence = 'p'
  AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY n.nspname, c.relname
"""
_COLUMNS = """
SELECT a.attname AS name, a.attgenerated <> '' AS generated, a.attstorage <> 'p' AS large,
  format_type(a.atttypid, a.atttypmod) AS shown,
  coalesce(e.typname, b.typname, t.typname) AS type,
  CASE WHEN b.oid IS NULL THEN a.atttypmod ELSE t.typtypmod END AS modifier,
  coalesce(e.typtype, b.typtype, t.typtype) = 'e' AS enum,
  e.oid IS NOT NULL AS array
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type b ON b.oid = t.typbasetype AND t.typtype = 'd'
LEFT JOIN pg_type e ON e.oid = coalesce(b.typelem, t.typelem)
  AND coalesce(b.typcategory, t.typcategory) = 'A'
WHERE a.attrelid = format('%%I.%%I', %(schema)s::text, %(table)s::text)::regclass
  AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_SERVER = """
SELECT current_setting('wal_level') AS wal_level,
  current_setting('max_replication_slots')::int AS most_slots,
  (SELECT count(*) FROM pg_replication_slots) AS slots,
  EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %(slot)s) AS has_slot,
  current_setting('max_wal_senders')::int AS most_senders,
  current_database() AS database, current_user AS user,
  has_database_privilege(current_database(), 'CREATE') AS may_publish,
  EXISTS (SELECT FROM pg_roles r
          WHERE (r.rolname = current_user AND (r.rolreplication OR r.rolsuper))
            OR (r.rolname = 'rds_replication' AND pg_has_role(r.oid, 'USAGE'))) AS may_replicate
"""
_PUBLISHED = """
SELECT schemaname AS schema, tablename AS name FROM pg_publication_tables WHERE pubname = %(name)s
"""


class PostgresCapture:
    """Captures the changes of PostgreSQL's tables."""

    def look(self, name: str, options: Mapping[str, Any]) -> tuple[Captured, ...]:
        """The tables that the source captures; raises what stands in the way."""
        with connected(options) as connection:
            self._check_server(connection, name, options)
            tables = _chosen(connection, options)
            own = options.get("publication")
            published = _published(connection, own) if own else None
            found = [_captured(connection, name, table, options, published) for table in tables]
        check_tables(options, (captured.table for captured in found))
        return tuple(found)

    def _check_server(self, connection: Connected, name: str, options: Mapping[str, Any]) -> None:
        server: Any = connection.execute(_SERVER, {"slot": slot_of(name, options)}).fetchone()
        where = place(options)
        if server.wal_level != "logical":
            raise MainstemError("SOURCE_WAL_LEVEL", where=where, level=server.wal_level)
        if not server.may_replicate:
            grant = sql.SQL("ALTER ROLE {} REPLICATION").format(sql.Identifier(server.user))
            raise _not_allowed(connection, server.user, "replicate", grant)
        taken = not server.has_slot and server.slots >= server.most_slots
        if taken or not server.most_senders:
            setting = "max_replication_slots" if taken else "max_wal_senders"
            most = server.most_slots if taken else 0
            raise MainstemError("SOURCE_NO_SLOT", where=where, setting=setting, most=most)
        if not options.get("publication") and not server.may_publish:
            grant = sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(
                sql.Identifier(server.database), sql.Identifier(server.user)
            )
            raise _not_allowed(connection, server.user, "create a publication", grant)


def _chosen(connection: Connected, options: Mapping[str, Any]) -> list[Any]:
    """The tables that the option `tables` names, in its order."""
    known = {f"{t.schema}.{t.name}": t for t in connection.execute(_TABLES).fetchall()}
    return chosen_tables(known, _written(options), "public", place(options))


def _written(options: Mapping[str, Any]) -> tuple[str, ...]:
    outbox = options.get("outbox")
    return (*options["tables"], *([outbox] if outbox else ()))


def _outbox(options: Mapping[str, Any], table: str, columns: Iterable[Column]) -> Outbox | None:
    """What the columns of a table mean, if it is the one with the events."""
    written = options.get("outbox")
    if not written or table != (written if "." in written else f"public.{written}"):
        return None
    given, types = options["outbox_columns"], {column.name: column.type for column in columns}
    missing = [name for name in given if name not in types]
    problem = None
    if len(given) != len(fields(Outbox)):
        problem = "five columns are needed: id, aggregate's type and id, event's type, payload"
    elif missing:
        problem = f'{table} has no column "{missing[0]}"'
    elif types[given[-1]] != "string":
        problem = f'"{given[-1]}" is a {types[given[-1]]}: a payload is json, jsonb or text'
    if problem is not None:
        value = ", ".join(given)
        advice = f"Name five of its columns: {', '.join(types)}."
        raise MainstemError(
            "INVALID_OPTION", option="outbox_columns", value=value, problem=problem, advice=advice
        )
    return Outbox(*given)


def _published(connection: Connected, publication: str) -> set[str]:
    found = connection.execute(_PUBLISHED, {"name": publication}).fetchall()
    return {f"{table.schema}.{table.name}" for table in found}


def _captured(
    connection: Connected,
    name: str,
    table: Any,
    options: Mapping[str, Any],
    published: set[str] | None,
) -> Captured:
    full = f"{table.schema}.{table.name}"
    check_table_name(table.schema, table.name)
    _check_rights(connection, table, options, published)
    if not table.key:
        raise MainstemError("SOURCE_NO_KEY", table=full, option="tables")
    if table.identity == "n" or (table.identity == "i" and table.other_index):
        raise MainstemError("SOURCE_REPLICA_IDENTITY", table=full, option="tables")
    excluded = options.get("exclude") or ()
    found = connection.execute(_COLUMNS, {"schema": table.schema, "table": table.name}).fetchall()
    texts = {column.name: _TEXT.fullmatch(column.shown) is not None for column in found}
    check_table(options, full, texts, table.key)
    dropped = options.get(DROP, ())
    columns: dict[str, Column] = {}
    for column in found:
        its = f"{full}.{column.name}"
        left_out = its in dropped or any(fnmatchcase(its, pattern) for pattern in excluded)
        if left_out and column.name not in table.key:
            continue
        if column.name.lower() in columns:
            raise MainstemError("DUPLICATE_COLUMN", column=column.name, name=full)
        columns[column.name.lower()] = _column(full, column)
    captured = tuple(columns.values())
    return Captured(
        full,
        f"{name}.{full}",
        captured,
        tuple(table.key),
        whole=table.identity == "f",
        joins=connection.info.server_version >= _SNAPSHOTS_SINCE,
        note=_about_large_values(full, table, found, columns),
        outbox=_outbox(options, full, captured),
    )


def _about_large_values(
    table: str, told: Any, found: Iterable[Any], captured: Mapping[str, Column]
) -> str | None:
    """PostgreSQL leaves them out of its log where an update does not touch them."""
    large = [c.name for c in found if _is_unmarked(c) and c.name.lower() in captured]
    if told.identity == "f" or not large:
        return None
    columns = ", ".join(large[:_MOST_NAMED])
    return (
        f"large arrays in {table} ({columns}) that an update leaves alone come as NULL: PostgreSQL"
        " does not send them, and Debezium has no mark for that in arrays of these types; exact"
        f" with ALTER TABLE {table} REPLICA IDENTITY FULL"
    )


def _is_unmarked(column: Any) -> bool:
    """True when a value that was left out could not be told from NULL."""
    plain = column.shown.endswith("[]") and column.type in _MARKED_IN_ARRAYS
    return column.array and column.large and not plain


def _column(table: str, column: Any) -> Column:
    kind = spark_type(PostgresType(column.type, column.modifier, column.enum, column.array))
    problem = f"has the type {column.shown}, which cannot be captured"
    if column.generated:
        kind, problem = None, "is generated, and PostgreSQL does not replicate what it generates"
    return captured_column(table, column.name, kind, problem)


def _check_rights(
    connection: Connected, table: Any, options: Mapping[str, Any], published: set[str] | None
) -> None:
    user = connection.info.user
    who, schema = sql.Identifier(user), sql.Identifier(table.schema)
    full = sql.Identifier(table.schema, table.name)
    shown = f"{table.schema}.{table.name}"
    if not table.usable:
        grant = sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, who)
        raise _not_allowed(connection, user, f"use the schema {table.schema}", grant)
    if not table.readable:
        grant = sql.SQL("GRANT SELECT ON {} TO {}").format(full, who)
        raise _not_allowed(connection, user, f"read {shown}", grant)
    if published is None and not table.owned:
        grant = sql.SQL("CREATE PUBLICATION name FOR TABLE {}").format(full)
        raise MainstemError(
            "SOURCE_NOT_ALLOWED",
            user=user,
            what=f"publish {shown}, which belongs to {table.owner}",
            problem="",
            grant=f"{grant.as_string(connection)}; and name it here: publication = 'name'",
        )
    if published is not None and shown not in published:
        publication = sql.Identifier(str(options["publication"]))
        grant = sql.SQL("ALTER PUBLICATION {} ADD TABLE {}").format(publication, full)
        raise MainstemError(
            "SOURCE_NOT_PUBLISHED",
            option="publication",
            publication=options["publication"],
            table=shown,
            statement=grant.as_string(connection),
        )


def _not_allowed(connection: Connected, user: str, what: str, grant: sql.Composed) -> MainstemError:
    return MainstemError(
        "SOURCE_NOT_ALLOWED", user=user, what=what, problem="", grant=grant.as_string(connection)
    )
