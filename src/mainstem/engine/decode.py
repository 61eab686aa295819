"""Records of topics -> typed rows with metadata and event time; bad records are told apart.

A record is bad when its value is there but does not hold the columns as its format says (`values`),
when its event time is a mistake (`times`), or when it breaks a rule (`rules`). A flow never sees a
bad record; it counts them (`observe`), and the keeper of the quarantine fetches them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from mainstem.definitions.late import RECORD
from mainstem.definitions.model import Definition, Kind, OnViolation
from mainstem.definitions.state import event_time_of
from mainstem.engine.formats import Formats, Versions
from mainstem.engine.keys import CORRUPT_KEY, key_field, key_text, with_keys
from mainstem.engine.own_records import named_records, own_records
from mainstem.engine.ranges import (
    is_before,
    kafka_options,
    load_between,
    load_range,
    offsets_text,
    read_records,
    some_topics,
    starting_at,
    topics_read,
)
from mainstem.engine.rules import broken, has, is_dropped, judged, refusal
from mainstem.engine.times import event_time_type, expression, metadata_read, mistaken
from mainstem.engine.values import CORRUPT, column_of, corrupt_of, row_of, schema_of
from mainstem.log.connection import Connection
from mainstem.vocabulary import EVENT_TIME, HIDDEN_PREFIX, METADATA_COLUMNS, Offsets

_FROM = "_from"
_MISTAKEN = HIDDEN_PREFIX + "mistaken"
_BROKEN = HIDDEN_PREFIX + "broken"
_PLACE = HIDDEN_PREFIX + "place"
KEY_PREFIX = HIDDEN_PREFIX + "key_"

_METADATA: Mapping[str, str] = {
    "_topic": "topic",
    "_partition": "partition",
    "_offset": "offset",
    "_timestamp": "timestamp",
    "_headers": "headers",
}
_METADATA_TYPES: Mapping[str, str] = {
    "_key": "string",
    "_topic": "string",
    "_partition": "int",
    "_offset": "bigint",
    "_timestamp": "timestamp",
    "_headers": "array<struct<key: string, value: binary>>",
}


@dataclass(frozen=True, slots=True)
class Intake:
    """How a flow reads one input."""

    connection: Connection
    formats: Formats | None = None
    """What is known of schemas; None is for analysis only."""
    start: str = "earliest"
    max_records: int | None = None
    metadata: Collection[str] = ()
    """Metadata columns that the query mentions; others are not made."""
    watermark: bool = False
    observed: bool = True
    excluded: Mapping[int, Collection[int]] = field(default_factory=dict)
    """Partition -> offsets of records that are left out."""
    until: str | None = None
    """Offsets from which on records are left out, by topic and partition as JSON; None: none."""
    ticks: str | None = None
    """A topic whose records only say that it is time for a batch."""


def mentioned_metadata(columns_read: Collection[str]) -> tuple[str, ...]:
    """The metadata columns among the column names that a query mentions."""
    mentioned = {name.lower() for name in columns_read}
    return tuple(name for name in (*METADATA_COLUMNS, EVENT_TIME) if name in mentioned)


def intake_of(definition: Definition) -> str:
    """Name of the observation of an input.

    How many records are `bad`, the `newest` record time, and the newest `event_time` where the flow
    has a watermark; times are in milliseconds.
    """
    return f"intake of {definition.name}"


def metadata_field(definition: Definition, name: str) -> StructField:
    """A metadata column as a field of a schema."""
    kind = event_time_type(definition) if name == EVENT_TIME else _METADATA_TYPES[name]
    return StructField(name, DataType.fromDDL(kind))


def read_stream(spark: SparkSession, definition: Definition, intake: Intake) -> DataFrame:
    """The definition's topics as a streaming DataFrame of its good rows."""
    definition = judged(definition)
    where = topics_read(definition)
    if intake.ticks is not None:
        where["subscribe"] += f",{intake.ticks}"
    options = kafka_options(where, intake.connection, intake.metadata)
    options["startingOffsets"] = starting_at(definition, intake.start)
    # topics of a pattern come and go; what must not go is looked after by the writer (`topics`)
    options["failOnDataLoss"] = "true" if definition.pattern is None else "false"
    if intake.max_records is not None:
        options["maxOffsetsPerTrigger"] = str(intake.max_records)
    raw = spark.readStream.format("kafka").options(**options).load()
    if intake.ticks is not None:
        raw = raw.filter(F.col("topic") != intake.ticks)
    if intake.until is not None:
        # Spark's stream has no end of its own
        raw = raw.filter(is_before(definition, intake.until))
    for partition, offsets in sorted(intake.excluded.items()):
        here = (F.col("partition") == partition) & F.col("offset").isin(sorted(offsets))
        raw = raw.filter(~here)
    metadata = set(intake.metadata)
    if intake.watermark and definition.watermark:
        metadata.add(event_time_of(definition))
    versions = intake.formats.of_stream(definition) if intake.formats else Versions()
    parsed = _parse(raw, definition, versions, metadata, stops=True)
    if intake.observed:
        # the observation also keeps Spark from pushing the query's filter below the JSON parser,
        # which would parse every record twice
        seen = [F.count(CORRUPT).alias("bad"), F.unix_millis(F.max("_time")).alias("newest")]
        if intake.watermark and definition.watermark:
            time = F.unix_millis(_event_time(definition).cast("timestamp"))
            seen.append(F.max(F.when(F.col(CORRUPT).isNull(), time)).alias("event_time"))
        parsed = parsed.observe(intake_of(definition), *seen)
    rows = _good_rows(parsed)
    if intake.watermark and definition.watermark:
        rows = rows.withWatermark(event_time_of(definition), definition.watermark)
    return _with_event_time(rows, definition, metadata)


