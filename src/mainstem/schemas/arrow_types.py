"""Spark's short type names as Arrow's types; Spark's own reader of them needs its JVM."""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from mainstem.definitions.types import struct_fields, type_parts

_SIMPLE = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


@cache
def arrow_type(spark_type: str) -> pa.DataType:
    """The Arrow type as Spark's workers exchange it."""
    if spark_type in _SIMPLE:
        return _SIMPLE[spark_type]
    head, _, rest = spark_type.partition("(" if spark_type.startswith("decimal") else "<")
    inner = rest[:-1]
    if head == "decimal":
        precision, scale = inner.split(",")
        return pa.decimal128(int(precision), int(scale))
    if head == "array":
        return pa.list_(arrow_type(inner))
    if head == "map":
        key, value = type_parts(inner)
        return pa.map_(arrow_type(key), arrow_type(value))
    fields = struct_fields(spark_type).values()
    return pa.struct([pa.field(name, arrow_type(kind)) for name, kind in fields])
