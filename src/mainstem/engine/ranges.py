"""Records of topics as Spark gets them from Kafka: of which topics, from where and up to where."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition
from mainstem.engine.few_rows import as_rows, few_records
from mainstem.log.connection import Connection
from mainstem.vocabulary import Offsets

PATIENCE = {"kafkaConsumer.pollTimeoutMs": "30000", "kafka.default.api.timeout.ms": "30000"}
"""How long a task waits for records of a topic that may have been deleted after it was planned."""


def read_raw(
    spark: SparkSession, topic: str, connection: Connection, start: Offsets, end: Offsets
) -> DataFrame:
    """The records of a topic between two positions, in Kafka's columns."""
    texts = (offsets_text({topic: at}) for at in (start, end))
    return load_range(spark, {"subscribe": topic}, connection, (), *texts)


def read_records(
    spark: SparkSession,
    definition: Definition,
    connection: Connection,
    start: Mapping[str, Offsets],
    end: Mapping[str, Offsets],
) -> DataFrame:
    """The records of a definition's topics between two positions, in Kafka's columns.

    Both positions name all partitions of the same topics.
    """
    texts = (offsets_text(at) for at in (start, end))
    return load_range(spark, some_topics(definition, end), connection, (), *texts)


def read_signals(
    session: SparkSession, inputs: Sequence[Definition], connection: Connection, start: str
) -> DataFrame:
    """The topics of tables as one stream that only says: something is new, up to here."""
    topics = ",".join(source.topic for source in inputs)
    options = kafka_options({"subscribe": topics}, connection, ())
    raw = session.readStream.format("kafka").options(**options, startingOffsets=start).load()
    return raw.select("topic")


def topics_read(definition: Definition) -> dict[str, str]:
    """Spark's option for the topics that a definition reads."""
    pattern = definition.pattern
    if pattern is None:
        return {"subscribe": definition.topic}
    return {"subscribePattern": pattern.regex, **PATIENCE}


def some_topics(definition: Definition, topics: Iterable[str]) -> dict[str, str]:
    """Spark's option for some of the topics that a definition reads."""
    return {"subscribe": ",".join(topics), **(PATIENCE if definition.pattern else {})}


def starting_at(definition: Definition, start: str) -> str:
    """Where a new flow begins in one of its inputs; offsets are given for all of them."""
    if not start.startswith("{"):
        return start
    return json.dumps({definition.topic: json.loads(start)[definition.topic]})


def is_before(definition: Definition, until: str) -> SparkColumn:
    """True for records before the offset that is given for their partition."""
    given = json.loads(until)[definition.topic].items()
    pairs = ((F.lit(int(p)), F.lit(offset).cast("bigint")) for p, offset in given)
    offsets = F.create_map(*(value for pair in pairs for value in pair))
    return F.col("offset") < F.try_element_at(offsets, F.col("partition"))


def offsets_text(offsets: Mapping[str, Offsets]) -> str:
    """Positions by topic, as Spark's options take them."""
    return json.dumps({t: {str(p): o for p, o in parts.items()} for t, parts in offsets.items()})


def kafka_options(
    where: Mapping[str, str], connection: Connection, metadata: Collection[str]
) -> dict[str, str]:
    """Spark's options for topics; `metadata` are the columns that are wanted of each record."""
    options = {
        **connection.spark_options(),
        **where,
        "kafka.isolation.level": "read_committed",
        # the default of 500 ms is what a small batch would wait for at its end
        "kafka.fetch.max.wait.ms": "10",
        # after each poll Spark asks the broker twice where the partition begins and ends; what a
        # poll can give is bounded by the size of a fetch, too
        "kafka.max.poll.records": "10000",
    }
    if "_headers" in metadata:
        options["includeHeaders"] = "true"
    return options


def load_between(
    spark: SparkSession,
    definition: Definition,
    connection: Connection,
    metadata: Collection[str],
    start: Mapping[str, Offsets],
    end: Mapping[str, Offsets],
) -> DataFrame:
    """The records of a definition's topics between two positions, in Kafka's columns."""
    if definition.pattern is None:
        topic = definition.topic
        few = few_records(connection, topic, start[topic], end[topic])
        if few is not None:
            return as_rows(spark, few).coalesce(1)
    texts = (offsets_text(at) for at in (start, end))
    return load_range(spark, some_topics(definition, end), connection, metadata, *texts)


def load_range(
    spark: SparkSession,
    where: Mapping[str, str],
    connection: Connection,
    metadata: Collection[str],
    start: str,
    end: str,
) -> DataFrame:
    """The records between two positions, in Kafka's columns; a batch."""
    options = kafka_options(where, connection, metadata)
    return (
        spark.read.format("kafka")
        .options(**options, startingOffsets=start, endingOffsets=end)
        .load()
    )
