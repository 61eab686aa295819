"""Captured changes of documents -> rows, in Spark: the text of a document is parsed by its columns.

Debezium tells of a document that was there before nothing but its key, which is that of the record.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from mainstem.definitions.types import struct_fields
from mainstem.engine.attempt import attempt
from mainstem.schemas.changes import CHANGED_OPS
from mainstem.schemas.documents import ID, KEY, PLAIN

_STRICT = {"mode": "FAILFAST"}
_RAW = {"timestamp": "bigint"}
"""What a plain document has for a value of a type."""


def parsed_documents(change: SparkColumn, before: str, after: str) -> SparkColumn:
    """A parsed change whose sides are texts, with rows of these types in their place.

    NULL for one whose document does not fit.
    """
    id_ = F.get_json_object(F.col("key").cast("string"), f"$.{KEY}")
    was = F.concat(F.lit(f'{{"{ID}": '), id_, F.lit("}"))

    def rows(change: SparkColumn) -> SparkColumn:
        text = change.getField("after")

        def row(parsed: SparkColumn) -> SparkColumn:
            fits = change.isNotNull() & (text.isNull() | parsed.isNotNull())
            known = F.when(change.getField("op").isin(*CHANGED_OPS), was)
            told = F.struct(
                change.getField("op").alias("op"),
                _once(_parsed(known, before), lambda found: _typed(found, before)).alias("before"),
                _typed(parsed, after).alias("after"),
                change.getField("source").alias("source"),
            )
            return F.when(fits, told)

        return _once(_parsed(text, after), row)

    return _once(change, rows)


def _parsed(text: SparkColumn, type_: str) -> SparkColumn:
    for found, by in PLAIN:
        text = F.regexp_replace(text, found, by)
    fields = struct_fields(type_).values()
    schema = ",".join(f"{_quoted(name)}:{_RAW.get(kind, kind)}" for name, kind in fields)
    return attempt(F.from_json(text, f"struct<{schema}>", _STRICT))


def _typed(parsed: SparkColumn, type_: str) -> SparkColumn:
    made = []
    for name, kind in struct_fields(type_).values():
        value = parsed.getField(name)
        made.append((F.timestamp_millis(value) if kind in _RAW else value).alias(name))
    return F.when(parsed.isNotNull(), F.struct(*made))


def _once(column: SparkColumn, make: Callable[[SparkColumn], SparkColumn]) -> SparkColumn:
    """What is made of a column that Spark would otherwise compute wherever it is mentioned."""
    return F.transform(F.array(column), make).getItem(0)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
