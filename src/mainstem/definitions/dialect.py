"""sqlglot's Spark dialect as we use it: to look into a SELECT, never to rewrite what Spark reads.

Spark gets the text as written. What sqlglot sees is therefore held against our own lexer, which
follows Spark's rules: a text that the two cut differently is refused, because a check of one
reading says nothing about the other.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any, TypeVar, cast

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token as SqlglotToken
from sqlglot.tokenizer_core import TokenType

from mainstem.definitions.keywords import near_keyword
from mainstem.definitions.lexer import Source, T, Token
from mainstem.errors import MainstemError

# sqlglot warns of what it does not know; we decide by the tree that it returns.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

E = TypeVar("E", bound=exp.Expr)

MAX_DEPTH = 80
"""Deepest nesting of brackets; deeper texts only serve to exhaust a parser's stack."""

_PARSER_BUGS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What sqlglot falls over with when a function has arguments that it did not expect."""
_AFTER_LIST = frozenset({"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION"})


class MainstemDialect(Spark):
    """Spark's dialect, with raw strings as Spark reads them."""

    class Tokenizer(Spark.Tokenizer):
        """In r'...' a backslash is a character like any other."""

        STRING_ESCAPES_ALLOWED_IN_RAW_STRINGS = False

    class Parser(SparkParser):
        """How many arguments a function takes is for Spark to say."""

        def validate_expression(self, expression: E, args: list[Any] | None = None) -> E:
            """Keep a call with arguments that sqlglot does not expect, as an unknown function."""
            if args and isinstance(expression, exp.Func) and expression.error_messages(args):
                return cast(E, exp.Anonymous(this=expression.sql_name(), expressions=args))
            return super().validate_expression(expression, args)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed query or VALUES list, its tokens and its place in the source."""

    source: Source
    tokens: tuple[Token, ...]
    tree: exp.Expr

    @property
    def start(self) -> int:
        """Offset of the text in the source."""
        return self.tokens[0].start

    @property
    def text(self) -> str:
        """The text as written."""
        return self.source.text[self.start : self.tokens[-1].end]

    def place(self, node: exp.Expr) -> int:
        """Offset in the source where a node begins, as near as its parts tell."""
        starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
        return self.start + min(starts) if starts else self.start

    def clause(self, node: exp.Expr, *words: str) -> int:
        """Offset of the keyword that opens a clause: the last of `words` before the node."""
        starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
        limit = self.start + (min(starts) if starts else len(self.text))
        found = [t.start for t in self.tokens if t.upper in words and t.start <= limit]
        return found[-1] if found else limit if starts else self.start

    def spelling(self, node: exp.Expr) -> str:
        """A function's name as written, when the parser kept its place."""
        begin, end = node.meta.get("start"), node.meta.get("end")
        return "" if begin is None or end is None else self.text[begin : end + 1].strip("`")

    def error(self, code: str, offset: int, **params: object) -> MainstemError:
        """An error of the catalogue at an offset of the source."""
        return self.source.error(code, offset, **params)


def parse_query(source: Source, tokens: Sequence[Token]) -> Parsed:
    """The syntax tree of a SELECT or VALUES text; `tokens` are not empty."""
    tokens = tuple(tokens)
    _check_depth(source, tokens)
    start = tokens[0].start
    text = source.text[start : tokens[-1].end]
    dialect = MainstemDialect()
    try:
        seen = _window_as_name(dialect.tokenize(_without_comments(tokens)))
        _check_same_reading(source, tokens, seen)
        parser = dialect.parser(
            error_level=ErrorLevel.IMMEDIATE, error_message_context=len(text) + 1
        )
        trees = parser.parse(seen, text)
    except ParseError as error:
        raise _syntax_error(source, tokens, error) from None
    except TokenError:
        raise source.syntax("the text cannot be split into words", start) from None
    except _PARSER_BUGS:
        raise source.syntax("the query cannot be understood", start) from None
    except RecursionError:
        raise source.syntax("the query is nested too deeply", start) from None
    if len(trees) != 1 or trees[0] is None:
        raise source.syntax("a query was expected", start)
    _check_gaps(source, tokens)
    return Parsed(source, tokens, trees[0])


