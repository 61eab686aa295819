"""PostgreSQL's column types -> Spark's short types, for what Debezium writes of their values."""

from __future__ import annotations

from dataclasses import dataclass

from mainstem.definitions.keywords import words

_PLAIN = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "int",
    "int8": "bigint",
    "oid": "bigint",
    "float4": "float",
    "float8": "double",
    "money": "decimal(19,2)",
    "date": "date",
    # a time without a zone means the same wherever it is read
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "bytea": "binary",
}
_TEXTS = words(
    """
    bpchar char citext cidr daterange hstore inet int4range int8range interval isbn json jsonb ltree
    macaddr macaddr8 name numrange text time timetz tsrange tstzrange tsvector uuid varchar xml
    """
)
_NOT_IN_ARRAYS = words("hstore interval isbn ltree money name time tsvector xml")
"""Debezium has no schema for arrays of these, or one of its own making."""
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class PostgresType:
    """A type as `pg_type` has it, domains already replaced by what they are made of."""

    name: str
    modifier: int = -1
    """`atttypmod`: length, precision and scale, packed; -1: none."""
    enum: bool = False
    array: bool = False
    """True: the name is that of the elements."""


def spark_type(type_: PostgresType) -> str | None:
    """Spark's short type that holds every value; None when there is none."""
    if type_.array and type_.name in _NOT_IN_ARRAYS:
        return None
    plain = _scalar(type_)
    return f"array<{plain}>" if plain is not None and type_.array else plain


def _scalar(type_: PostgresType) -> str | None:
    if type_.enum or type_.name in _TEXTS:
        return "string"
    if type_.name == "numeric":
        return _numeric(type_.modifier)
    if type_.name == "bit":
        return "boolean" if type_.modifier == 1 and not type_.array else None
    return _PLAIN.get(type_.name)


def _numeric(modifier: int) -> str:
    """A decimal, or a text where there is no bound, or one that Spark's decimals do not reach."""
    if modifier < 0:
        return "string"
    packed = modifier - 4
    precision, scale = (packed >> 16) & 0xFFFF, ((packed & 0x7FF) ^ 1024) - 1024
    fits = precision <= _MOST_DIGITS and 0 <= scale <= precision
    return f"decimal({precision},{scale})" if fits else "string"
