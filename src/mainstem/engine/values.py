"""Values of records -> a struct of columns, by format, and which of them are bad.

Both are expressions over Kafka's column `value`, for any plan. What is bad is kept whole elsewhere
(`quarantine`); here it only has to be told from what is good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DataType, StructType

from mainstem.definitions.model import Definition, Format
from mainstem.engine.attempt import attempt
from mainstem.engine.change_values import change_column, corrupt_change, parsed_change
from mainstem.engine.formats import NEW_ID, Versions
from mainstem.engine.parse import STRICT, from_json
from mainstem.engine.protobuf_rows import READ, message_rows
from mainstem.engine.spark_errors import complaint
from mainstem.schemas import wire
from mainstem.schemas.avro_read import Reading
from mainstem.schemas.csv_rows import COMMA
from mainstem.schemas.csv_text import QUOTE
from mainstem.schemas.json_values import JsonReading, checker
from mainstem.schemas.protobuf_read import ProtobufReading
from mainstem.vocabulary import Column

ROW = "_row"
CORRUPT = "_corrupt"

_arrow_udf: Any = arrow_udf
"""PySpark's own type hints do not know all of its forms."""

_TEXT = "CAST(value AS STRING)"
_NOT_UTF8 = f"NOT is_valid_utf8({_TEXT})"
"""Spark would put replacement characters there."""
_UNEQUAL = "octet_length(replace({0}, '{1}')) <> octet_length(replace({0}, '{2}'))"
_MORE_THAN_ONE = (
    # by far the cheapest search in Spark is that for bytes in bytes
    "contains(substring(value, 1, octet_length(value) - 1), X'7D')"
    rf" AND ({_TEXT} RLIKE r'\}}\s*(?:[^\s,}}\]]|,\s*[^\s\"])'"
    f" OR {_UNEQUAL.format(_TEXT, '{', '}')} OR {_UNEQUAL.format(_TEXT, '[', ']')})"
    # each of these two reads to the end of what it opens, and no further
    f" AND NOT (json_array_length(concat('[', {_TEXT}, ']')) <=> 1"
    f" AND json_object_keys(concat('{{\"\":', {_TEXT}, '}}')) IS NOT NULL)"
)
"""Spark reads the first JSON value and forgets what follows. Only the third test is sure; the
first two are cheap, and spare nearly all records from it."""
_LINE = rf"regexp_replace({_TEXT}, r'\r?\n\z', '')"
_HEADER = f"substring(value, 1, {wire.HEADER_BYTES})"
_PAYLOAD = f"substring(value, {wire.HEADER_BYTES + 1})"
_SCHEMA_ID = "CAST(conv(hex(substring(value, 2, 4)), 16, 10) AS BIGINT)"
_FRAMED = f"octet_length(value) >= {wire.HEADER_BYTES} AND substring(value, 1, 1) = X'00'"


def schema_of(columns: Sequence[Column]) -> StructType:
    """Columns as a Spark schema."""
    schema = StructType()
    for column in columns:
        schema = schema.add(column.name, _type_of(column.type))
    return schema


@cache
def _type_of(text: str) -> DataType:
    """Spark parses it in Java, and a flow asks for the same ones with each batch."""
    return DataType.fromDDL(text)


def row_of(definition: Definition, versions: Versions) -> SparkColumn:
    """The struct of a value's columns; NULL when the value is absent, or does not hold them."""
    columns = definition.value_columns
    match definition.format:
        case Format.JSON:
            row = _from_json(F.col("value").cast("string"), columns)
        case Format.JSON_SCHEMA:
            row = _from_json(_checked(versions)(F.col("value")), columns)
        case Format.CSV:
            row = _from_csv(definition)
        case Format.RAW:
            [column] = columns
            row = F.struct(F.col("value").cast(column.type).alias(column.name))
        case Format.AVRO:
            row = _from_avro(definition, versions)
        case Format.PROTOBUF:
            row = _from_protobuf(columns, versions)
        case Format.DEBEZIUM:
            row = parsed_change(definition, versions)
    return row.alias(ROW)


def column_of(definition: Definition, versions: Versions, name: str) -> SparkColumn:
    """A column of the definition, made of `row_of` (and of the value, which stands beside it)."""
    if definition.format is Format.DEBEZIUM:
        return change_column(F.col(ROW), definition, versions, name)
    return F.col(ROW).getField(name)


def corrupt_of(definition: Definition, versions: Versions) -> SparkColumn:
    """Not null for a bad record. An absent value (null) is a row of nulls, in every format."""
    match definition.format:
        case Format.JSON:
            corrupt = _corrupt_text(_NOT_UTF8, _MORE_THAN_ONE)
        case Format.CSV:
            # nothing at all may be the NULL of an only column
            tests = [f"{_LINE} = ''"] if len(definition.value_columns) > 1 else []
            corrupt = _corrupt_text(_NOT_UTF8, *tests)
        case Format.RAW:
            [column] = definition.value_columns
            bad = F.expr(_NOT_UTF8) if column.type == "string" else F.lit(False)
            corrupt = F.when(bad, F.lit(""))
        case Format.JSON_SCHEMA | Format.AVRO:
            corrupt = _corrupt_if(F.col(ROW).isNull(), definition, versions)
        case Format.PROTOBUF:
            corrupt = _corrupt_if(F.col(ROW).getField(READ).isNull(), definition, versions)
        case Format.DEBEZIUM:
            corrupt = corrupt_change(F.col(ROW), definition, versions)
    return corrupt.alias(CORRUPT)


