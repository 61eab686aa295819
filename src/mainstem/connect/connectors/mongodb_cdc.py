"""The source connector `mongodb-cdc`: what it is for, and its options."""

from __future__ import annotations

from mainstem.connect.debezium_options import HEARTBEAT, PASSWORD, PREFIX, SNAPSHOT, USER
from mainstem.connect.declared_tables import tables_field
from mainstem.connect.mongodb import EXAMPLE
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    "mongodb-cdc",
    Role.SOURCE,
    """
    Captures the changes of MongoDB collections, from its change streams with Debezium.

    Each collection becomes a TABLE with its documents as they are, by `_id`, and a STREAM with each
    of its changes: `op` (`c` created, `u` updated, `d` deleted, `r` read when the source began),
    `before` (the `_id` alone) and `after`, the `position` (second and number in it), the
    `transaction`, and the time `at` which it was made. The columns are fields of the documents; a
    field that is not there is NULL, one that does not fit its type puts the change into the
    quarantine. An ObjectId is a STRING of 24 digits, a date a TIMESTAMP, a nested document a STRUCT
    or a STRING of JSON.

    Of an update the document is looked up, so it may be a later one; each change is there in any
    case. The server has to be a replica set or a sharded cluster. Not tested against a server yet.
    """,
    (
        Field(
            "url",
            FieldKind.URL,
            "The servers and the database, as MongoDB writes it: "
            "`mongodb://user@host:27017/database?replicaSet=rs0`.",
            "${env:SHOP_URL}",
            place=True,
            required=True,
        ),
        USER,
        PASSWORD,
        Field(
            "auth_source",
            FieldKind.TEXT,
            "The database in which that user is known.",
            "shop",
            default="admin",
        ),
        tables_field("collections", "the database of the URL", EXAMPLE),
        PREFIX,
        SNAPSHOT,
        HEARTBEAT,
    ),
)
