"""Which calls of `count_window` make sense, and what else the query around them may hold."""

from __future__ import annotations

from sqlglot import exp

from mainstem.definitions.asked import Asked
from mainstem.definitions.calls import closing_bracket
from mainstem.definitions.dialect import Parsed
from mainstem.definitions.grouping import COUNT_WINDOW, many_groupings, meant
from mainstem.definitions.lexer import Token
from mainstem.definitions.places import place_in
from mainstem.definitions.query import joined
from mainstem.errors import MainstemError

MOST_EVENTS = 10_000
"""The largest window: so many records of each key are kept."""
MOST_WINDOWS = 1_000
"""In so many windows a record may be at once: each of them takes it in."""
_FIRST = "Make a STREAM of that part first, and count over that one."


def size_and_step(asked: Asked, calls: list[Token]) -> tuple[int, int]:
    """Size and step, which are written as numbers, and in all calls the same."""
    found = {}
    for call in calls:
        inside = _inside(asked.parsed, call)
        numbers = [token.text for token in inside[::2]]
        plain = all(text.isdigit() for text in numbers)
        parted = all(token.text == "," for token in inside[1::2])
        if not plain or not parted or len(numbers) not in (1, 2):
            raise MainstemError(
                "FUNCTION_ARGUMENTS",
                location=place_in(asked.query, call.start),
                name=COUNT_WINDOW,
                wanted="one or two whole numbers",
                given=f"({asked.query.text[inside[0].start : inside[-1].end] if inside else ''})",
                signature=f"{COUNT_WINDOW}(events) or {COUNT_WINDOW}(events, step)",
            )
        size, step = int(numbers[0]), int(numbers[-1])
        _check_sizes(asked, call, size, step)
        found[size, step] = call
    if len(found) > 1:
        raise _refusal(
            asked, calls[-1].start, "a second kind of count_window", "Make an object for each."
        )
    return next(iter(found))


def _check_sizes(asked: Asked, call: Token, size: int, step: int) -> None:
    if not 1 <= step <= size:
        raise _refusal(
            asked,
            call.start,
            f"a step of {step} between windows of {size} events",
            "Let the step be at least 1 and at most the size: count_window(10, 5).",
        )
    if size > MOST_EVENTS:
        raise _refusal(
            asked,
            call.start,
            f"a window of more than {MOST_EVENTS:,} events",
            "So many records of each key are kept. Use a smaller window, or a window of time.",
        )
    if size > step * MOST_WINDOWS:
        raise _refusal(
            asked,
            call.start,
            f"a record that is in more than {MOST_WINDOWS:,} windows",
            f"Let the windows be further apart: count_window({size}, {-(-size // MOST_WINDOWS)}).",
        )


def counting_select(asked: Asked, call: Token) -> exp.Select:
    """The only SELECT of the query, which reads one stream and groups by the window."""
    parsed, tree = asked.parsed, asked.parsed.tree
    if not isinstance(tree, exp.Select) or len(list(tree.find_all(exp.Select))) > 1:
        raise _refusal(asked, call.start, "a query in a query", _FIRST)
    source = tree.args["from_"].this if tree.args.get("from_") else None
    if joined(tree):
        raise _refusal(asked, parsed.place(joined(tree)[0]), "a join", _FIRST)
    laterals = [*(tree.args.get("laterals") or ()), *(tree.args.get("joins") or ())]
    plain = isinstance(source, exp.Table) and not isinstance(source.this, exp.Func)
    if not plain or laterals or _renames(source):
        raise _refusal(asked, call.start, "anything but one stream behind FROM", _FIRST)
    group = tree.args.get("group")
    if group is not None and many_groupings(group):
        raise _refusal(
            asked,
            parsed.clause(group, "GROUP"),
            "this kind of GROUP BY",
            "Name the grouping columns one by one.",
        )
    windows = [name for name in map(function_name, groups_of(tree)) if name.endswith("window")]
    if COUNT_WINDOW not in windows:
        raise _refusal(
            asked,
            call.start,
            "a call outside GROUP BY",
            "Group by it: GROUP BY sensor, count_window(10).",
        )
    if len(windows) > 1:
        raise _refusal(
            asked,
            call.start,
            f"{', '.join(sorted(set(windows) - {COUNT_WINDOW})) or 'a second one'} beside it",
            "Make an object for each kind of window.",
        )
    where = tree.args.get("where")
    if where is not None and any(
        function_name(f) == COUNT_WINDOW for f in where.find_all(exp.Func)
    ):
        raise _refusal(
            asked,
            parsed.clause(where, "WHERE"),
            "count_window in WHERE",
            "WHERE says which events are counted; use HAVING for the windows.",
        )
    return tree


def _renames(source: exp.Expr | None) -> bool:
    alias = source.args.get("alias") if source is not None else None
    return bool(alias and alias.columns)


def groups_of(select: exp.Select) -> list[exp.Expr]:
    """What is grouped by; a position or an alias is what it stands for."""
    group = select.args.get("group")
    return [meant(select, e.unalias(), []) for e in group.expressions] if group else []


def _inside(parsed: Parsed, call: Token) -> list[Token]:
    opening = parsed.tokens.index(call) + 1
    return list(parsed.tokens[opening + 1 : parsed.tokens.index(closing_bracket(parsed, call))])


def function_name(expression: exp.Expr) -> str:
    """The name of a function that the parser does not know; else nothing."""
    return expression.name.lower() if isinstance(expression, exp.Anonymous) else ""


def _refusal(asked: Asked, offset: int, what: str, advice: str) -> MainstemError:
    return asked.refusal(offset, what, advice, "a query with count_window")
