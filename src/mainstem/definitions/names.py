"""What streams, tables and columns may be called."""

from __future__ import annotations

import re

from mainstem.definitions.keywords import RESERVED, words
from mainstem.definitions.lexer import Source
from mainstem.vocabulary import HIDDEN_PREFIX, RESERVED_COLUMNS

MAX_NAME = 200
MAX_COLUMN = 63
"""Longest column name: PostgreSQL cuts longer ones."""

_PART = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")

_FOREIGN = words(
    """
    parquet json csv text orc avro delta xml binaryfile jdbc hive kafka iceberg hudi image libsvm
    spark_catalog system information_schema global_temp session builtin default
    """
)
"""First parts that mean something to Spark itself: data sources, catalogs, schemas."""


def plain_name(name: str) -> bool:
    """True for `name` or `part.name` made of letters, digits, underscores and dashes."""
    parts = name.split(".")
    return len(name) <= MAX_NAME and len(parts) <= 2 and all(map(_PART.fullmatch, parts))


def written(name: str) -> str:
    """The name as a statement has it: in backticks where it needs them."""
    plain = all(_WORD.fullmatch(part) for part in name.split(".")) and name.upper() not in RESERVED
    return name if plain else "`" + name.replace("`", "``") + "`"


def foreign_name(name: str) -> bool:
    """True when Spark would read the dotted name as a file, another catalog or a session's view."""
    first, dot, _ = name.partition(".")
    return bool(dot) and first.lower() in _FOREIGN


def check_object_name(source: Source, name: str, offset: int) -> None:
    """Refuse names that cannot be used for a stream or a table."""
    if name.startswith("_"):
        raise source.error(
            "RESERVED_NAME",
            offset,
            name=name,
            advice="Names that start with an underscore belong to Mainstem; use another.",
        )
    if not plain_name(name):
        raise source.error("INVALID_NAME", offset, name=name, what="a stream or a table")
    if name.upper() in RESERVED or foreign_name(name):
        raise source.error(
            "RESERVED_NAME",
            offset,
            name=name,
            advice="It has a meaning of its own in SQL; use another name.",
        )


def check_column_name(source: Source, name: str, offset: int) -> None:
    """Refuse names that cannot be used for a column."""
    if name.lower() in RESERVED_COLUMNS:
        raise source.error(
            "RESERVED_NAME",
            offset,
            name=name,
            advice="Every stream has a column of this name already; use another name.",
        )
    if name.lower().startswith(HIDDEN_PREFIX):
        raise source.error(
            "RESERVED_NAME", offset, name=name, advice="The engine uses such names; use another."
        )
    if not name or len(name.encode()) > MAX_COLUMN or not name.isprintable():
        raise source.error("INVALID_NAME", offset, name=name, what="a column")


def plain_topic(topic: str) -> bool:
    """True when Kafka takes the name for a topic."""
    return bool(_TOPIC.fullmatch(topic)) and topic not in (".", "..")
