"""The text of a file as tokens with exact places, by Spark's lexical rules, and its statements.

Spark reads the SELECT of a definition as it was written, so this lexer follows Spark's own rules
for strings, quoted names and comments. Where Spark's rules and those of other readers part (a
comment inside a comment, a line comment that a backslash carries on, odd control characters),
the text is refused: nobody needs them, and a text with two readings cannot be checked.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType

from mainstem.definitions.model import FunctionDefinition
from mainstem.errors import MainstemError
from mainstem.vocabulary import SourceLocation

NO_FUNCTIONS: Mapping[str, FunctionDefinition] = MappingProxyType({})

MAX_TEXT = 1_000_000
"""Longest text that is looked at; a definition is written by people."""


class T(StrEnum):
    """Kinds of tokens."""

    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A token and where it stands: `text[start:end]` of the source."""

    kind: T
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """An unquoted ASCII word in upper case, to compare with keywords; else the text."""
        plain = self.kind is T.WORD and self.text.isascii()
        return self.text.upper() if plain else self.text

    @property
    def name(self) -> str:
        """The word, or what stands between backticks."""
        return self.text[1:-1].replace("``", "`") if self.kind is T.QUOTED else self.text

    @property
    def value(self) -> str:
        """What a string literal says; a doubled quote makes two literals side by side."""
        if self.text[0] in "rR":
            return self.text[2:-1]
        return _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[1]), self.text[1:-1])


_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\n]+)
    | (?P<line_comment>--[^\r\n]*)
    | (?P<comment>/\*.*?\*/)
    | (?P<string>[rR]'[^']*' | [rR]"[^"]*"
        | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:bd|BD|[a-zA-Z])?(?!\w))
    | (?P<word>\w+)
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_SYMBOLS = frozenset("()[]{}<>=!+-*/%&|^~.,:;?$@")
_UNFINISHED = {"'": "a string", '"': "a string", "`": "a quoted name", "/": "a comment"}


class Source:
    """One text with a name, the places in it, and the Python functions that it may call.

    `functions` are by lower-case name; None when the reader does not know them, and whoever runs
    the text will check it. `shown` is what was written where `text` has other words in the same
    places, for Spark to read.
    """

    def __init__(
        self,
        text: str,
        file: str = "<sql>",
        functions: Mapping[str, FunctionDefinition] | None = NO_FUNCTIONS,
        shown: str | None = None,
    ) -> None:
        self.text = text
        self.file = file
        self.functions = functions
        self._shown = text if shown is None else shown

    def reworded(self, edits: Iterable[tuple[int, int, str]]) -> Source:
        """The same with other words in some spans `start..end`; all else keeps its place."""
        text = self.text
        for start, end, words in edits:
            rest = re.sub(r"[^\r\n]", " ", text[start + len(words) : end])
            text = text[:start] + words + rest + text[end:]
        return Source(text, self.file, self.functions, self._shown)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(m.end() for m in re.finditer(r"\r\n|\r|\n", self._shown))]

    def location(self, offset: int) -> SourceLocation:
        """Line, column and line text of an offset."""
        line = bisect_right(self._starts, offset) - 1
        start = self._starts[line]
        stop = self._starts[line + 1] if line + 1 < len(self._starts) else len(self._shown)
        return SourceLocation(
            self.file, line + 1, offset - start + 1, self._shown[start:stop].rstrip("\r\n")
        )

    def offset(self, place: SourceLocation) -> int:
        """The offset of a place in this text."""
        return self._starts[place.line - 1] + place.column - 1

    def error(self, code: str, offset: int, **params: object) -> MainstemError:
        """An error of the catalogue at an offset."""
        return MainstemError(code, location=self.location(offset), **params)

    def syntax(self, problem: str, offset: int, suggestion: str = "") -> MainstemError:
        """A syntax error at an offset."""
        return self.error("SQL_SYNTAX", offset, problem=problem, suggestion=suggestion)

    def statements(self) -> list[tuple[Token, ...]]:
        """The tokens of each statement, without semicolons, comments and empty statements."""
        found: list[tuple[Token, ...]] = []
        current: list[Token] = []
        for token in self._tokens():
            if token.text == ";" and token.kind is T.SYMBOL:
                if current:
                    found.append(tuple(current))
                current = []
            else:
                current.append(token)
        if current:
            found.append(tuple(current))
        return found

    def _tokens(self) -> Iterator[Token]:
        text = self.text
        if len(text) > MAX_TEXT:
            raise self.syntax(f"the text is longer than {MAX_TEXT} characters", 0)
        for match in _TOKEN.finditer(text):
            kind, start, piece = str(match.lastgroup), match.start(), match.group()
            if kind == "space":
                continue
            if kind == "line_comment":
                if piece.endswith("\\"):
                    raise self.syntax("a line comment ends with a backslash", match.end() - 1)
            elif kind == "comment":
                self._check_comment(piece, start)
            elif kind == "symbol":
                yield Token(T.SYMBOL, self._symbol(piece, start), start, match.end())
            else:
                yield Token(T(kind), piece, start, match.end())

    def _check_comment(self, piece: str, start: int) -> None:
        if piece.startswith("/*+"):
            raise self.error(
                "SQL_NOT_ALLOWED", start, what="a hint", advice="Remove the hint /*+ ... */."
            )
        inner = piece.find("/*", 2)
        if inner > 0:
            raise self.syntax("a comment begins inside a comment", start + inner)

    def _symbol(self, piece: str, start: int) -> str:
        if piece in _UNFINISHED and (piece != "/" or self.text.startswith("/*", start)):
            raise self.syntax(f"{_UNFINISHED[piece]} is not closed", start)
        if piece == "/" and self.text.startswith("//", start):
            raise self.syntax('unexpected "//"', start)
        if piece not in _SYMBOLS:
            raise self.syntax(f"unexpected character {piece!r}", start)
        return piece
