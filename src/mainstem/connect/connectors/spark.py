"""The source connector `spark`: what it is for, and its options."""

from __future__ import annotations

from mainstem.connect.listening.options import OF_STREAM
from mainstem.connect.on_spark import EVENT_TIME, KEY
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    "spark",
    Role.SOURCE,
    """
    Reads any streaming data source of Spark, or one in Python that is part of the project.

    Its rows become records of one STREAM with its columns, each batch in one transaction. A batch
    that is read again after a crash has to have the same rows: that is what Spark asks of its data
    sources, too.

    Formats that Spark knows by name have to be named by `source_formats` of `[spark]` in
    mainstem.toml. A data source in Python is a class of the files `connectors/*.py` of the project,
    in Spark's own way: a `pyspark.sql.datasource.DataSource` with a stream reader. A
    `ConnectorSpec` called SPEC beside the class tells its options, which are checked then.
    """,
    (
        Field(
            "format",
            FieldKind.TEXT,
            "The name of the data source.",
            "rate",
            required=True,
            place=True,
        ),
        Field(
            "columns",
            FieldKind.TEXT,
            "The columns, as in CREATE STREAM, where the data source does not tell them.",
            "id BIGINT, name STRING",
        ),
        KEY,
        EVENT_TIME,
        *OF_STREAM,
    ),
    passed_on="option.",
)
