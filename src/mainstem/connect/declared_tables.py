"""Tables whose columns a definition declares: of systems that we cannot look into ourselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mainstem.connect.chosen_tables import captured_column, check_table_name
from mainstem.connect.listening.column_list import Declared, read_tables
from mainstem.connect.spec import Field, FieldKind
from mainstem.vocabulary import Column

OPTION = "tables"


def tables_field(what: str, home: str, example: str) -> Field:
    """The option that has them."""
    doc = (
        f"The {what} with their columns, as in CREATE TABLE; one that is named alone is of {home}."
    )
    return Field(OPTION, FieldKind.TEXT, doc, example, required=True)


def declared_tables(
    options: Mapping[str, Any], home: str, example: str, fits: Callable[[str], bool]
) -> Iterator[tuple[str, list[Declared], tuple[Column, ...]]]:
    """Each with its schema or database, what is declared of it, and its columns.

    SOURCE_COLUMN for a column whose type does not fit.
    """
    for written, declared in read_tables(OPTION, options[OPTION], example).items():
        table = written if "." in written else f"{home}.{written}"
        check_table_name(*table.split(".", 1))
        yield table, declared, tuple(_column(table, one.column, fits) for one in declared)


def _column(table: str, column: Column, fits: Callable[[str], bool]) -> Column:
    problem = f"has the type {column.type}, which does not come from there"
    return captured_column(table, column.name, column.type if fits(column.type) else None, problem)
