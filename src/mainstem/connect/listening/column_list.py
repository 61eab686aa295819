"""The option `columns`: names and types as in CREATE STREAM, each perhaps with what makes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mainstem.connect.listening.options import invalid
from mainstem.definitions.cursor import Cursor
from mainstem.definitions.lexer import Source, T
from mainstem.definitions.names import check_column_name
from mainstem.definitions.types import read_type
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

OPTION = "columns"


@dataclass(frozen=True, slots=True)
class Call:
    """`name(argument, ...)`."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Declared:
    """A column, and what stands behind its AS."""

    column: Column
    made_by: Call | None = None
    key: bool = False
    """True behind PRIMARY KEY."""


def read_columns(text: str, *, made: bool = False) -> list[Declared]:
    """The columns of `id BIGINT, name STRING`; `made`: of `id BIGINT AS sequence(), ...`, too.

    INVALID_OPTION when it is something else.
    """
    try:
        cursor = _cursor(text)
        found = _columns(cursor, made=made)
        if cursor.current.kind is not T.END:
            raise cursor.unexpected("a comma or the end")
    except MainstemError as error:
        example = "'id BIGINT AS sequence()'" if made else "'id BIGINT, name STRING'"
        raise invalid(OPTION, text, error.message, example) from None
    return found


def read_tables(option: str, text: str, example: str) -> dict[str, list[Declared]]:
    """The columns of each table in `orders (id BIGINT PRIMARY KEY, total DOUBLE), other (...)`.

    INVALID_OPTION, with the example, when it is something else.
    """
    tables: dict[str, list[Declared]] = {}
    try:
        cursor = _cursor(text)
        while True:
            name, place = cursor.take_path("a table")
            if name in tables:
                raise cursor.source.syntax(f'"{name}" is there twice', place)
            cursor.expect("(")
            tables[name] = _columns(cursor, keyed=True)
            cursor.expect(")")
            if not cursor.accept(","):
                break
        if cursor.current.kind is not T.END:
            raise cursor.unexpected("a comma or the end")
    except MainstemError as error:
        raise invalid(option, text, error.message, f"'{example}'") from None
    return tables


def written_columns(types: Iterable[tuple[str, str]]) -> str:
    """Names and types as `read_columns` takes them."""
    return ", ".join(f"`{name.replace('`', '``')}` {type_}" for name, type_ in types)


def columns_of(declared: Sequence[Declared]) -> tuple[Column, ...]:
    """The columns alone."""
    return tuple(one.column for one in declared)


def _cursor(text: str) -> Cursor:
    source = Source(text)
    statements = source.statements()
    if len(statements) != 1:
        raise source.syntax("a list of columns was expected", 0)
    return Cursor(source, statements[0])


def _columns(cursor: Cursor, *, made: bool = False, keyed: bool = False) -> list[Declared]:
    found: dict[str, Declared] = {}
    while True:
        place = cursor.current.start
        declared = _column(cursor, made=made, keyed=keyed)
        name = declared.column.name
        if found.setdefault(name.lower(), declared) is not declared:
            raise cursor.source.syntax(f'"{name}" is there twice', place)
        if not cursor.accept(","):
            return list(found.values())


def _column(cursor: Cursor, *, made: bool, keyed: bool) -> Declared:
    token = cursor.take_name("a column")
    check_column_name(cursor.source, token.name, token.start)
    column = Column(token.name, read_type(cursor, token.name))
    if keyed and cursor.accept("PRIMARY", "KEY"):
        return Declared(column, key=True)
    if not (made and cursor.accept("AS")):
        return Declared(column)
    name = cursor.take_word("what makes the column").text.lower()
    cursor.expect("(")
    arguments: list[str] = []
    while not cursor.accept(")"):
        arguments.append(_argument(cursor))
        if not cursor.accept(","):
            cursor.expect(")")
            break
    return Declared(column, Call(name, tuple(arguments)))


def _argument(cursor: Cursor) -> str:
    sign = "-" if cursor.accept("-") else ""
    token = cursor.take()
    match token.kind:
        case T.NUMBER:
            return sign + token.text
        case T.WORD | T.QUOTED if not sign:
            return token.name
        case T.STRING if not sign:
            return token.value
        case _:
            cursor.index -= 1
            raise cursor.unexpected("a number, a word or a text")
