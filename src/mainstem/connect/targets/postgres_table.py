"""The table of a PostgreSQL sink: what it must look like, and how it comes about."""

# ruff: noqa: S608 - every name in these statements goes through `quoted`

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from mainstem.connect.targets.target import Shape, mismatch, refused
from mainstem.schemas.postgres_types import postgres_type

GUARD = "_mainstem_sinks"
"""Beside the tables: which records are in them."""
_LOCK = 7_236_457_002
"""Advisory lock of those that make tables: several tasks may begin at once."""
_NAME_BYTES = 63
_KINDS = {
    "smallint": "number",
    "integer": "number",
    "bigint": "number",
    "numeric": "number",
    "real": "number",
    "double precision": "number",
    "boolean": "boolean",
    "date": "time",
    "timestamp without time zone": "time",
    "timestamp with time zone": "time",
    "timestamptz": "time",
    "timestamp": "time",
    "bytea": "bytes",
    "jsonb": "json",
    "json": "json",
}

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Relation:
    """A table by schema and name."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def table(self) -> str:
        """As the user would write it."""
        return f"{self.schema}.{self.name}"

    def beside(self, name: str) -> Relation:
        """Another one in the same schema."""
        return Relation(self.schema, name)


def relation_of(written: str | None, shape: Shape) -> Relation:
    """The table of an option, or that of the name of what is read."""
    schema, dot, name = (written or shape.name).partition(".")
    return Relation(schema, name) if dot and written else Relation("public", written or shape.name)


def quoted(name: str) -> str:
    """A name as one quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def check_table(connection: Connection, relation: Relation, shape: Shape) -> None:
    """Refuse a table that cannot take the rows, or that the user may not write or make."""
    what = f"PostgreSQL table {relation.table}"
    for name in (relation.name, *(column.name for column in shape.columns)):
        if len(name.encode()) > _NAME_BYTES:
            raise mismatch(what, f'the name "{name}" is over 63 bytes', "Choose a shorter name.")
    types = {c.name: postgres_type(c.type, c.name) for c in shape.columns}
    there = _columns(connection, relation)
    needs_guard = not exists(connection, relation.beside(GUARD))
    if not there or needs_guard:
        _check_may_create(connection, relation, what)
    if not there:
        return
    _check_may_write(connection, relation, shape, what)
    for name, wanted in types.items():
        given = there.get(name)
        if given is None:
            continue
        kinds = _KINDS.get(wanted.partition("(")[0]), _KINDS.get(given.type)
        # whatever is text takes all, and text is taken as PostgreSQL reads it
        if None not in kinds and kinds[0] != kinds[1]:
            raise mismatch(
                what,
                f'column "{name}" is a {given.type}, and the rows have a {wanted}',
                "Cast the column in a query before the sink, or change it there.",
            )
    for name, column in there.items():
        if column.required and name not in types:
            raise mismatch(
                what,
                f'column "{name}" is NOT NULL without a default, and the rows do not have it',
                "Give it a default there, or add it to what the sink reads.",
            )
    if shape.upserts and not _is_unique(connection, relation, shape):
        columns = ", ".join(map(quoted, shape.key)) or "(1)"
        raise mismatch(
            what,
            f"no unique index is on the key ({', '.join(shape.key) or 'none'})",
            f"Make one there: CREATE UNIQUE INDEX ON {relation.table} ({columns}).",
        )


def prepare(connection: Connection, relation: Relation, shape: Shape) -> None:
    """Make the table, its missing columns and what is kept beside it; commits."""
    lock(connection)
    guard = make_guard(connection, relation)
    there = _columns(connection, relation)
    if not there:
        for statement in _create(relation, shape):
            connection.execute(statement)
        # what an earlier table of that name had is not in this one
        connection.execute(f"DELETE FROM {guard} WHERE target = %s", [relation.table])
    for column in shape.columns:
        if there and column.name not in there:
            kind = postgres_type(column.type, column.name)
            connection.execute(f"ALTER TABLE {relation} ADD COLUMN {quoted(column.name)} {kind}")
    connection.commit()


