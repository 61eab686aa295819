"""Rows -> key and value of a record, in their formats; keys without one are text or JSON.

Compaction and the latest row by key go by a key's bytes: the same columns must always give the
same. So a key with a format holds no maps and no floating point, all writers of an object (flows,
INSERT, the gateway) write its keys with its own schema, and JSON is the same text from all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.pandas.functions import arrow_udf

from mainstem.definitions.model import Definition, Format, Kind
from mainstem.engine.formats import Formats
from mainstem.engine.protobuf_rows import message_values
from mainstem.engine.rules import verdict
from mainstem.schemas.codec import not_written
from mainstem.schemas.csv_rows import COMMA
from mainstem.schemas.csv_text import QUOTE
from mainstem.vocabulary import HIDDEN_PREFIX

_arrow_udf: Any = arrow_udf
"""PySpark's own type hints do not know all of its forms."""

JSON_OPTIONS = {
    "ignoreNullFields": "false",
    # Spark's default cuts time stamps to milliseconds
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}

_CSV_OPTIONS = {
    "quote": QUOTE,
    "escape": QUOTE,
    "emptyValue": QUOTE * 2,
    "timestampFormat": JSON_OPTIONS["timestampFormat"],
    "timestampNTZFormat": JSON_OPTIONS["timestampNTZFormat"],
}


def encode(rows: DataFrame, definition: Definition, formats: Formats) -> DataFrame:
    """Binary columns `key` and `value` for each row, in the order of the rows.

    Where there are rules, `broken` names those that the row breaks, NULL when there are none.
    """
    shown = [c for c in rows.columns if not c.startswith(HIDDEN_PREFIX)]
    value = _value(F.struct(*(F.col(_quoted(c)) for c in shown)), definition, formats)
    found = {"value": value.cast("binary"), **verdict(definition)}
    for name in rows.columns:
        if name.startswith(HIDDEN_PREFIX):  # a filter: what does not pass it is deleted
            found = {column: F.when(F.col(name), made) for column, made in found.items()}
    key = key_of(definition, formats).cast("binary")
    return rows.select(key.alias("key"), *(made.alias(name) for name, made in found.items()))


def _value(row: SparkColumn, definition: Definition, formats: Formats) -> SparkColumn:
    match definition.format:
        case Format.JSON:
            return F.to_json(row, JSON_OPTIONS)
        case Format.JSON_SCHEMA:
            header = F.lit(bytearray(formats.written(definition).header))
            return F.concat(header, F.to_json(row, JSON_OPTIONS).cast("binary"))
        case Format.CSV:
            return F.to_csv(row, {**_CSV_OPTIONS, "sep": definition.delimiter or COMMA})
        case Format.RAW:
            return row.getField(definition.columns[0].name)
        case Format.AVRO:
            written = formats.written(definition)
            header = F.lit(bytearray(written.header))
            return F.concat(header, to_avro(row, written.schema))
        case Format.PROTOBUF:
            return _to_protobuf(row, definition, formats)
        case Format.DEBEZIUM:
            raise not_written(definition)


def _to_protobuf(row: SparkColumn, definition: Definition, formats: Formats) -> SparkColumn:
    reading, columns = formats.written_messages(definition), definition.value_columns
    name = definition.name

    # by the annotations Spark knows what it is
    def write(rows: pa.Array) -> pa.Array:
        return message_values(rows, reading, columns, name)

    made: Callable[[SparkColumn], SparkColumn] = _arrow_udf(write, "binary")
    return made(F.struct(*(row.getField(c.name).cast(c.type).alias(c.name) for c in columns)))


def key_of(definition: Definition, formats: Formats) -> SparkColumn:
    """The record key, in its format.

    Without one: a JSON object for a table, plain text for a stream keyed by one column.
    """
    keys = definition.keys
    if keys is not None:
        row = F.struct(*(F.col(_quoted(name)).alias(name) for name in definition.key))
        key = _value(row, keys, formats)
        if definition.kind is Kind.STREAM and len(definition.key) == 1:
            return F.when(F.col(_quoted(definition.key[0])).isNotNull(), key)
        return key
    if definition.kind is Kind.TABLE:
        return row_id(definition)
    columns = [F.col(_quoted(name)) for name in definition.key]
    if not columns:
        return F.lit(None).cast("string")
    if len(columns) == 1:
        return columns[0].cast("string")
    return F.to_json(F.struct(*columns), JSON_OPTIONS)


def row_id(definition: Definition) -> SparkColumn:
    """The key of a table's row as a text: a JSON object of the key columns."""
    columns = [F.col(_quoted(name)) for name in definition.key]
    return F.to_json(F.struct(*columns), JSON_OPTIONS) if columns else F.lit("{}")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
