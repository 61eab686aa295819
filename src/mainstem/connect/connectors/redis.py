"""The sink connector `redis`: rows as keys of Redis."""

from __future__ import annotations

from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    name="redis",
    role=Role.SINK,
    doc="""Keeps the last row of each key in Redis: a text with its JSON, or a hash of its columns.

The rows of a stream are upserted by `key`; those of a table are upserted and deleted. Each record
changes Redis once: a script sets some keys and the offsets of the records in one step, and leaves
out what is before those offsets. They are in `mainstem:<sink>:<topic id>:<partition>`. What was
written is as safe as Redis keeps it (`appendfsync`). One server with its replicas, not a cluster:
a script cannot reach across a cluster's slots. Needs the package `redis`:
`pip install 'mainstem[redis]'`.""",
    fields=(
        Field(
            "url",
            FieldKind.URL,
            "Where Redis is: `redis://`, or `rediss://` with TLS; the path is the database.",
            "redis://cache.example.com:6379/0",
            required=True,
            place=True,
        ),
        Field(
            "password", FieldKind.TEXT, "The user's password.", "${env:REDIS_PASSWORD}", secret=True
        ),
        Field(
            "key",
            FieldKind.NAMES,
            "Of a stream: columns by which rows are upserted.",
            "customer_id",
            place=True,
        ),
        Field(
            "prefix",
            FieldKind.TEXT,
            "What a key of Redis begins with; behind it is the value of the key's column, or a "
            "JSON array of several. Default: the name of what is read, and a colon.",
            "customer:",
            place=True,
        ),
        Field(
            "value",
            FieldKind.TEXT,
            "What a key of Redis holds: a text with the row as JSON, or a hash of its columns, as "
            "texts; those that are NULL are left out.",
            "hash",
            default="json",
            choices=("json", "hash"),
            place=True,
        ),
    ),
)
