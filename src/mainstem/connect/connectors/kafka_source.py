"""The source connector `kafka`: what it is for, and its options."""

from __future__ import annotations

from mainstem.connect.kafka_cluster import LOGIN
from mainstem.connect.listening.options import OF_STREAM
from mainstem.connect.on_spark import EVENT_TIME
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    "kafka",
    Role.SOURCE,
    """
    Copies the records of another Kafka cluster, each once, with key, headers and time.

    They become records of one STREAM; a header more, `mainstem.from`, says where each was: topic,
    partition and offset. Only committed records are copied. Those of one partition stay in their
    order as far as they have the same key. Without `columns` a record's value is one column,
    `value`, as text; what a value has to be, readers of the stream check, as of any stream.
    """,
    (
        Field(
            "servers",
            FieldKind.TEXT,
            "The cluster's bootstrap servers.",
            "kafka-1.example.com:9092,kafka-2.example.com:9092",
            required=True,
            place=True,
        ),
        Field("topics", FieldKind.NAMES, "The topics.", "orders, customers", place=True),
        Field(
            "pattern",
            FieldKind.TEXT,
            "In the place of topics: a regular expression of Java for all of the name; topics that "
            "are made later are read from their beginning.",
            r"shop\..*",
            place=True,
        ),
        Field(
            "start",
            FieldKind.TEXT,
            "Where it begins: `earliest`, `latest`, or a time.",
            "2026-11-16T00:00:00Z",
            default="earliest",
            place=True,
        ),
        Field(
            "format",
            FieldKind.TEXT,
            "What the values are.",
            "json",
            default="raw",
            choices=("raw", "json", "csv"),
        ),
        Field(
            "columns",
            FieldKind.TEXT,
            "The columns of a value, as in CREATE STREAM; of `raw`, one of STRING or BINARY.",
            "value STRING",
        ),
        EVENT_TIME,
        *LOGIN,
        *OF_STREAM,
    ),
)
