"""Streams that Python functions define: what `@stateful` and `@on` have in common."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from mainstem.definitions.lexer import Source
from mainstem.definitions.model import Definition, FunctionDefinition, Kind, Query
from mainstem.definitions.names import plain_name
from mainstem.definitions.python_source import PythonSource, walk_functions
from mainstem.definitions.query import read_query
from mainstem.definitions.types import struct_fields
from mainstem.errors import MainstemError, did_you_mean
from mainstem.vocabulary import METADATA_COLUMNS


def marked_functions(source: PythonSource, mark: str) -> Iterator[tuple[ast.FunctionDef, ast.expr]]:
    """The functions of a file that carry a mark, and the mark as it stands there."""
    for node in walk_functions(source.tree):
        found = next((d for d in node.decorator_list if _name(source, d) == mark), None)
        if found is None:
            continue
        if isinstance(node, ast.AsyncFunctionDef) or node not in source.tree.body:
            raise source.error(
                node,
                f'"{node.name}" cannot make a stream',
                "Make it a plain function (def) at the top of the file.",
            )
        yield node, found


def query_over(source: PythonSource, mark: ast.expr, stream: str, advice: str) -> Query:
    """The query for all of a stream, which stands where the mark stands."""
    try:
        if not plain_name(stream):
            raise MainstemError("INVALID_NAME", name=stream, what="a stream")
        text = Source(f"SELECT * FROM {stream}")  # noqa: S608 - a plain name
        query, _ = read_query(text, text.statements()[0], definition=True)
    except MainstemError:
        raise source.error(mark, f'"{stream}" is not the name of a stream', advice) from None
    return replace(query, location=source.location(mark))


def check_input(
    definition: Definition,
    function: FunctionDefinition,
    source: Definition,
    key: tuple[str, ...] = (),
) -> None:
    """Refuse a function over something else than a stream, or over columns that it has not."""
    if source.kind is not Kind.STREAM:
        raise refusal(
            definition,
            f'the table "{source.name}"',
            "Read a stream: a table has rows, and no events.",
        )
    known = [column.name for column in source.columns]
    fields = [name for name, _ in struct_fields(function.parameters[0].type).values()]
    for name in (*key, *fields):
        metadata = name.lower() in METADATA_COLUMNS and name not in key
        if source.column(name) is None and not metadata:
            raise MainstemError(
                "UNKNOWN_COLUMN",
                location=definition.location,
                column=name,
                known=", ".join(known),
                suggestion=did_you_mean(name, known),
            )


def refusal(definition: Definition, what: str, advice: str) -> MainstemError:
    """NOT_SUPPORTED at the function."""
    return MainstemError(
        "NOT_SUPPORTED",
        location=definition.location,
        what=what,
        where="a function over events",
        advice=advice,
    )


def _name(source: PythonSource, decorator: ast.expr) -> str | None:
    return source.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
