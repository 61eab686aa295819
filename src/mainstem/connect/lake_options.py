"""Options that the connectors of lake tables share."""

from __future__ import annotations

from mainstem.connect.spec import Field, FieldKind

PARTITION_BY = Field(
    "partition_by",
    FieldKind.TEXT,
    "Of appended rows: divides the table by the time of the records, in UTC, with columns `date` "
    "and `hour`. The time is the event time of the stream.",
    "hour",
    default="none",
    choices=("none", "day", "hour"),
    place=True,
)
KEY = Field(
    "key",
    FieldKind.NAMES,
    "Of a stream: columns by which rows are upserted. Without it each row is added.",
    "order_id",
    place=True,
)
COMPACT_EVERY = Field(
    "compact_every",
    FieldKind.INTEGER,
    "After so many commits small files are made into larger ones; 0: never.",
    "20",
    default="50",
    least=0,
)
S3_FIELDS = (
    Field(
        "s3_access_key",
        FieldKind.TEXT,
        "For s3://: the access key. Without it, as AWS finds it where Mainstem runs.",
        "${env:S3_ACCESS_KEY}",
        secret=True,
    ),
    Field(
        "s3_secret_key",
        FieldKind.TEXT,
        "For s3://: what belongs to the access key.",
        "${env:S3_SECRET_KEY}",
        secret=True,
    ),
    Field("s3_region", FieldKind.TEXT, "For s3://: the region.", "eu-central-1"),
    Field(
        "s3_endpoint",
        FieldKind.URL,
        "For s3://: where the store is, if it is not Amazon's.",
        "https://store.example.com:9000",
    ),
)
