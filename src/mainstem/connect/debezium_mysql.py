"""The configuration of Debezium's connectors for MySQL and MariaDB.

Beside the position they keep a history of the definitions of all tables, for a change in the binary
log does not tell the names of its columns. It is a topic of its own, kept forever: without it the
position would mean nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from mainstem.connect.carrier import Around, Configure, PutAway
from mainstem.connect.debezium_common import common_config, history_config, snapshot_config
from mainstem.connect.mysql_connection import address
from mainstem.connect.source_transforms import in_database

_FIRST_ID = 2**31
_MYSQL = {
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "database.connectionTimeZone": "UTC",
}
_MARIADB = {
    "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
    # the driver takes years for dates, and fails
    "driver.yearIsDateType": "false",
}


def _configure(fixed: Mapping[str, str], tls: Mapping[str, str], *, snapshots: bool) -> Configure:
    def configure(
        name: str,
        options: Mapping[str, Any],
        tables: Sequence[str],
        put_away: PutAway,
        around: Around,
    ) -> dict[str, str]:
        at = address(options)
        config = {
            **fixed,
            "database.hostname": at.host,
            "database.port": str(at.port),
            "database.user": at.user,
            "database.ssl.mode": tls.get(options["tls"], options["tls"]),
            "database.server.id": str(options.get("server_id") or _server_id(around.connector)),
            "snapshot.mode": "initial" if options["snapshot"] == "initial" else "no_data",
            **_VALUES,
            **common_config(name, in_database(options, at.database), tables),
            **(snapshot_config(name, put_away, around) if snapshots else {}),
            **history_config(name, put_away, around),
        }
        if at.password is not None:
            config["database.password"] = put_away("database.password", at.password)
        return config

    return configure


# a snapshot beside changes takes GTIDs, which MySQL has only where its gtid_mode is on
mysql_config = _configure(_MYSQL, {}, snapshots=False)
mariadb_config = _configure(_MARIADB, {"disabled": "disable", "required": "trust"}, snapshots=True)


def _server_id(connector: str) -> int:
    """The same for each start, and another for each source; few servers have ids so large."""
    return _FIRST_ID + zlib.crc32(connector.encode()) % _FIRST_ID


_VALUES = {
    "include.schema.changes": "false",
    # four fifths of it is how often a server that is quiet says so, and a snapshot beside changes
    # waits for a word from it
    "connect.keep.alive.interval.ms": "20000",
    "bigint.unsigned.handling.mode": "precise",
    "value.converter.decimal.format": "NUMERIC",
    "key.converter.decimal.format": "NUMERIC",
    # years are stored with four digits: one that is less than 70 is no year of today
    "enable.time.adjuster": "false",
    "datatype.propagate.source.type": r".+\.(?:DECIMAL|NUMERIC|DEC|FIXED).*",
}
