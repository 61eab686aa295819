"""A text of several statements, one by one, each with its place in the text it came from."""

from __future__ import annotations

from dataclasses import dataclass

from mainstem.definitions.lexer import Source
from mainstem.definitions.model import Explain, ExplainRow, Select
from mainstem.definitions.parse import parse
from mainstem.errors import MainstemError
from mainstem.vocabulary import SourceLocation


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a text."""

    text: str
    start: int
    source: Source
    push: bool
    """True for SELECT ... EMIT CHANGES, which goes on until it is stopped."""
    query: bool = False
    """True for every other SELECT."""
    explain: bool = False
    """True for EXPLAIN, whose answer in words is what was asked for."""

    def relocated(self, error: MainstemError) -> MainstemError:
        """An error that the gateway placed inside the statement, placed inside the whole text."""
        place = error.location
        if place is None:
            error.location = self.source.location(self.start)
        elif place.file.startswith("<"):
            start = self.source.location(self.start)
            line = start.line + place.line - 1
            column = place.column + (start.column - 1 if place.line == 1 else 0)
            lines = self.source.text.splitlines()
            # without one the line has something that must not be shown
            snippet = lines[line - 1] if place.snippet and line <= len(lines) else place.snippet
            error.location = SourceLocation(self.source.file, line, column, snippet)
        return error


def split(text: str, file: str) -> list[Piece]:
    """The statements of a text, all of them checked: a mistake in the last one stops the first."""
    source = Source(text, file)
    pieces = []
    # only the gateway knows the functions of the catalog
    statements = parse(text, file, functions=None)
    for tokens, statement in zip(source.statements(), statements, strict=True):
        start, end = tokens[0].start, tokens[-1].end
        push = isinstance(statement, Select) and statement.emit_changes
        query = isinstance(statement, Select) and not push
        explain = isinstance(statement, (Explain, ExplainRow))
        pieces.append(Piece(text[start:end], start, source, push, query, explain))
    return pieces


def complete(text: str) -> bool:
    """True when the text ends with a semicolon that is neither in a string nor in a comment."""
    try:
        # a word behind the text begins a second statement only when a semicolon ended the first
        return len(Source(f"X {text}\nX").statements()) > len(Source(f"X {text}").statements())
    except MainstemError:
        return False
