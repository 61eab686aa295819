"""Windows of so many events, `count_window(size [, step])`: what a query asks for, in three parts.

Spark has no such function, so its call never reaches Spark. The records that count are numbered for
each key, from 1 (`numbered`); each record gets a column `count_window` with `start` and `end`, the
numbers of the first and the last event of a window, once for each window that it is in; and the
query as it was written groups by that column (`asked`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from mainstem.definitions.asked import Asked
from mainstem.definitions.calls import closing_bracket
from mainstem.definitions.count_window_rules import (
    counting_select,
    function_name,
    groups_of,
    size_and_step,
)
from mainstem.definitions.dialect import Parsed
from mainstem.definitions.grouping import COUNT_WINDOW
from mainstem.definitions.lexer import T, Token
from mainstem.definitions.model import Query
from mainstem.definitions.query import count_windows
from mainstem.definitions.relations import apply_edits
from mainstem.vocabulary import HIDDEN_PREFIX, RESERVED_COLUMNS

WINDOW_END = HIDDEN_PREFIX + "window_end"
"""Column of `written`: by it the windows of a key are in order."""
WINDOW_KEY = HIDDEN_PREFIX + "window_key"
"""Column of `written` and of the records it is asked over: a number that stands for the key."""
_KEY = HIDDEN_PREFIX + "key"
_BEHIND_GROUP = {
    "having": "HAVING",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "order": "ORDER",
    "sort": "SORT",
    "limit": "LIMIT",
    "offset": "OFFSET",
}


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The windows of a query, and the queries that it is answered with."""

    size: int
    step: int
    """A window begins with every so many-th event; as many as `size`: one window after another."""
    keys: tuple[str, ...]
    """Columns of `numbered`: what the records are counted for; none: all together."""
    checked: Query
    """As written, over records with any `count_window`: what is wrong has its place."""
    numbered: Query
    """The records that count, with keys and order of arrival."""
    asked: Query
    """The result, over those records with their windows."""
    written: Query
    """The same with key and end of the window in hidden columns."""


def count_window_of(query: Query) -> CountWindow | None:
    """What a query with `count_window` means; None when it has none.

    NOT_SUPPORTED where it would not mean anything; FUNCTION_ARGUMENTS.
    """
    if query.python is not None or COUNT_WINDOW not in query.text.lower():
        return None
    asked = Asked.of(query)
    calls = list(count_windows(asked.parsed))
    if not calls:
        return None
    size, step = size_and_step(asked, calls)
    select = counting_select(asked, calls[0])
    return _made(asked, select, calls, size, step)


def _made(
    asked: Asked, select: exp.Select, calls: list[Token], size: int, step: int
) -> CountWindow:
    parsed, query = asked.parsed, asked.query
    text = query.text
    start = parsed.clause(select.args["from_"], "FROM")
    group = parsed.clause(select.args["group"], "GROUP")
    keys = _keys(asked, select)
    names = tuple(f"{_KEY}{number}" for number in range(len(keys)))
    named = [f"({key}) AS {name}" for key, name in zip(keys, names, strict=True)]
    needed = [name for name in RESERVED_COLUMNS if name in query.columns_read]
    picked = ", ".join(["*", *needed, *named])
    numbered = f"SELECT {picked} {text[start:group]}"
    edits = [_as_column(parsed, call) for call in calls]
    checked = apply_edits(parsed, edits)
    where = select.args.get("where")
    if where is not None:
        at = parsed.clause(where, "WHERE")
        edits.append((at, group, " " * (group - at)))
    hidden = f", min({WINDOW_KEY}) AS {WINDOW_KEY}, {COUNT_WINDOW}.end AS {WINDOW_END} "
    read = tuple(sorted({*query.columns_read, "*"}))
    return CountWindow(
        size,
        step,
        names,
        checked=replace(query, text=checked),
        numbered=replace(query, text=numbered, columns_read=read),
        asked=replace(query, text=apply_edits(parsed, edits)),
        written=replace(query, text=apply_edits(parsed, [*edits, (start, start, hidden)])),
    )


def _keys(asked: Asked, select: exp.Select) -> list[str]:
    """The texts of what is grouped by, apart from the window."""
    parsed = asked.parsed
    listed = _items(parsed, parsed.tokens[1].start, parsed.clause(select.args["from_"], "FROM"))
    group = select.args["group"]
    begin = next(t for t in parsed.tokens if t.start > parsed.clause(group, "GROUP")).end
    written = _items(parsed, begin, _end_of_group(parsed, select))
    shown = {
        id(projection.unalias()): _without_alias(item, projection)
        for projection, item in zip(select.expressions, listed, strict=True)
    }
    texts = []
    for expression, item in zip(groups_of(select), written, strict=True):
        if function_name(expression) != COUNT_WINDOW:
            tokens = shown.get(id(expression), item)
            texts.append(asked.query.text[tokens[0].start : tokens[-1].end])
    return texts


def _items(parsed: Parsed, begin: int, end: int) -> list[list[Token]]:
    """The tokens of a list between two places, item by item."""
    items: list[list[Token]] = [[]]
    depth = 0
    for token in parsed.tokens:
        if not begin <= token.start < end:
            continue
        if token.kind is T.SYMBOL:
            depth += (token.text in "([{") - (token.text in ")]}")
        if token.text == "," and depth == 0:
            items.append([])
        else:
            items[-1].append(token)
    return items


def _without_alias(item: list[Token], projection: exp.Expr) -> list[Token]:
    if item[0].upper in ("DISTINCT", "ALL"):
        item = item[1:]
    if not isinstance(projection, exp.Alias):
        return item
    return item[:-2] if item[-2].upper == "AS" else item[:-1]


def _end_of_group(parsed: Parsed, select: exp.Select) -> int:
    places = [parsed.tokens[-1].end]
    for part, word in _BEHIND_GROUP.items():
        value = select.args.get(part)
        if value:
            places.append(parsed.clause(value[0] if isinstance(value, list) else value, word))
    return min(places)


def _as_column(parsed: Parsed, call: Token) -> tuple[int, int, str]:
    """The column in the place of the call, as long as that: what is behind keeps its place."""
    end = closing_bracket(parsed, call).end
    return call.start, end, COUNT_WINDOW.ljust(end - call.start)
