"""The configuration of Debezium's connector for PostgreSQL: what becomes of a source's options.

Values have to come through exactly. Decimals are texts, for only a text holds a number of any size,
and NaN; so are intervals. What PostgreSQL calls the type of such a column goes along with the
schema, so that one that was altered shows there. NULL stays NULL where a column has a default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mainstem.connect.carrier import Around, PutAway
from mainstem.connect.debezium_common import common_config, snapshot_config
from mainstem.connect.postgres_connection import address
from mainstem.connect.postgres_slots import publication_of, slot_of
from mainstem.schemas.changes import UNAVAILABLE

_HEARTBEAT = "mainstem_heartbeat"
_SSL = {
    "sslmode": "database.sslmode",
    "sslrootcert": "database.sslrootcert",
    "sslcert": "database.sslcert",
    "sslkey": "database.sslkey",
}


def connector_config(
    name: str,
    options: Mapping[str, Any],
    tables: Sequence[str],
    put_away: PutAway,
    around: Around,
) -> dict[str, str]:
    """The configuration of the connector of a `postgres-cdc` source, for Connect's REST API.

    Options are those of its description, secrets filled in; `tables` are all that it captures.
    """
    at = address(options)
    config = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": at["host"],
        "database.port": at["port"],
        "database.dbname": at["dbname"],
        "database.user": at.get("user", ""),
        **{ours: at[theirs] for theirs, ours in _SSL.items() if theirs in at},
        **_SLOT,
        "slot.name": slot_of(name, options),
        "publication.name": publication_of(name, options),
        "publication.autocreate.mode": "disabled" if options.get("publication") else "filtered",
        "snapshot.mode": "initial" if options["snapshot"] == "initial" else "no_data",
        **_VALUES,
        **common_config(name, options, tables),
        **snapshot_config(name, put_away, around),
    }
    if options["commits"]:
        config["provide.transaction.metadata"] = "true"
    if "password" in at:
        config["database.password"] = put_away("database.password", at["password"])
    return config


_SLOT = {
    "plugin.name": "pgoutput",
    # a slot that is ahead of what was read was made anew, or moved: changes are missing
    "offset.mismatch.strategy": "trust_offset",
    # the position moves on with a message of our own, which needs no table; else PostgreSQL would
    # keep all that others write while the captured tables are quiet. It has a transaction, by whose
    # number a snapshot beside changes goes on
    "heartbeat.action.query": f"SELECT pg_logical_emit_message(true, '{_HEARTBEAT}', '')",
    "message.prefix.exclude.list": _HEARTBEAT,
}
_VALUES = {
    "interval.handling.mode": "string",
    "hstore.handling.mode": "json",
    "include.unknown.datatypes": "true",
    "datatype.propagate.source.type": r".+\.(?:numeric|_numeric|money)",
    # of an update, PostgreSQL does not send large values that stay as they are; to look them up in
    # the source would tell what they are by then, or were before
    "unavailable.value.placeholder": UNAVAILABLE,
}
