"""The sink connector `kafka`: rows as records of topics, of another cluster or our own."""

from __future__ import annotations

from mainstem.connect.kafka_cluster import LOGIN
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    name="kafka",
    role=Role.SINK,
    doc="""Writes rows to topics of another Kafka cluster, or of this one, as JSON, exactly once.

The rows of each task of a batch are one transaction there, together with a token in the topic
`_mainstem.commits` of that cluster, by which a batch that comes again is known. Readers with
`isolation.level=read_committed` see each row once. Of a table each upsert is a record, and each
delete one without a value; the key is a JSON object of the primary key's columns. A topic that is
missing is made; that of a table is compacted. The user needs to write to both topics, to make them
if they are missing, to read `_mainstem.commits`, and the transactional ids that begin with
`mainstem.`.

With columns in its name, `topic = 'orders.{country}'`, each row goes to the topic that its own
values name; one whose values name none goes to the quarantine.""",
    fields=(
        Field(
            "servers",
            FieldKind.TEXT,
            "The cluster's bootstrap servers. Default: the log of this project.",
            "kafka-1.example.com:9092,kafka-2.example.com:9092",
            place=True,
        ),
        Field(
            "topic",
            FieldKind.TEXT,
            "The topic; `{column}` stands for the value of a column, behind transforms. Default: "
            "the name of what is read.",
            "orders.{country}",
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
            "keyed_by",
            FieldKind.TEXT,
            "A column, behind transforms, that is the key of the records, in place of `key`; their "
            "order is that of the partitions that are read.",
            "customer",
            place=True,
        ),
        Field(
            "value",
            FieldKind.TEXT,
            "A column whose text is the value of the records. Default: all columns, as JSON.",
            "payload",
        ),
        Field(
            "headers",
            FieldKind.NAMES,
            "Columns that become headers of the records.",
            "id, type",
        ),
        Field(
            "partitions",
            FieldKind.INTEGER,
            "How many partitions a topic gets if it is missing.",
            "6",
            default="4",
            least=1,
            most=10_000,
        ),
        *LOGIN,
    ),
)
