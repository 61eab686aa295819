"""Which tables a source captures: those of its system that the option `tables` names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TypeVar

from mainstem.errors import MainstemError, did_you_mean
from mainstem.vocabulary import HIDDEN_PREFIX, RESERVED_COLUMNS, Column

_TABLES = "tables"
_MOST_NAMED = 10
_TOPIC_PART = re.compile(r"[A-Za-z0-9_-]+")

_T = TypeVar("_T")


def chosen_tables(
    known: Mapping[str, _T],
    written: Iterable[str],
    home: str,
    where: str,
    missing: Callable[[str], None] = lambda _: None,
) -> list[_T]:
    """Of the tables that are `known` by their whole names those that are written, in that order.

    `home` is the schema or database of one that is named alone. SOURCE_TABLE_UNKNOWN for one that
    is not there, unless `missing`, called with its whole name, raises why it is not seen.
    """
    chosen: dict[str, _T] = {}
    for one in written:
        pattern = one if "." in one else f"{home}.{one}"
        found = {name: table for name, table in known.items() if fnmatchcase(name, pattern)}
        if not found:
            if "*" not in pattern:
                missing(pattern)
            raise MainstemError(
                "SOURCE_TABLE_UNKNOWN",
                option=_TABLES,
                table=one,
                where=where,
                known=", ".join([*known][:_MOST_NAMED]) or "none",
                suggestion=did_you_mean(pattern, known),
            )
        chosen |= found
    return list(chosen.values())


def check_table_name(*parts: str) -> None:
    """Refuse a table that no topic could be called after."""
    if not all(map(_TOPIC_PART.fullmatch, parts)):
        name = ".".join(parts)
        raise MainstemError("INVALID_NAME", name=name, what="a captured table", option=_TABLES)


def captured_column(table: str, name: str, type_: str | None, problem: str) -> Column:
    """A column of a table; SOURCE_COLUMN with the problem when there is no type for it."""
    if name.lower() in RESERVED_COLUMNS or name.lower().startswith(HIDDEN_PREFIX):
        type_, problem = None, "has a name that Mainstem uses itself"
    if type_ is None:
        raise MainstemError(
            "SOURCE_COLUMN", table=table, column=name, problem=problem, option=_TABLES
        )
    return Column(name, type_)
