"""The sink connector `kafka`: rows as records of a topic of another cluster."""

from __future__ import annotations

from mainstem.connect.kafka_cluster import LOGIN
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    name="kafka",
    role=Role.SINK,
    doc="""Writes rows to a topic of another Kafka cluster, as JSON, exactly once.

The rows of each task of a batch are one transaction there, together with a token in the topic
`_mainstem.commits` of that cluster, by which a batch that comes again is known. Readers with
`isolation.level=read_committed` see each row once. Of a table each upsert is a record, and each
delete one without a value; the key is a JSON object of the primary key's columns. A topic that is
missing is made; that of a table is compacted. The user needs to write to both topics, to make them
if they are missing, to read `_mainstem.commits`, and the transactional ids that begin with
`mainstem.`.""",
    fields=(
        Field(
            "servers",
            FieldKind.TEXT,
            "The cluster's bootstrap servers.",
            "kafka-1.example.com:9092,kafka-2.example.com:9092",
            required=True,
            place=True,
        ),
        Field(
            "topic",
            FieldKind.TEXT,
            "The topic. Default: the name of what is read.",
            "orders",
            place=True,
        ),
        Field(
            "key",
            FieldKind.NAMES,
            "Of a stream: columns that make the key of the records, as a text for one column and a "
            "JSON array for several. Without it they have none.",
            "order_id",
            place=True,
        ),
        Field(
            "partitions",
            FieldKind.INTEGER,
            "How many partitions the topic gets if it is missing.",
            "6",
            default="4",
            least=1,
            most=10_000,
        ),
        *LOGIN,
    ),
)
