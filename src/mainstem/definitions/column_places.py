"""Where in its file a definition has a column: for errors that are found long after reading it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from mainstem.definitions.lexer import Source, T, Token
from mainstem.definitions.model import Definition
from mainstem.vocabulary import SourceLocation


def column_place(definition: Definition, column: str) -> SourceLocation:
    """Where a column is declared, or named in the query; else where the definition begins."""
    start = definition.location
    if start.file.endswith(".py"):
        return start
    source = Source(definition.text, start.file, None)
    statements = source.statements()
    tokens = statements[0] if statements else ()
    offset = _aliased(tokens, column) if definition.derived else _declared(tokens, column)
    if offset is None:
        return start
    inside = source.location(offset)
    if inside.line > 1:
        return replace(inside, line=start.line + inside.line - 1)
    return replace(start, column=start.column + inside.column - 1)


def _is(token: Token, column: str) -> bool:
    return token.kind in (T.WORD, T.QUOTED) and token.name.lower() == column.lower()


def _declared(tokens: Sequence[Token], column: str) -> int | None:
    """The name behind the first bracket or a comma; those inside of types are deeper."""
    depth = 0
    for before, token in pairwise(tokens):
        depth += (before.text in ("(", "<")) - (before.text in (")", ">"))
        if depth == 1 and before.text in ("(", ",") and _is(token, column):
            return token.start
    return None


def _aliased(tokens: Sequence[Token], column: str) -> int | None:
    """The name that a column is given, or else its first mention."""
    for before, token in pairwise(tokens):
        if before.upper == "AS" and _is(token, column):
            return token.start
    mentioned = (token.start for token in tokens if _is(token, column))
    return next(mentioned, None)
