"""Offsets in a query's text -> places in the file that it came from."""

from __future__ import annotations

from dataclasses import replace

from mainstem.definitions.model import Query
from mainstem.definitions.query import reparse
from mainstem.definitions.relations import relations, table_name
from mainstem.vocabulary import SourceLocation


def place_of(query: Query, name: str) -> SourceLocation:
    """Where the query first mentions a stream or a table."""
    if query.python is not None:
        return query.location
    parsed = reparse(query)
    offsets = [
        parsed.place(table)
        for table in relations(parsed.tree)
        if table_name(table).lower() == name.lower()
    ]
    return place_in(query, min(offsets, default=0))


def place_in(query: Query, offset: int) -> SourceLocation:
    """An offset in the query's text as a place in the file that it came from."""
    if query.location.file.endswith(".py"):
        return query.location  # the text stands for what a Python function says it reads
    before = query.text[:offset]
    line = before.count("\n")
    if not line:
        start = query.location
        return replace(start, column=start.column + offset)
    snippet = query.text.splitlines()[line] if line < len(query.text.splitlines()) else ""
    return SourceLocation(
        query.location.file,
        query.location.line + line,
        offset - before.rindex("\n"),
        snippet,
    )