def _without_comments(tokens: Sequence[Token]) -> str:
    """The text with spaces for comments, so that places stay and `GROUP /* x */ BY` is read."""
    pieces = []
    end = tokens[0].start
    for token in tokens:
        pieces.append(" " * (token.start - end))
        pieces.append(token.text)
        end = token.end
    return "".join(pieces)


def _window_as_name(tokens: list[SqlglotToken]) -> list[SqlglotToken]:
    """In `window(at, '1 minute')` and `window.start` the word is a name, not the WINDOW clause."""
    for token, after in pairwise(tokens):
        if token.token_type is TokenType.WINDOW and after.token_type is not TokenType.VAR:
            token.token_type = TokenType.VAR
    return tokens


def _check_gaps(source: Source, tokens: Sequence[Token]) -> None:
    """Refuse what sqlglot forgives and Spark does not: SELECT or a comma with nothing behind it."""
    for token, after in zip_longest(tokens, tokens[1:]):
        if token.upper not in ("SELECT", ","):
            continue
        if after is None:
            raise source.syntax("the query ends too early", token.end)
        if after.upper in _AFTER_LIST or after.text == ")":
            raise source.syntax(f'unexpected "{after.text}"', after.start)


def _check_depth(source: Source, tokens: Sequence[Token]) -> None:
    depth = 0
    for token in tokens:
        if token.kind is T.SYMBOL and token.text in "([{":
            depth += 1
            if depth > MAX_DEPTH:
                raise source.syntax("the query is nested too deeply", token.start)
        elif token.kind is T.SYMBOL and token.text in ")]}":
            depth -= 1
            if depth < 0:
                raise source.syntax(f'unexpected "{token.text}"', token.start)


def _check_same_reading(
    source: Source, ours: Sequence[Token], theirs: Sequence[SqlglotToken]
) -> None:
    """Refuse a text in which sqlglot sees other strings, names or comments than we do."""
    base = ours[0].start
    length = ours[-1].end - base
    kinds = bytearray(length)  # 0 layout and comments, 1 code, 2 strings and quoted names
    quoted = {}
    for token in ours:
        is_quoted = token.kind in (T.STRING, T.QUOTED)
        begin, end = token.start - base, token.end - base
        kinds[begin:end] = (b"\2" if is_quoted else b"\1") * (end - begin)
        if is_quoted:
            quoted[end] = begin
    covered = bytearray(length)
    for other in theirs:
        begin, end = other.start, other.end + 1
        part = kinds[begin:end]
        covered[begin:end] = b"\1" * (end - begin)
        if 2 in part:
            same = quoted.get(end) in (begin, begin + 1)  # +1: the X of X'1F'
        else:
            same = bool(part) and part[0] == 1 and part[-1] == 1
        if not same:
            raise source.syntax("the text can be read in two ways", base + begin)
    for offset, kind in enumerate(kinds):
        if kind and not covered[offset]:
            raise source.syntax("the text can be read in two ways", base + offset)


def _syntax_error(source: Source, tokens: Sequence[Token], error: ParseError) -> MainstemError:
    """The parser's complaint at its token, or at a misspelt keyword just before it."""
    detail = error.errors[0] if error.errors else {}
    before = len(detail.get("start_context") or "")
    offset = tokens[0].start + before
    at = max((i for i, t in enumerate(tokens) if t.start <= offset), default=0)
    for index in (at, at - 1, at - 2):
        if index >= 0 and (suggestion := near_keyword(tokens[index])):
            return source.syntax(
                f'unexpected "{tokens[index].text}"', tokens[index].start, suggestion
            )
    token = tokens[at]
    unexpected = str(detail.get("description", "")).startswith("Invalid expression")
    if token is tokens[-1] and not unexpected:
        return source.syntax("the query ends too early", token.end)
    return source.syntax(f'unexpected "{token.text}"', token.start)
