"""Which flows can say what windows a late record missed, and the queries that tell.

Spark drops what belongs to a window that has closed. For a query that groups one stream by one
window over its event time, the window of a record does not depend on other records, so it can be
told again from the log, and the groups of such a window can be computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from mainstem.definitions.calls import closing_bracket
from mainstem.definitions.dialect import Parsed
from mainstem.definitions.lexer import T, Token
from mainstem.definitions.model import Definition, Kind, Lane, Query
from mainstem.definitions.options import milliseconds
from mainstem.definitions.query import reparse
from mainstem.definitions.relations import apply_edits, relations
from mainstem.definitions.state import event_time_of
from mainstem.definitions.stream_filters import without_filters
from mainstem.vocabulary import EVENT_TIME, HIDDEN_PREFIX

WINDOW = HIDDEN_PREFIX + "window"
"""Column of both queries: the window of a row."""
RECORD = HIDDEN_PREFIX + "record"
"""Column of the first query: the record that a row comes from; its input must have it."""


@dataclass(frozen=True, slots=True)
class LateQueries:
    """What to ask about the windows of a flow."""

    belongs: Query
    """Record and window, for each window that a record of the input belongs to."""
    groups: Query
    """The flow's rows with their windows; filters over the aggregate are hidden columns."""


@dataclass(frozen=True, slots=True)
class WindowSteps:
    """Length of the windows of a flow, and how far apart they begin, in milliseconds."""

    size: int
    slide: int
    offset: int = 0

    def next_end(self, watermark: int) -> int:
        """The end of the first window that is not closed at a watermark."""
        return watermark + self.slide - (watermark - self.offset - self.size) % self.slide


def window_steps(definition: Definition, inputs: Sequence[Definition]) -> WindowSteps | None:
    """The windows over the event time of a query; None when it has none, or of several kinds."""
    query = definition.query
    if query is None or query.python is not None or not query.aggregates:
        return None
    times = {event_time_of(source).lower() for source in inputs}
    window = _window(reparse(query), {*times, EVENT_TIME})
    if window is None:
        return None
    literals = [token.value for token in window if token.kind is T.STRING]
    lengths = [length for text in literals if (length := milliseconds(text)) is not None]
    if not literals or len(lengths) != len(literals):
        return None
    size, slide, offset = (*lengths, *([lengths[0]] if len(lengths) == 1 else []), 0)[:3]
    return WindowSteps(size, slide, offset)


def late_queries(definition: Definition, inputs: Sequence[Definition]) -> LateQueries | None:
    """The queries for a flow whose windows can be told; None for all others."""
    query = definition.query
    if query is None or query.python is not None or not query.aggregates:
        return None
    if definition.lane is Lane.REAL_TIME:
        return None
    if len(inputs) != 1 or inputs[0].kind is not Kind.STREAM or inputs[0].watermark is None:
        return None
    parsed = reparse(query)
    tree = parsed.tree
    single = len(list(tree.find_all(exp.Select))) == 1 and len(list(relations(tree))) == 1
    if not isinstance(tree, exp.Select) or not single or inputs[0].processing_time:
        return None
    call = _window(parsed, {event_time_of(inputs[0]).lower(), EVENT_TIME})
    if call is None or _grouped_by(tree, event_time_of(inputs[0])):
        return None
    window = parsed.text[call[0].start : call[-1].end]
    start = parsed.clause(tree.args["from_"], "FROM")
    end = parsed.clause(tree.args["group"], "GROUP")
    belongs = f"SELECT {window} AS {WINDOW}, {RECORD} {query.text[start:end]}"
    unfiltered = without_filters(query)
    again = reparse(unfiltered)
    at = again.clause(again.tree.args["from_"], "FROM")
    groups = apply_edits(again, [(at, at, f", {window} AS {WINDOW} ")])
    return LateQueries(replace(query, text=belongs), replace(query, text=groups))


def _window(parsed: Parsed, times: set[str]) -> list[Token] | None:
    """The tokens of the only window call, when it is over the event time."""
    found: dict[str, list[Token]] = {}
    for index, token in enumerate(parsed.tokens[:-1]):
        called = parsed.tokens[index + 1].text == "("
        if token.upper not in ("WINDOW", "SESSION_WINDOW") or not called:
            continue
        closing = closing_bracket(parsed, token)
        inside = [t for t in parsed.tokens if token.start <= t.start <= closing.start]
        found.setdefault(" ".join(t.upper for t in inside), inside)
    if len(found) != 1:
        return None
    [inside] = found.values()
    argument = inside[2 : next((i for i, t in enumerate(inside) if t.text == ","), 2)]
    names = [token for token in argument if token.kind in (T.WORD, T.QUOTED)]
    plain = len(argument) == 2 * len(names) - 1 <= 3  # `at` or `s.at`, not an expression
    if inside[0].upper != "WINDOW" or not plain or names[-1].name.lower() not in times:
        return None
    return inside


def _grouped_by(tree: exp.Select, time: str) -> bool:
    """True when the time itself is among the grouping columns: it closes before its window."""
    group = tree.args.get("group")
    listed = [*tree.expressions, *(group.expressions if group else ())]
    plain = [node.unalias() if isinstance(node, exp.Alias) else node for node in listed]
    return group is None or any(
        isinstance(node, exp.Column) and node.name.lower() in (time.lower(), EVENT_TIME)
        for node in plain
    )
