"""The source `kafka`: records of another cluster, as they are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.connect.kafka_cluster import connection_of
from mainstem.connect.listening.options import invalid
from mainstem.engine.sources.records import records_of

FROM = "mainstem.from"
"""The header that says where a record was."""
_WORDS = ("earliest", "latest")


def read_topics(session: SparkSession, options: Mapping[str, Any], limit: int) -> DataFrame:
    """The topics as a stream, from where the option `start` says."""
    reading = session.readStream.format("kafka").options(**connection_of(options).spark_options())
    if options["pattern"] is not None:
        reading = reading.option("subscribePattern", options["pattern"])
    else:
        reading = reading.option("subscribe", ",".join(options["topics"]))
    start = starting_at(options["start"])
    name = "startingOffsets" if isinstance(start, str) else "startingTimestamp"
    return (
        reading.option(name, str(start))
        # a time behind all records of a partition: it begins at its end
        .option("startingOffsetsByTimestampStrategy", "latest")
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")
        .option("maxOffsetsPerTrigger", str(limit))
        .option("failOnDataLoss", "true")
        .load()
    )


def as_records(batch: DataFrame) -> DataFrame:
    """What Spark reads, as records of the stream."""
    place = F.concat_ws("/", "topic", "partition", "offset")
    header = F.struct(F.lit(FROM).alias("key"), place.cast("binary").alias("value"))
    none = F.array().cast("array<struct<key:string,value:binary>>")
    headers = F.concat(F.coalesce("headers", none), F.array(header))
    at = F.unix_millis("timestamp").alias("at")
    columns = ("key", "value", place.alias("place"), at, headers.alias("headers"))
    return records_of(batch.select(*columns))


def starting_at(text: str) -> str | int:
    """`earliest`, `latest`, or milliseconds; INVALID_OPTION for what is no time."""
    if text.lower() in _WORDS:
        return text.lower()
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        problem = "it is neither earliest, latest nor a time"
        raise invalid("start", text, problem, "'2026-11-16T00:00:00Z'") from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
