"""Which part of a stream's log a query over history can see, told by its conditions on metadata.

A condition counts when every row of a mention of the stream must meet it: it compares `_timestamp`,
`_offset` or `_partition` of that mention with a constant, and stands in the WHERE of the same
SELECT, alone or joined to others by AND. Such a comparison is never met by NULL, so a join of any
kind gives the same rows whether the records that fail it were read or not.

The condition stays in the query. What is told here only spares reading, so in doubt nothing is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from sqlglot import exp

from mainstem.definitions.dialect import Parsed
from mainstem.definitions.keywords import words
from mainstem.definitions.lexer import T, Token
from mainstem.definitions.model import Query
from mainstem.definitions.query import reparse
from mainstem.definitions.relations import relations, table_name

COLUMNS = ("_timestamp", "_offset", "_partition")


class Side(StrEnum):
    """How a column is compared with a constant."""

    LEAST = ">="
    ABOVE = ">"
    MOST = "<="
    BELOW = "<"
    EQUAL = "="


@dataclass(frozen=True, slots=True)
class Bound:
    """A condition that all records meet which a query can see."""

    column: str
    side: Side
    constant: str
    """SQL text, as written."""

    def __str__(self) -> str:
        return f"{self.column} {self.side} {self.constant}"


Mention = tuple[Bound, ...]
"""The bounds of one mention of a stream; all of them hold."""

_SIDES: dict[type[exp.Expr], tuple[Side, Side]] = {
    exp.GTE: (Side.LEAST, Side.MOST),
    exp.GT: (Side.ABOVE, Side.BELOW),
    exp.LTE: (Side.MOST, Side.LEAST),
    exp.LT: (Side.BELOW, Side.ABOVE),
    exp.EQ: (Side.EQUAL, Side.EQUAL),
}
"""With the column to the left, and to the right."""

_NOW = words("CURRENT_TIMESTAMP CURRENT_DATE NOW")
_CONSTANT = _NOW | words(
    """
    TIMESTAMP TIMESTAMP_LTZ TIMESTAMP_NTZ DATE INTERVAL CAST AS INT BIGINT
    TO_TIMESTAMP TO_DATE TIMESTAMP_SECONDS TIMESTAMP_MILLIS TIMESTAMP_MICROS MAKE_TIMESTAMP
    DATE_TRUNC DATE_ADD DATE_SUB
    YEAR YEARS MONTH MONTHS WEEK WEEKS DAY DAYS HOUR HOURS MINUTE MINUTES SECOND SECONDS
    MILLISECOND MILLISECONDS MICROSECOND MICROSECONDS TO
    """
)
"""All words of a constant: nothing that could differ from row to row, and nothing that falls while
the time goes on. So a constant that is worked out before the query runs is not above the query's
own."""
_BEHIND = words(
    "AND GROUP HAVING ORDER SORT LIMIT OFFSET QUALIFY WINDOW UNION EXCEPT INTERSECT MINUS"
)
_BEFORE = words("WHERE AND")


def bounds(query: Query) -> dict[str, tuple[Mention, ...]]:
    """By lower-case name, the mentions of each stream; without those that are read whole."""
    parsed = reparse(query)
    found: dict[str, list[Mention]] = {}
    for table in relations(parsed.tree):
        found.setdefault(table_name(table).lower(), []).append(_mention(parsed, table))
    return {name: tuple(mentions) for name, mentions in found.items() if all(mentions)}


def _mention(parsed: Parsed, table: exp.Table) -> Mention:
    clause = table.parent
    select = clause.parent if isinstance(clause, (exp.From, exp.Join)) else None
    where = select.args.get("where") if isinstance(select, exp.Select) else None
    if where is None or not isinstance(select, exp.Select):
        return ()
    alone = not select.args.get("joins") and not select.args.get("laterals")
    name = table.alias_or_name.lower()
    return tuple(
        bound
        for condition in _conditions(where.this)
        for column, told in _told(parsed, condition)
        if (column.table.lower() == name if column.table else alone) and len(column.parts) < 3
        for bound in told
    )


def _conditions(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Paren):
        yield from _conditions(node.this)
    elif isinstance(node, exp.And):
        yield from _conditions(node.left)
        yield from _conditions(node.right)
    else:
        yield node


def _told(parsed: Parsed, condition: exp.Expr) -> Iterator[tuple[exp.Column, list[Bound]]]:
    """The column that a condition speaks of, and what it says."""
    tokens = parsed.tokens
    if isinstance(condition, exp.Between) and (column := _bounded(condition.this)):
        at = _index(parsed, column) + 2
        low = _constant_from(tokens, at)
        if low and condition.args.get("symmetric") is None:
            high = _constant_from(tokens, at + len(low) + 1)
            yield column, _bounds_of(parsed, column, ((Side.LEAST, low), (Side.MOST, high)))
    elif isinstance(condition, exp.Binary) and type(condition) in _SIDES:
        side, mirrored = _SIDES[type(condition)]
        if column := _bounded(condition.left):
            at = _index(parsed, column) + 1
            while tokens[at].text in "<>=":
                at += 1
            part = _constant_from(tokens, at)
            yield column, _bounds_of(parsed, column, ((side, part),))
        elif column := _bounded(condition.right):
            at = _index(parsed, column) - 2 * (len(column.parts) - 1)
            while tokens[at - 1].text in "<>=":
                at -= 1
            part = _constant_upto(tokens, at)
            yield column, _bounds_of(parsed, column, ((mirrored, part),))


def _bounds_of(
    parsed: Parsed, column: exp.Column, parts: Iterable[tuple[Side, Sequence[Token]]]
) -> list[Bound]:
    text = parsed.source.text
    return [
        Bound(column.name.lower(), side, text[part[0].start : part[-1].end])
        for side, part in parts
        if part
    ]


def _bounded(node: exp.Expr) -> exp.Column | None:
    return node if isinstance(node, exp.Column) and node.name.lower() in COLUMNS else None


def _index(parsed: Parsed, column: exp.Expr) -> int:
    """Where the column's own name is among the tokens."""
    place = parsed.start + column.this.meta["start"]
    return next(i for i, token in enumerate(parsed.tokens) if token.start == place)