def read_batch(
    spark: SparkSession,
    definition: Definition,
    connection: Connection,
    formats: Formats,
    *,
    metadata: Collection[str] = (),
    between: tuple[Mapping[str, Offsets], Mapping[str, Offsets]] | None = None,
) -> DataFrame:
    """The definition's topics, from their beginning to their end now, or between two positions.

    Both positions name all partitions of the same topics.
    """
    definition = judged(definition)
    if between is None or not between[1]:
        raw = load_range(spark, topics_read(definition), connection, metadata, "earliest", "latest")
    else:
        raw = load_between(spark, definition, connection, metadata, *between)
    versions = formats.of_records(raw, definition)
    rows = _good_rows(_parse(raw, definition, versions, metadata))
    return _with_event_time(rows, definition, metadata)


def read_between(
    spark: SparkSession,
    definition: Definition,
    connection: Connection,
    formats: Formats,
    start: Mapping[str, Offsets],
    end: Mapping[str, Offsets],
    *,
    metadata: Collection[str] = (),
) -> DataFrame:
    """The good rows between two positions, each with its record (`definitions.late.RECORD`).

    Both positions name all partitions of the same topics.
    """
    definition = judged(definition)
    where = some_topics(definition, end)
    texts = (offsets_text(start), offsets_text(end))
    raw = load_range(spark, where, connection, metadata, *texts)
    versions = formats.of_records(raw, definition)
    rows = _good_rows(_parse(raw, definition, versions, metadata, whole=True))
    return _with_event_time(rows, definition, metadata)


def read_bad(
    spark: SparkSession,
    definition: Definition,
    connection: Connection,
    formats: Formats,
    start: Mapping[str, Offsets],
    end: Mapping[str, Offsets],
    *,
    named: bool | None = None,
) -> DataFrame:
    """The bad records between two positions, whole, with where and when they came from.

    Those that are only dropped are not among them. Both positions name all partitions of the same
    topics. `named`: see `bad_records`.
    """
    where = some_topics(definition, end)
    raw = load_range(
        spark, where, connection, ("_headers",), offsets_text(start), offsets_text(end)
    )
    bad = bad_records(raw, definition, formats, named=named)
    return bad.filter(F.col("broken").isNull() | ~is_dropped(definition, F.col("broken")))


def read_dropped(
    spark: SparkSession,
    definition: Definition,
    connection: Connection,
    formats: Formats,
    start: Mapping[str, Offsets],
    end: Mapping[str, Offsets],
) -> DataFrame:
    """How many records between two positions are dropped for each rule: `rule` and `records`.

    Both positions name all partitions of the same topics.
    """
    raw = read_records(spark, definition, connection, start, end)
    bad = bad_records(raw, definition, formats).filter(is_dropped(definition, F.col("broken")))
    rules = bad.select(F.explode("broken").alias("rule"))
    return rules.groupBy("rule").agg(F.count("*").alias("records"))


def bad_records(
    raw: DataFrame, definition: Definition, formats: Formats, *, named: bool | None = None
) -> DataFrame:
    """Those of some records, in Kafka's columns, that the definition refuses.

    `mistaken` says what is wrong with the event time, `broken` names the rules that are broken;
    both are NULL for one that could not be decoded.
    `named`: only those whose schema says that they are the definition's (True), or only those of
    which nobody can say it (False).
    """
    versions = formats.of_records(raw, definition)
    if named is not None:
        raw = named_records(raw, versions, named=named)
    parsed = _parse(raw, definition, versions, (), whole=True)
    parsed = parsed.filter(F.col(CORRUPT).isNotNull())
    said = {"mistaken": _MISTAKEN, "broken": _BROKEN}
    return parsed.select(f"{RECORD}.*", *(F.col(c).alias(name) for name, c in said.items()))


