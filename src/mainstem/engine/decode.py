"""Records of a topic -> typed rows with metadata and event time; bad records are told apart.

A record is bad when its value is there but is not a JSON object that fits the columns. A flow
never sees a bad record; it counts them (`observe`), and the keeper of the quarantine fetches them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructType

from mainstem.definitions.model import Definition
from mainstem.log.connection import Connection
from mainstem.vocabulary import METADATA_COLUMNS, Offsets

INTAKE = "intake"
"""Name of the observation: how many records are bad, and the newest record time."""
_CORRUPT = "_corrupt"

_TEXT = "CAST(value AS STRING)"
_NOT_UTF8 = f"NOT is_valid_utf8({_TEXT})"
"""Spark would put replacement characters there."""
_MORE_THAN_ONE = (
    # by far the cheapest search in Spark is that for a string in a string
    "contains(CAST(substring(value, 1, octet_length(value) - 1) AS STRING), '}')"
    rf" AND {_TEXT} RLIKE r'\}}\s*[^\s,}}\]]'"
    f" AND NOT json_array_length(concat('[', {_TEXT}, ']')) <=> 1"
)
"""Spark reads the first JSON value and forgets what follows. Only the third test is sure; the
first two are cheap, and spare nearly all records from it."""

_METADATA: Mapping[str, str] = {
    "_key": "CAST(key AS STRING)",
    "_topic": "topic",
    "_partition": "partition",
    "_offset": "offset",
    "_timestamp": "timestamp",
    "_headers": "headers",
}


@dataclass(frozen=True, slots=True)
class Intake:
    """How a flow reads one input."""

    connection: Connection
    start: str = "earliest"
    max_records: int | None = None
    metadata: Collection[str] = ()
    """Metadata columns that the query mentions; others are not made."""
    watermark: bool = False
    observed: bool = True
    excluded: Mapping[int, Collection[int]] = field(default_factory=dict)
    """Partition -> offsets of records that are left out."""


def mentioned_metadata(columns_read: Collection[str]) -> tuple[str, ...]:
    """The metadata columns among the column names that a query mentions."""
    mentioned = {name.lower() for name in columns_read}
    return tuple(name for name in METADATA_COLUMNS if name in mentioned)


def read_stream(spark: SparkSession, definition: Definition, intake: Intake) -> DataFrame:
    """The definition's topic as a streaming DataFrame of its good rows."""
    options = _kafka_options(definition.topic, intake.connection, intake.metadata)
    options["startingOffsets"] = intake.start
    options["failOnDataLoss"] = "true"
    if intake.max_records is not None:
        options["maxOffsetsPerTrigger"] = str(intake.max_records)
    raw = spark.readStream.format("kafka").options(**options).load()
    for partition, offsets in sorted(intake.excluded.items()):
        here = (F.col("partition") == partition) & F.col("offset").isin(sorted(offsets))
        raw = raw.filter(~here)
    event_time = definition.event_time or "_timestamp"
    metadata = set(intake.metadata)
    if intake.watermark and definition.watermark and event_time == "_timestamp":
        metadata.add("_timestamp")
    parsed = _parse(raw, definition, metadata)
    if intake.observed:
        # the observation also keeps Spark from pushing the query's filter below the JSON parser,
        # which would parse every record twice
        parsed = parsed.observe(
            INTAKE,
            F.count(_CORRUPT).alias("bad"),
            F.max("_time").alias("newest"),
        )
    rows = _good_rows(parsed)
    if intake.watermark and definition.watermark:
        rows = rows.withWatermark(event_time, definition.watermark)
    return rows


def read_batch(
    spark: SparkSession,
    definition: Definition,
    connection: Connection,
    *,
    metadata: Collection[str] = (),
) -> DataFrame:
    """The whole of the definition's topic, from its beginning to its end now, as a DataFrame."""
    raw = _load_range(spark, definition.topic, connection, metadata, "earliest", "latest")
    return _good_rows(_parse(raw, definition, set(metadata)))


def read_bad(
    spark: SparkSession,
    definition: Definition,
    connection: Connection,
    start: Offsets,
    end: Offsets,
) -> DataFrame:
    """The bad records between two positions, whole: topic, partition, offset, time, key, value."""
    raw = _load_range(
        spark,
        definition.topic,
        connection,
        (),
        json.dumps({definition.topic: {str(p): o for p, o in start.items()}}),
        json.dumps({definition.topic: {str(p): o for p, o in end.items()}}),
    )
    origin = ("topic", "partition", "offset", "timestamp", "key", "value")
    return (
        raw.select(*origin, _from_json(definition)).filter(_corrupt().isNotNull()).select(*origin)
    )


def row_schema(definition: Definition) -> StructType:
    """The definition's columns as a Spark schema."""
    schema = StructType()
    for column in definition.columns:
        schema = schema.add(column.name, DataType.fromDDL(column.type))
    return schema


def _kafka_options(topic: str, connection: Connection, metadata: Collection[str]) -> dict[str, str]:
    options = {
        **connection.spark_options(),
        "subscribe": topic,
        "kafka.isolation.level": "read_committed",
        # the default of 500 ms is what a small batch would wait for at its end
        "kafka.fetch.max.wait.ms": "10",
    }
    if "_headers" in metadata:
        options["includeHeaders"] = "true"
    return options


def _load_range(
    spark: SparkSession,
    topic: str,
    connection: Connection,
    metadata: Collection[str],
    start: str,
    end: str,
) -> DataFrame:
    options = _kafka_options(topic, connection, metadata)
    return (
        spark.read.format("kafka")
        .options(**options, startingOffsets=start, endingOffsets=end)
        .load()
    )


def _from_json(definition: Definition) -> SparkColumn:
    schema = row_schema(definition).add(_CORRUPT, StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    return F.from_json(F.col("value").cast("string"), schema, options).alias("_row")


def _corrupt() -> SparkColumn:
    """Not null for a bad record. An absent value (null) is a row of nulls; an empty one is bad."""
    row = F.col("_row")
    empty = row.isNull() & F.col("value").isNotNull()
    bad = empty | F.expr(_NOT_UTF8) | F.expr(_MORE_THAN_ONE)
    return F.when(bad, F.lit("")).otherwise(row.getField(_CORRUPT)).alias(_CORRUPT)


def _parse(raw: DataFrame, definition: Definition, metadata: Collection[str]) -> DataFrame:
    wanted = [F.expr(_METADATA[name]).alias(name) for name in METADATA_COLUMNS if name in metadata]
    parsed = raw.select(_from_json(definition), "value", F.col("timestamp").alias("_time"), *wanted)
    columns = [F.col("_row").getField(c.name).alias(c.name) for c in definition.columns]
    extra = [F.col(name) for name in METADATA_COLUMNS if name in metadata]
    return parsed.select(*columns, *extra, _corrupt(), "_time")


def _good_rows(parsed: DataFrame) -> DataFrame:
    return parsed.filter(F.col(_CORRUPT).isNull()).drop(_CORRUPT, "_time")
