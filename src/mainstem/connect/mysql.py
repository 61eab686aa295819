"""Looks into a MySQL or MariaDB from which changes are captured: its tables, and what is missing.

What is missing is told with the statement that mends it, before anything is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from mainstem.connect.capture import Captured
from mainstem.connect.chosen_tables import captured_column, check_table_name, chosen_tables
from mainstem.connect.mysql_connection import Server, address, connected, place
from mainstem.connect.mysql_rights import check_rights, check_table_rights
from mainstem.connect.mysql_types import TEXTS, UNREADABLE, MySqlType, spark_type
from mainstem.connect.source_transforms import DROP, check_table, check_tables, in_database
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

_SETTINGS = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL",
             "binlog_row_value_options": ""}  # fmt: skip
_ALSO = ("version", "server_id")
_TABLES = """
SELECT table_schema AS `schema`, table_name AS name FROM information_schema.tables
WHERE table_type = 'BASE TABLE'
  AND table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')
ORDER BY table_schema, table_name
"""
_COLUMNS = """
SELECT column_name AS name, data_type AS type, column_type AS shown,
  numeric_precision AS `precision`, numeric_scale AS scale
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s
ORDER BY ordinal_position
"""
_KEY = """
SELECT column_name AS name FROM information_schema.key_column_usage
WHERE table_schema = %s AND table_name = %s AND constraint_name = 'PRIMARY'
ORDER BY ordinal_position
"""
_WITH_TYPES = """
SELECT table_schema AS `schema`, table_name AS name, data_type AS type
FROM information_schema.columns WHERE data_type IN ({}) LIMIT 1
"""


class MySqlCapture:
    """Captures the changes of the tables of one of the two products."""

    def __init__(self, *, mariadb: bool) -> None:
        self._mariadb = mariadb

    def look(self, name: str, options: Mapping[str, Any]) -> tuple[Captured, ...]:
        """The tables that the source captures; raises what stands in the way."""
        at = address(options)
        options = in_database(options, at.database)
        with connected(options) as server:
            self._check_server(server, options)
            check_rights(server, at.user)
            if self._mariadb:
                _check_definitions(server)
            found = []
            for table in _chosen(server, options, at.database):
                check_table_rights(server, at.user, table)
                found.append(_captured(server, name, table, options, joins=self._mariadb))
        check_tables(options, (captured.table for captured in found))
        return tuple(found)

    def _check_server(self, server: Server, options: Mapping[str, Any]) -> None:
        names = ", ".join(f"'{name}'" for name in (*_SETTINGS, *_ALSO))
        rows = server.rows(f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({names})")
        settings = {row["variable_name"]: str(row["value"]) for row in rows}
        where, version = place(options), settings["version"]
        if ("mariadb" in version.lower()) != self._mariadb:
            product, connector = ("MySQL", "mysql") if self._mariadb else ("MariaDB", "mariadb")
            raise MainstemError(
                "SOURCE_OTHER_PRODUCT",
                option="connector",
                where=where,
                product=f"{product} {version}",
                connector=f"{connector}-cdc",
            )
        for setting, wanted in _SETTINGS.items():
            has = settings.get(setting, wanted)
            if has.upper() != wanted:
                raise _setting(where, setting, has, wanted or "''")
        if settings["server_id"] == "0":
            raise _setting(where, "server_id", "0", "1")


def _setting(where: str, setting: str, has: str, wanted: str) -> MainstemError:
    return MainstemError("SOURCE_BINLOG", where=where, setting=setting, has=has, wanted=wanted)


def _check_definitions(server: Server) -> None:
    """Refuse what Debezium stops at, which reads the definitions of all tables that it sees."""
    types = ", ".join(f"'{name}'" for name in sorted(UNREADABLE))
    for row in server.rows(_WITH_TYPES.format(types)):
        table = f"{row['schema']}.{row['name']}"
        raise MainstemError("SOURCE_UNREADABLE", option="tables", table=table, type=row["type"])


def _chosen(server: Server, options: Mapping[str, Any], database: str) -> list[tuple[str, str]]:
    """The tables that the option `tables` names, in its order."""
    known = {f"{t['schema']}.{t['name']}": (t["schema"], t["name"]) for t in server.rows(_TABLES)}

    def unseen(pattern: str) -> None:  # one that the user may not see is not shown
        schema, _, name = pattern.partition(".")
        check_table_rights(server, address(options).user, (schema, name))

    return chosen_tables(known, options["tables"], database, place(options), unseen)


def _captured(
    server: Server, name: str, table: tuple[str, str], options: Mapping[str, Any], *, joins: bool
) -> Captured:
    full = ".".join(table)
    check_table_name(*table)
    key = tuple(row["name"] for row in server.rows(_KEY, table))
    if not key:
        raise MainstemError("SOURCE_NO_KEY", table=full, option="tables")
    found = server.rows(_COLUMNS, table)
    check_table(options, full, {c["name"]: c["type"] in TEXTS for c in found}, key)
    kept = [
        column for column in found if column["name"] in key or not _left_out(full, column, options)
    ]
    columns = tuple(_column(full, column) for column in kept)
    database = address(options).database
    return Captured(full, f"{name}.{full}", columns, key, whole=True, joins=joins, home=database)


def _left_out(table: str, column: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    its = f"{table}.{column['name']}"
    excluded = options.get("exclude") or ()
    return its in options.get(DROP, ()) or any(fnmatchcase(its, pattern) for pattern in excluded)


def _column(table: str, column: Mapping[str, Any]) -> Column:
    kind = spark_type(
        MySqlType(column["type"], column["shown"], column["precision"], column["scale"])
    )
    problem = f"has the type {column['shown']}, which cannot be captured"
    return captured_column(table, column["name"], kind, problem)
