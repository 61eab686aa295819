"""The sink connector `files`: rows into files of a folder."""

from __future__ import annotations

from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    name="files",
    role=Role.SINK,
    doc="""Writes rows to files of a folder, exactly once: Parquet, JSON lines or CSV.

Each micro-batch makes a file for each partition of the topic, and for each hour or day if asked
for. A file is named after the records in it; it is there with its whole content, or not at all.
The folder `_mainstem` in there says which records are in the files, and readers pass it over. Of a
table each change is a row, with a column `_deleted`.""",
    fields=(
        Field(
            "folder",
            FieldKind.TEXT,
            "Where the files go: a folder that all of Spark's workers reach, from the root on.",
            "/data/orders",
            required=True,
            place=True,
        ),
        Field(
            "format",
            FieldKind.TEXT,
            "What the files are.",
            "jsonl",
            default="parquet",
            choices=("parquet", "jsonl", "csv"),
            place=True,
        ),
        Field(
            "partition_by",
            FieldKind.TEXT,
            "Folders by the time of the records, in UTC: `date=2026-11-16`, and `hour=05` in it. "
            "The time is the event time of a stream, and that of the record for a table.",
            "hour",
            default="none",
            choices=("none", "day", "hour"),
        ),
    ),
)
