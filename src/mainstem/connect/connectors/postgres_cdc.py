"""The source connector `postgres-cdc`: what it is for, and its options."""

from __future__ import annotations

from mainstem.connect.debezium_options import PASSWORD, PREFIX, SNAPSHOT, USER
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    "postgres-cdc",
    Role.SOURCE,
    """
    Captures the changes of PostgreSQL tables, by logical replication with Debezium.

    Each captured table becomes a TABLE with its rows as they are, and a STREAM with each of its
    changes: `op` (`c` created, `u` updated, `d` deleted, `t` truncated, `r` read when the source
    began), the row `before` and `after`, the `position` in PostgreSQL's log, the `transaction`, and
    the time `at` which it was committed. The database needs `wal_level = logical`, the user
    REPLICATION, and the tables have to belong to the user; or an administrator makes a
    publication, and the user only needs to read them.
    """,
    (
        Field(
            "url",
            FieldKind.URL,
            "The database, and who logs in.",
            "${env:SHOP_URL}",
            place=True,
            required=True,
        ),
        USER,
        PASSWORD,
        Field(
            "tables",
            FieldKind.NAMES,
            "The tables, each with its schema, else that is `public`; `*` stands for any letters.",
            "public.orders, sales.*",
            required=True,
        ),
        Field(
            "outbox",
            FieldKind.TEXT,
            "A table of events that is captured, too: each row that is inserted goes to the topic "
            "`<source>.outbox.<aggregatetype>`, with the aggregate's id for a key and the payload "
            "for a value, exactly once; that rows are deleted later does not matter.",
            "public.outbox",
        ),
        Field(
            "outbox_columns",
            FieldKind.NAMES,
            "Its columns for the id of an event, the aggregate's type and id, the event's type and "
            "the payload.",
            "event_id, kind, subject, event, body",
            default="id, aggregatetype, aggregateid, type, payload",
        ),
        Field(
            "exclude",
            FieldKind.NAMES,
            "Columns that are left out, with schema and table; `*` stands for any letters.",
            "public.customers.password, *.*.search_text",
        ),
        PREFIX,
        SNAPSHOT,
        Field(
            "slot",
            FieldKind.TEXT,
            "The replication slot, if it is not to be `mainstem_` and the source's name.",
            "mainstem_shop_test",
            place=True,
        ),
        Field(
            "publication",
            FieldKind.TEXT,
            "A publication that an administrator has made. Without it the source makes its own, "
            "and removes it in the end.",
            "for_mainstem",
            place=True,
        ),
        Field(
            "commits",
            FieldKind.BOOLEAN,
            "Bring a stream of the transactions as well, `<prefix>commits`: when each began "
            "and ended, and how many changes of which tables it had, so that a query can tell "
            "when it has all of them.",
            "true",
            default="false",
        ),
        Field(
            "heartbeat",
            FieldKind.INTERVAL,
            "How often the position moves on while the captured tables are quiet, so that "
            "PostgreSQL need not keep its log for them.",
            "30 seconds",
            default="10 seconds",
        ),
    ),
)