def lock(connection: Connection) -> None:
    """Nobody else makes, drops or renames tables until the transaction ends."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def make_guard(connection: Connection, relation: Relation) -> Relation:
    """What is kept beside a table; made if it is missing."""
    guard = relation.beside(GUARD)
    if not exists(connection, guard):
        connection.execute(
            f"CREATE TABLE {guard} (target text NOT NULL, sink text NOT NULL,"
            " topic_id text NOT NULL, partition integer NOT NULL, topic text NOT NULL,"
            " next_offset bigint NOT NULL DEFAULT 0, refused jsonb NOT NULL DEFAULT '[]',"
            " updated_at timestamptz NOT NULL DEFAULT now(),"
            " PRIMARY KEY (target, sink, topic_id, partition))"
        )
    return guard


def _create(relation: Relation, shape: Shape) -> list[str]:
    columns = [f"{quoted(c.name)} {postgres_type(c.type, c.name)}" for c in shape.columns]
    key = ", ".join(map(quoted, shape.key))
    if shape.upserts and key and not shape.nullable_key:
        columns.append(f"PRIMARY KEY ({key})")
    statements = [f"CREATE TABLE {relation} ({', '.join(columns)})"]
    if shape.upserts and not key:
        statements.append(f"CREATE UNIQUE INDEX ON {relation} ((1))")
    elif shape.upserts and shape.nullable_key:
        statements.append(f"CREATE UNIQUE INDEX ON {relation} ({key}) NULLS NOT DISTINCT")
    return statements


@dataclass(frozen=True, slots=True)
class _Column:
    type: str
    required: bool
    """True when a row must have it."""


def _columns(connection: Connection, relation: Relation) -> dict[str, _Column]:
    """The columns of a table, by name; none when it is not there."""
    rows = connection.execute(
        "SELECT column_name, data_type, is_nullable = 'NO' AND column_default IS NULL"
        " AND is_identity = 'NO' AND is_generated = 'NEVER' FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name = %s",
        [relation.schema, relation.name],
    )
    return {name: _Column(kind, required) for name, kind, required in rows}


def exists(connection: Connection, relation: Relation) -> bool:
    """True when there is such a table."""
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [str(relation)]).fetchone()
    return bool(row and row[0])


def _check_may_create(connection: Connection, relation: Relation, what: str) -> None:
    row = connection.execute(
        "SELECT current_user, CASE WHEN to_regnamespace(%s) IS NULL THEN NULL"
        " ELSE has_schema_privilege(%s, 'CREATE') END",
        [quoted(relation.schema), relation.schema],
    ).fetchone()
    assert row is not None
    user, allowed = row
    if allowed is None:
        advice = f"Make it: CREATE SCHEMA {quoted(relation.schema)}."
        raise mismatch(what, f'there is no schema "{relation.schema}"', advice)
    if not allowed:
        advice = f"GRANT CREATE ON SCHEMA {quoted(relation.schema)} TO {quoted(user)};"
        raise refused(what, f'"{user}" may not make tables in "{relation.schema}"', advice)


def _check_may_write(connection: Connection, relation: Relation, shape: Shape, what: str) -> None:
    needed = ["SELECT", "INSERT"]
    needed += ["UPDATE"] if shape.upserts else []
    needed += ["DELETE"] if shape.deletes else []
    row = connection.execute(
        "SELECT current_user, array_agg(p) FILTER (WHERE NOT has_table_privilege(%s, p))"
        " FROM unnest(%s::text[]) p",
        [str(relation), needed],
    ).fetchone()
    assert row is not None
    user, missing = row
    if missing:
        advice = f"GRANT {', '.join(missing)} ON {relation.table} TO {quoted(user)};"
        raise refused(what, f'"{user}" has no privilege to {", ".join(missing)}', advice)


def _is_unique(connection: Connection, relation: Relation, shape: Shape) -> bool:
    """True when a unique index is on exactly the columns of the key."""
    if not shape.key:
        return True  # PostgreSQL says it of an expression when a row comes
    row = connection.execute(
        "SELECT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = to_regclass(%s)"
        " AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL AND ("
        "SELECT array_agg(a.attname::text ORDER BY a.attname::text)"
        " FROM unnest(i.indkey[0:i.indnkeyatts - 1]) k"
        " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k)"
        " = (SELECT array_agg(n ORDER BY n) FROM unnest(%s::text[]) n))",
        [str(relation), list(shape.key)],
    ).fetchone()
    return bool(row and row[0])
