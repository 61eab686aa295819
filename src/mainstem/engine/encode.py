"""Rows -> key and value of a record, as every topic of Mainstem holds them (JSON)."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition, Kind
from mainstem.vocabulary import HIDDEN_PREFIX

JSON_OPTIONS = {
    "ignoreNullFields": "false",
    # Spark's default cuts time stamps to milliseconds
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def encode(rows: DataFrame, definition: Definition) -> DataFrame:
    """Binary columns `key` and `value` for each row, in the order of the rows."""
    shown = [c for c in rows.columns if not c.startswith(HIDDEN_PREFIX)]
    value = F.to_json(F.struct(*(F.col(_quoted(c)) for c in shown)), JSON_OPTIONS)
    for name in rows.columns:
        if name.startswith(HIDDEN_PREFIX):  # a filter: what does not pass it is deleted
            value = F.when(F.col(name), value)
    return rows.select(
        key_of(definition).cast("binary").alias("key"), value.cast("binary").alias("value")
    )


def key_of(definition: Definition) -> SparkColumn:
    """The record key: a JSON object for a table, plain text for a stream keyed by one column."""
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
