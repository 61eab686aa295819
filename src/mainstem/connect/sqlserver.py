"""Captures the changes of tables of SQL Server, whose columns the definition declares.

There is no driver here by which we could ask the server itself: what is wrong there, Debezium says
when Kafka Connect checks the connector. Columns that are not declared are not captured, and one
that is declared with a type that does not hold its values stops whoever reads it (SOURCE_CHANGED).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mainstem.connect.capture import Captured
from mainstem.connect.carrier import Around, PutAway
from mainstem.connect.debezium_common import VALIDATION, common_config, history_config
from mainstem.connect.declared_tables import declared_tables
from mainstem.connect.server_address import Address, check_reachable, read_address
from mainstem.errors import MainstemError

HOME = "dbo"
EXAMPLE = "orders (id BIGINT PRIMARY KEY, item STRING, price DECIMAL(10, 2))"
_PORT = 1433
_TYPES = re.compile(
    r"smallint|int|bigint|float|double|boolean|string|binary|date|timestamp|timestamp_ntz"
    r"|decimal\(\d+,\d+\)"
)
_TLS = {
    "verified": {"database.encrypt": "true", "database.trustServerCertificate": "false"},
    "required": {"database.encrypt": "true", "database.trustServerCertificate": "true"},
    "disabled": {"database.encrypt": "false"},
}
TLS = tuple(_TLS)


class SqlServerCapture:
    """A `Capture`."""

    def look(self, name: str, options: Mapping[str, Any]) -> tuple[Captured, ...]:
        """The tables as they are declared; the server must be there."""
        at = _address(options)
        found = []
        declared = declared_tables(options, HOME, EXAMPLE, _fits)
        for table, columns, typed in declared:
            key = tuple(one.column.name for one in columns if one.key)
            if not key:
                raise MainstemError("SOURCE_NO_KEY", table=table, option="tables")
            topic = f"{name}.{at.database}.{table}"
            found.append(Captured(table, topic, typed, key, whole=True, home=HOME))
        check_reachable([(at.host, at.port)])
        return tuple(found)


def sqlserver_config(
    name: str,
    options: Mapping[str, Any],
    tables: Sequence[str],
    put_away: PutAway,
    around: Around,
) -> dict[str, str]:
    """The configuration of the connector of a `sqlserver-cdc` source: a `Configure`."""
    at = _address(options)
    # Debezium names a topic after its database, too, a table not
    captured = [table.removeprefix(f"{at.database}.") for table in tables]
    config = {
        "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
        "database.hostname": at.host,
        "database.port": str(at.port),
        "database.names": at.database,
        "database.user": at.user,
        **_TLS[options["tls"]],
        # who does not answer is told before Debezium gives the check up
        "driver.loginTimeout": "10",
        "snapshot.mode": "initial" if options["snapshot"] == "initial" else "no_data",
        "include.schema.changes": "false",
        # of a MONEY nobody can tell the digits: it is a text
        "datatype.propagate.source.type": r".+\.(?:decimal|numeric)",
        **VALIDATION,
        **common_config(name, options, captured),
        "column.include.list": ",".join(_columns(options, captured)),
        **history_config(name, put_away, around),
    }
    if at.password is not None:
        config["database.password"] = put_away("database.password", at.password)
    return config


def _columns(options: Mapping[str, Any], captured: Sequence[str]) -> list[str]:
    declared = declared_tables(options, HOME, EXAMPLE, _fits)
    return [
        re.escape(f"{table}.{column.name}")
        for table, _, columns in declared
        for column in columns
        if table in captured
    ]


def _address(options: Mapping[str, Any]) -> Address:
    return read_address(options, ("sqlserver",), _PORT, "SQL Server")


def _fits(type_: str) -> bool:
    return _TYPES.fullmatch(type_) is not None