def row_schema(definition: Definition) -> StructType:
    """The definition's columns as a Spark schema."""
    return schema_of(definition.columns)


def _parse(
    raw: DataFrame,
    definition: Definition,
    versions: Versions,
    metadata: Collection[str],
    *,
    whole: bool = False,
    stops: bool = False,
) -> DataFrame:
    """The columns and metadata of each record, and whether it is bad; `whole` keeps its bytes.

    With `stops`, a record that breaks a rule which says `fail` fails the plan.
    """
    raw = own_records(raw, definition, versions)
    made = {*metadata, *metadata_read(definition)}
    if EVENT_TIME in made and definition.event_time is None:
        made.add(event_time_of(definition))
    wanted = [
        (key_text(definition) if name == "_key" else F.expr(_METADATA[name])).alias(name)
        for name in METADATA_COLUMNS
        if name in made
    ]
    kept = [RECORD] if whole else []
    if whole:
        wanted.append(F.struct(*raw.columns).alias(RECORD))
    stops = stops and has(definition, OnViolation.FAIL)
    if stops:
        wanted.append(F.struct("topic", "partition", "offset").alias(_PLACE))
        kept.append(_PLACE)
    # what a flow writes has all columns in its values
    told = definition.keys is not None and (not definition.derived or "_key" in made)
    in_key = {name: key_field(name) for name in definition.key if told}
    records = with_keys(raw, definition, versions) if told else raw
    parsed = records.select(
        row_of(definition, versions),
        "value",
        F.col("timestamp").alias("_time"),
        F.col("topic").alias(_FROM),
        *(column.alias(KEY_PREFIX + name) for name, column in in_key.items()),
        *([CORRUPT_KEY] if in_key else ()),
        *wanted,
    )
    places = definition.pattern.places if definition.pattern else {}
    columns = []
    for c in definition.columns:
        made_of = column_of(definition, versions, c.name)
        if c.name in places:
            made_of = _part(places[c.name])
        elif c.name in in_key:
            made_of = F.coalesce(made_of, F.col(quoted(KEY_PREFIX + c.name)))
        columns.append(made_of.alias(c.name))
    extra = [name for name in METADATA_COLUMNS if name in made]
    bad = corrupt_of(definition, versions)
    if in_key:
        bad = F.coalesce(bad, F.col(CORRUPT_KEY)).alias(CORRUPT)
    rows = parsed.select(*columns, *extra, bad, "_time", *kept)
    time = expression(definition)
    if time is not None:
        rows = rows.select("*", time.alias(EVENT_TIME))
    if definition.event_time is None:
        wrong = F.lit(None).cast("string")
    else:
        wrong = mistaken(definition, _event_time(definition), F.col("_time"))
    corrupt = F.col(CORRUPT)
    if whole:
        rows = rows.select("*", F.when(corrupt.isNull(), wrong).alias(_MISTAKEN))
        wrong = F.col(_MISTAKEN)
    refused = F.coalesce(corrupt, wrong)
    if whole:
        fits = refused.isNull()
        if definition.kind is Kind.TABLE:  # no rule is about a deletion
            fits &= F.col(RECORD).getField("value").isNotNull()
        rows = rows.select("*", F.when(fits, broken(definition)).alias(_BROKEN))
        refused = F.coalesce(refused, F.when(F.col(_BROKEN).isNotNull(), F.lit("")))
    elif definition.rules:
        place = F.col(_PLACE) if stops else None
        refused = F.coalesce(refused, refusal(definition, place))
    return rows.withColumn(CORRUPT, refused)


def _with_event_time(
    rows: DataFrame, definition: Definition, metadata: Collection[str]
) -> DataFrame:
    """The rows with the event time under its common name, if wanted, watermark and all."""
    if EVENT_TIME in metadata and definition.time is None:
        rows = rows.withColumn(EVENT_TIME, _event_time(definition))
    made = set(rows.columns)
    return rows.drop(*(n for n in (*METADATA_COLUMNS, EVENT_TIME) if n in made - set(metadata)))


def _event_time(definition: Definition) -> SparkColumn:
    return F.col(quoted(event_time_of(definition)))


def quoted(name: str) -> str:
    """A column's name in quotes."""
    return "`" + name.replace("`", "``") + "`"


def _part(place: int) -> SparkColumn:
    """A part of the topic's name."""
    return F.split_part(F.col(_FROM), F.lit("."), F.lit(place))


def _good_rows(parsed: DataFrame) -> DataFrame:
    good = parsed.filter(F.col(CORRUPT).isNull())
    return good.drop(CORRUPT, "_time", _MISTAKEN, _BROKEN, _PLACE)
