"""Spark's types and PostgreSQL's: which column type serves a value, and what an answer calls it."""

from __future__ import annotations

import re

from mainstem.errors import MainstemError

JSON_TYPES = ("array", "struct", "map", "variant")
"""Spark types whose values are served as jsonb."""

_PLAIN = {
    "string": "text",
    "boolean": "boolean",
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "binary": "bytea",
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_SIZED_TEXT = re.compile(r"(?:var)?char\(\d+\)")

_SPARK_NAMES = {
    "bool": "boolean",
    "bpchar": "string",
    "bytea": "binary",
    "date": "date",
    "float4": "float",
    "float8": "double",
    "int2": "smallint",
    "int4": "int",
    "int8": "bigint",
    "json": "variant",
    "jsonb": "variant",
    "name": "string",
    "numeric": "decimal(38,18)",
    "text": "string",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "varchar": "string",
}


def postgres_type(spark_type: str, column: str = "") -> str:
    """The PostgreSQL type that holds values of a Spark type (its simple string)."""
    text = spark_type.strip().lower()
    if text in _PLAIN:
        return _PLAIN[text]
    if match := _DECIMAL.fullmatch(text):
        return f"numeric({match.group(1)},{match.group(2)})"
    if text == "decimal":
        return "numeric(10,0)"
    if _SIZED_TEXT.fullmatch(text):
        return "text"
    if text.split("<", 1)[0] in JSON_TYPES:
        return "jsonb"
    raise MainstemError("UNKNOWN_TYPE", type=spark_type, column=column, suggestion="")


def spark_type(display: str) -> str:
    """What an answer calls a PostgreSQL type, given as `int8` or `numeric(5,2)` or `text[]`."""
    if display.endswith("[]"):
        return f"array<{spark_type(display[:-2])}>"
    name, _, sizes = display.partition("(")
    if name == "numeric" and sizes:
        return "decimal(" + sizes
    return _SPARK_NAMES.get(name, "string")