def _corrupt_text(*tests: str) -> SparkColumn:
    """What the parser found bad, or a test; an empty value is bad."""
    bad = F.col(ROW).isNull() & F.col("value").isNotNull()
    for test in tests:
        bad = bad | F.expr(test)
    return F.when(bad, F.lit(""))


def _from_json(text: SparkColumn, columns: Sequence[Column]) -> SparkColumn:
    return attempt(from_json(text, schema_of(columns)))


def _checked(versions: Versions) -> Callable[[SparkColumn], SparkColumn]:
    """The text of a value that its own schema lets through; NULL for any other."""
    known = {id: r for id, r in versions.readable.items() if isinstance(r, JsonReading)}

    # by the annotations Spark knows what it is
    def check(values: pa.Array) -> pa.Array:
        return pa.array([_text_of(value, known) for value in values.to_pylist()], pa.string())

    made: Callable[[SparkColumn], SparkColumn] = _arrow_udf(check, "string")
    return made


def _text_of(value: bytes | None, known: Mapping[int, JsonReading]) -> str | None:
    try:
        reading = None if value is None else known.get(wire.schema_id(value))
        if value is None or reading is None:
            return None
        data = value[wire.HEADER_BYTES :]
        return data.decode() if checker(reading)(data) is None else None
    except ValueError:  # too short, or no text
        return None


def _from_csv(definition: Definition) -> SparkColumn:
    schema = ", ".join(f"{_quoted(c.name)} {c.type}" for c in definition.value_columns)
    options = {
        **STRICT,
        "quote": QUOTE,
        "escape": QUOTE,
        "sep": definition.delimiter or COMMA,
        # a second line is a field too many, not something to be passed over
        "lineSep": "\1",
        # what an empty field becomes before it is NULL: so that one in quotes is an empty text
        "nullValue": "\2\2",
    }
    return attempt(F.from_csv(F.expr(_LINE), schema, options))


def _from_avro(definition: Definition, versions: Versions) -> SparkColumn:
    """Each record by the schema that it was written with.

    The cast takes what only differs in width, field by field; it asks for the decoded row once.
    """
    kind = schema_of(definition.value_columns)
    row: SparkColumn | None = None
    for id in sorted(versions.readable, reverse=True):  # the newest is what most records have
        reading = versions.readable[id]
        assert isinstance(reading, Reading)
        options = {**STRICT, "avroSchema": reading.wanted}
        made = attempt(from_avro(F.expr(_PAYLOAD), reading.written, options)).cast(kind)
        written = F.col("value").startswith(_bytes(wire.header(id)))
        row = F.when(written, made) if row is None else row.when(written, made)
    return _nothing(kind) if row is None else row


def _nothing(kind: StructType) -> SparkColumn:
    """A NULL that Spark does not see through.

    From a plain one it would conclude that no record can have a time, that all are bad, and that
    it need not look at any of them: one whose schema is new would be passed over.
    """
    return from_json(F.when(F.octet_length("value") < 0, F.lit("")), kind)


def _from_protobuf(columns: tuple[Column, ...], versions: Versions) -> SparkColumn:
    """Each record by the schema, and the message of it, that it was written with."""
    known = {id: r for id, r in versions.readable.items() if isinstance(r, ProtobufReading)}

    # by the annotations Spark knows what it is
    def read(values: pa.Array) -> pa.Array:
        return message_rows(values, known, columns)

    kind = schema_of(columns).add(READ, "boolean")
    made: Callable[[SparkColumn], SparkColumn] = _arrow_udf(read, kind)
    return made(F.col("value"))


def _corrupt_if(bad: SparkColumn, definition: Definition, versions: Versions) -> SparkColumn:
    """A record whose schema the plan does not know fails the batch: nobody may pass it over.

    Whoever runs the plan asks the registry then, and runs the batch again with a plan that knows.
    """
    known = [_bytes(wire.header(id)) for id in sorted({*versions.readable, *versions.refused})]
    new = F.expr(_FRAMED)
    if known:
        new = new & ~F.expr(_HEADER).isin(known)
    params = F.struct(
        F.lit(definition.name).alias("name"),
        F.lit(definition.topic).alias("topic"),
        F.expr(_SCHEMA_ID).alias("id"),
    )
    bad = F.col("value").isNotNull() & bad
    return F.when(bad, F.when(new, complaint(NEW_ID, params)).otherwise(F.lit("")))


def _bytes(data: bytes) -> SparkColumn:
    return F.lit(bytearray(data))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
