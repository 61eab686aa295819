"""MySQL's and MariaDB's column types -> Spark's short types, for what Debezium writes of values."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mainstem.definitions.keywords import words

_PLAIN = {
    "float": "float",
    "double": "double",
    "date": "date",
    # a time without a zone means the same wherever it is read
    "datetime": "timestamp_ntz",
    "timestamp": "timestamp",
    "year": "int",
}
_SIGNED = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "mediumint": "int",
    "int": "int",
    "bigint": "bigint",
}
_UNSIGNED = {**_SIGNED, "smallint": "int", "int": "bigint", "bigint": "decimal(20,0)"}
TEXTS = words("char varchar tinytext text mediumtext longtext")
_MORE_TEXTS = words("enum set json time uuid")
_BYTES = words("binary varbinary tinyblob blob mediumblob longblob")
UNREADABLE = words("inet4 inet6 xmltype")
"""Of MariaDB: Debezium cannot read the definition of a table that has one."""
_MOST_DIGITS = 38
_ONE_BIT = re.compile(r"bit\(1\)")


@dataclass(frozen=True, slots=True)
class MySqlType:
    """A type as `information_schema.columns` has it."""

    name: str
    """`data_type`."""
    shown: str
    """`column_type`: with length, `unsigned`, or values."""
    precision: int | None = None
    scale: int | None = None


def spark_type(type_: MySqlType) -> str | None:
    """Spark's short type that holds every value; None when there is none."""
    name = type_.name
    if name in _SIGNED:
        # TINYINT(1) is a number, too: nothing keeps others than 0 and 1 out of it
        return (_UNSIGNED if "unsigned" in type_.shown else _SIGNED)[name]
    if name == "decimal":
        assert type_.precision is not None and type_.scale is not None
        fits = type_.precision <= _MOST_DIGITS
        return f"decimal({type_.precision},{type_.scale})" if fits else "string"
    if name == "bit":
        return "boolean" if _ONE_BIT.fullmatch(type_.shown) else "string"
    if name == "enum" and "\\" in type_.shown:
        return None  # Debezium writes a comma in a value with one
    if name in TEXTS or name in _MORE_TEXTS:
        return "string"
    return "binary" if name in _BYTES else _PLAIN.get(name)
