"""A table of PostgreSQL that is built beside another, and takes its name in one transaction."""

# ruff: noqa: S608 - every name in these statements goes through `quoted`

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mainstem.connect.targets.beside import not_possible
from mainstem.connect.targets.postgres import connect, told
from mainstem.connect.targets.postgres_table import (
    GUARD,
    Connection,
    Relation,
    exists,
    lock,
    make_guard,
    quoted,
    relation_of,
)
from mainstem.connect.targets.target import Shape

_NAME_BYTES = 63
_TIES = """
SELECT CASE
  WHEN c.relkind <> 'r' OR c.relispartition OR c.relhassubclass THEN 'it is not a plain table'
  WHEN NOT pg_has_role(c.relowner, 'USAGE')
    THEN 'it belongs to ' || pg_get_userbyid(c.relowner) || ', and not to ' || current_user
  WHEN c.relrowsecurity THEN 'it has policies for its rows'
  WHEN EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal)
    THEN 'it has triggers'
  WHEN EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND c.oid IN (conrelid, confrelid))
    THEN 'foreign keys tie it to other tables'
  WHEN EXISTS (SELECT FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
               WHERE d.classid = 'pg_rewrite'::regclass AND d.refobjid = c.oid)
    THEN 'views read it'
  WHEN EXISTS (SELECT FROM pg_depend d JOIN pg_class s ON s.oid = d.objid
               WHERE d.refobjid = c.oid AND s.relkind = 'S' AND d.deptype = 'a')
    THEN 'a sequence belongs to it'
  END
FROM pg_class c WHERE c.oid = to_regclass(%s)
"""
_GRANTS = """
SELECT privilege_type || ' ON ', ' TO ' || CASE grantee WHEN 0 THEN 'PUBLIC'
    ELSE quote_ident(pg_get_userbyid(grantee)) END
  || CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
FROM pg_class, aclexplode(relacl) WHERE oid = to_regclass(%s) AND grantee <> relowner
"""


def place(written: Mapping[str, str], name: str, generation: int) -> dict[str, str]:
    """Another table of the same schema."""
    schema, dot, own = (written.get("table") or name).rpartition(".")
    suffix = f"__mainstem_{generation}"
    own = own.encode()[: _NAME_BYTES - len(suffix)].decode(errors="ignore")
    return {"table": f"{schema}{dot}{own}{suffix}"}


def check(options: Mapping[str, Any], shape: Shape, sink: str) -> None:
    """Refuses a table that something else is tied to: that would stay with the old one."""
    relation = relation_of(options["table"], shape)
    with told(options), connect(options) as connection:
        row = connection.execute(_TIES, [str(relation)]).fetchone()
    if row is not None and row[0] is not None:
        raise not_possible(sink, f"table {relation.table} cannot be replaced: {row[0]}")


def prepare(options: Mapping[str, Any], beside: Mapping[str, Any], shape: Shape) -> None:
    """A table with the columns, defaults and indexes that the other one has."""
    old, new = relation_of(options["table"], shape), relation_of(beside["table"], shape)
    with told(options), connect(options) as connection:
        lock(connection)
        if exists(connection, old) and not exists(connection, new):
            connection.execute(f"CREATE TABLE {new} (LIKE {old} INCLUDING ALL)")
            make_guard(connection, new)
            _forget(connection, new)
        connection.commit()


def switch(
    options: Mapping[str, Any],
    beside: Mapping[str, Any],
    shape: Shape,
    sink: str,
    generation: int,
) -> None:
    """Drops the one, gives its name, its privileges and its offsets to the other: all or nothing.

    Crash before the commit: the old table is there. Behind it: nothing is beside any more.
    """
    old, new = relation_of(options["table"], shape), relation_of(beside["table"], shape)
    with told(options), connect(options) as connection:
        lock(connection)
        if not exists(connection, new):
            return
        grants = []
        if exists(connection, old):
            connection.execute(f"LOCK TABLE {old}, {new} IN ACCESS EXCLUSIVE MODE")
            grants = connection.execute(_GRANTS, [str(old)]).fetchall()
            connection.execute(f"DROP TABLE {old}")
        connection.execute(f"ALTER TABLE {new} RENAME TO {quoted(old.name)}")
        for privilege, receiver in grants:
            connection.execute(f"GRANT {privilege}{old}{receiver}".encode())
        _forget(connection, old)
        connection.execute(
            f"UPDATE {old.beside(GUARD)} SET target = %s WHERE target = %s", [old.table, new.table]
        )
        connection.commit()


def discard(beside: Mapping[str, Any], shape: Shape) -> None:
    """Drops the table."""
    new = relation_of(beside["table"], shape)
    with told(beside), connect(beside) as connection:
        lock(connection)
        if exists(connection, new):
            connection.execute(f"DROP TABLE {new}")
            _forget(connection, new)
        connection.commit()


def _forget(connection: Connection, relation: Relation) -> None:
    """Nothing is in a table of that name."""
    connection.execute(f"DELETE FROM {relation.beside(GUARD)} WHERE target = %s", [relation.table])