def _constant_from(tokens: Sequence[Token], start: int) -> Sequence[Token]:
    """The constant that begins there; nothing when it is none, or not one that counts."""
    depth, end = 0, start
    for token in tokens[start:]:
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0 or not may_be_constant(token):
            break
        end += 1
    whole = end == len(tokens) or tokens[end].text == ")" or tokens[end].upper in _BEHIND
    return tokens[start:end] if whole and _grows(tokens[start:end]) else ()


def _constant_upto(tokens: Sequence[Token], end: int) -> Sequence[Token]:
    depth, start = 0, end
    for token in reversed(tokens[:end]):
        depth += (token.text == ")") - (token.text == "(")
        if depth < 0 or not may_be_constant(token):
            break
        start -= 1
    whole = start > 0 and (tokens[start - 1].text == "(" or tokens[start - 1].upper in _BEFORE)
    return tokens[start:end] if whole and _grows(tokens[start:end]) else ()


def may_be_constant(token: Token) -> bool:
    """True for what a constant may be made of."""
    if token.kind is T.WORD:
        return token.upper in _CONSTANT
    return token.kind in (T.NUMBER, T.STRING) or token.text in "()+-,"


def _grows(constant: Sequence[Token]) -> bool:
    """False when it could fall while the time goes on: the time may not be subtracted."""
    if not any(token.upper in _NOW for token in constant):
        return True
    taken = [after for token, after in pairwise(constant) if token.text == "-"]
    return all(token.upper == "INTERVAL" or token.kind is T.NUMBER for token in taken)
