"""The sink connector `delta`: rows into a Delta table."""

from __future__ import annotations

from mainstem.connect.lake_options import COMPACT_EVERY, KEY, PARTITION_BY, S3_FIELDS
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    name="delta",
    role=Role.SINK,
    doc="""Writes rows to a Delta table in a folder or in S3, exactly once.

The rows of a stream are added, or upserted by `key`; those of a table are upserted and deleted. A
table that is missing is made, and so are missing columns. Each micro-batch is one commit, which
also has the offsets of its records, as application transactions of the table: a record that comes
again changes nothing. `trigger` says how often there is a commit; a minute suits most tables. An
upsert rewrites the files that hold the keys, so it takes longer the larger the table is.

Small files are made into larger ones. The files that they were made of stay for readers of older
versions, until somebody runs `vacuum`. Needs the package `deltalake`:
`pip install 'mainstem[lake]'`.""",
    fields=(
        Field(
            "folder",
            FieldKind.TEXT,
            "The table: a folder, from the root on, that all of Spark's workers reach, or an "
            "address in S3.",
            "s3://lake/orders",
            required=True,
            place=True,
        ),
        KEY,
        PARTITION_BY,
        COMPACT_EVERY,
        *S3_FIELDS,
    ),
)
