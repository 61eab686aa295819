"""The sink connector `iceberg`: rows into an Iceberg table."""

from __future__ import annotations

from mainstem.connect.lake_options import COMPACT_EVERY, KEY, PARTITION_BY, S3_FIELDS
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    name="iceberg",
    role=Role.SINK,
    doc="""Writes rows to an Iceberg table of a REST catalog, or of one in a file, exactly once.

The rows of a stream are added, or upserted by `key`; those of a table are upserted and deleted. A
table that is missing is made, and so are missing columns. Each micro-batch is one commit, which
also has the offsets of its records, as properties of the table (`mainstem.position.*`): a record
that comes again changes nothing. `trigger` says how often there is a commit; a minute suits most
tables. An upsert rewrites the files that hold the keys, so it takes longer the larger the table is.

Small files are made into larger ones, and snapshots forgotten that are older than
`keep_snapshots`. The files of those stay where they are: removing them is left to whoever looks
after the store. Needs the package `pyiceberg`: `pip install 'mainstem[lake]'`.""",
    fields=(
        Field(
            "warehouse",
            FieldKind.TEXT,
            "Where tables are: a folder, from the root on, that all of Spark's workers reach, an "
            "address in S3, or what the REST catalog calls it.",
            "/data/lake",
            required=True,
            place=True,
        ),
        Field(
            "catalog",
            FieldKind.URL,
            "The REST catalog, or a SQL database as SQLAlchemy writes it. Without it, the file "
            "`catalog.db` in the folder of the warehouse.",
            "https://catalog.example.com",
            place=True,
        ),
        Field(
            "token",
            FieldKind.TEXT,
            "What the REST catalog knows us by.",
            "${env:CATALOG_TOKEN}",
            secret=True,
        ),
        Field(
            "table",
            FieldKind.TEXT,
            "The table, with its namespace if that is not `default`. Default: as what is read.",
            "sales.orders",
            place=True,
        ),
        KEY,
        PARTITION_BY,
        COMPACT_EVERY,
        Field(
            "keep_snapshots",
            FieldKind.INTERVAL,
            "How far back readers can go in time.",
            "7 days",
            default="1 day",
        ),
        *S3_FIELDS,
    ),
)
