"""The sink connector `postgres`: rows into a table of PostgreSQL."""

from __future__ import annotations

from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    name="postgres",
    role=Role.SINK,
    doc="""Writes rows to a table of PostgreSQL, exactly once.

The rows of a stream are added, or upserted by `key`; those of a table are upserted and deleted. A
table that is missing is made, and so are missing columns. Which records are in the table is kept
beside it, in `_mainstem_sinks`, and changes in the same transaction: a record that comes again
changes nothing. The user needs CREATE on the schema, or INSERT, UPDATE and DELETE on a table that
is there and on `_mainstem_sinks`.""",
    fields=(
        Field(
            "url",
            FieldKind.URL,
            "Where the database is; with user, without a password in plain text.",
            "postgresql://mainstem@db.example.com:5432/shop",
            required=True,
            place=True,
        ),
        Field(
            "password",
            FieldKind.TEXT,
            "The user's password.",
            "${env:SHOP_PASSWORD}",
            secret=True,
        ),
        Field(
            "table",
            FieldKind.TEXT,
            "The table, with its schema if that is not `public`. Default: as what is read.",
            "sales.orders",
            place=True,
        ),
        Field(
            "key",
            FieldKind.NAMES,
            "Of a stream: columns by which rows are upserted. Without it each row is added.",
            "order_id",
            place=True,
        ),
    ),
)
