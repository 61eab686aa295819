"""Records of a table's topic -> what they say of its rows: a new one, another one, or none."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, StructType

from mainstem.definitions.model import Definition
from mainstem.engine.decode import KEY_PREFIX, Intake, intake_of, quoted, row_schema
from mainstem.engine.encode import row_id
from mainstem.engine.formats import Formats, Versions
from mainstem.engine.keys import CORRUPT_KEY, key_field, with_keys
from mainstem.engine.ranges import kafka_options, read_raw, starting_at, topics_read
from mainstem.engine.rules import judged, refusal
from mainstem.engine.values import ROW, corrupt_of, row_of
from mainstem.log.connection import Connection
from mainstem.vocabulary import Offsets


def read_changes(
    spark: SparkSession,
    definition: Definition,
    connection: Connection,
    formats: Formats,
    start: Offsets,
    end: Offsets,
) -> DataFrame:
    """What happened to a table's rows between two positions.

    The table's columns, and `_id` (the row's key as text), `_gone` (True for a delete),
    `_partition` and `_offset`. Bad records, and those that break a rule, are left out: who serves
    the table tells of them. A record of a declared table may leave the key's columns to the
    record's key, as views allow.
    """
    raw = read_raw(spark, definition.topic, connection, start, end)
    return changes_in(raw, definition, formats)


def changes_in(
    raw: DataFrame, definition: Definition, formats: Formats, more: Sequence[str] = ()
) -> DataFrame:
    """What records of a table's topic, in Kafka's columns, say of its rows (`read_changes`).

    With `more` of Kafka's columns, each under its name with `_` before it.
    """
    return _changes(raw, definition, formats.of_records(raw, definition), more)


def _changes(
    raw: DataFrame, definition: Definition, versions: Versions, more: Sequence[str] = ()
) -> DataFrame:
    """The same with `more` of Kafka's columns, each under its name with `_` before it."""
    key_schema = StructType([f for f in row_schema(definition) if f.name in definition.key])
    told = definition.keys is not None
    parsed = with_keys(raw, definition, versions).select(
        row_of(definition, versions),
        F.col("key").cast("string").alias("_key_text"),
        *(key_field(name).alias(KEY_PREFIX + name) for name in definition.key if told),
        "value",
        "partition",
        "offset",
        *more,
        *([CORRUPT_KEY] if told else ()),
    )
    parsed = parsed.filter(corrupt_of(definition, versions).isNull())
    if told:
        parsed = parsed.filter(F.col(CORRUPT_KEY).isNull())
    # not beside the value above: nearly all records have their key in the value, too, and there it
    # would be parsed for each
    row, keys = F.col(ROW), F.from_json(F.col("_key_text"), key_schema)
    columns = []
    for made in row_schema(definition):
        value = row.getField(made.name)
        if made.name in definition.key:
            from_key = keys.getField(made.name)
            if told:
                from_key = F.col(quoted(KEY_PREFIX + made.name))
            elif len(definition.key) == 1 and isinstance(made.dataType, AtomicType):
                plain = F.col("_key_text").try_cast(made.dataType)
                from_key = F.when(F.col("_key_text").startswith("{"), from_key).otherwise(plain)
            value = F.coalesce(value, from_key)
        columns.append(value.alias(made.name))
    changes = parsed.select(
        *columns,
        F.col("value").isNull().alias("_gone"),
        F.col("partition").alias("_partition"),
        F.col("offset").alias("_offset"),
        *(F.col(name).alias(f"_{name}") for name in more),
    )
    if judged(definition).rules:
        topic = F.lit(definition.topic).alias("topic")
        at = (F.col(f"_{part}").alias(part) for part in ("partition", "offset"))
        refused = refusal(definition, F.struct(topic, *at))
        changes = changes.filter(F.col("_gone") | refused.isNull())
    return changes.select("*", row_id(definition).alias("_id"))


def read_change_stream(spark: SparkSession, definition: Definition, intake: Intake) -> DataFrame:
    """A table's topic as a stream of what happened to its rows.

    The columns of `read_changes`, and `_topic` and `_timestamp`.
    """
    assert intake.formats is not None
    options = kafka_options(topics_read(definition), intake.connection, ())
    options["startingOffsets"] = starting_at(definition, intake.start)
    if intake.max_records is not None:
        options["maxOffsetsPerTrigger"] = str(intake.max_records)
    raw = spark.readStream.format("kafka").options(**options).load()
    none_bad = F.count(F.lit(None).cast("string")).alias("bad")  # who serves the table tells
    newest = F.unix_millis(F.max("timestamp")).alias("newest")
    raw = raw.observe(intake_of(definition), none_bad, newest)
    versions = intake.formats.of_stream(definition)
    return _changes(raw, definition, versions, ("topic", "timestamp"))
