"""Which queries can run over streams without end: one stream in, at most one aggregation."""

from __future__ import annotations

from sqlglot import exp

from mainstem.definitions.asked import Asked
from mainstem.definitions.dialect import Parsed
from mainstem.definitions.grouping import many_groupings
from mainstem.definitions.model import Kind
from mainstem.definitions.query import aggregates, is_aggregate
from mainstem.definitions.relations import relations, source_of

_WHOLE = "A flow never sees the whole stream; do this in a query over the result."
_CLAUSES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "distinct": ("DISTINCT", ("DISTINCT",), "Make a TABLE with GROUP BY of the columns instead."),
    "having": ("HAVING", ("HAVING",), "Make the table without it and filter when you read it."),
    "qualify": ("QUALIFY", ("QUALIFY",), _WHOLE),
    "windows": ("WINDOW", ("WINDOW",), _WHOLE),
    "order": ("ORDER BY", ("ORDER",), _WHOLE),
    "sort": ("SORT BY", ("SORT",), _WHOLE),
    "limit": ("LIMIT", ("LIMIT",), _WHOLE),
    "offset": ("OFFSET", ("OFFSET",), _WHOLE),
}


def check_stream_flow(asked: Asked, kind: Kind) -> None:
    """Refuse a query that Spark cannot run over streams without end."""
    parsed, tree = asked.parsed, asked.parsed.tree
    for operation in tree.find_all(exp.SetOperation):
        word = operation.key.upper()
        raise asked.refusal(
            parsed.clause(operation.expression, word, "MINUS"),
            word,
            "Make a stream of each part, or filter one stream.",
        )
    selects = list(tree.find_all(exp.Select))
    for select in selects:
        _check_select(asked, select)
    _check_inputs(asked)
    levels = [select for select in selects if aggregates(parsed, select)]
    if len(levels) > 1:
        raise asked.refusal(
            parsed.place(levels[0]),
            "an aggregate of an aggregate",
            "Aggregate once here, and the result again when you read it.",
        )
    if levels and kind is Kind.STREAM:
        raise asked.refusal(
            parsed.place(levels[0]),
            "an aggregate",
            "Make it a TABLE: the rows of an aggregate change as events arrive.",
            "CREATE STREAM",
        )


def _check_select(asked: Asked, select: exp.Select) -> None:
    parsed = asked.parsed
    for part, (what, words, advice) in _CLAUSES.items():
        value = select.args.get(part)
        if value:
            node = value[0] if isinstance(value, list) else value
            if part == "distinct":
                node = select  # a bare DISTINCT has no parts that tell its place
            raise asked.refusal(parsed.clause(node, *words), what, advice)
    if not _behind_from(select):
        raise asked.refusal(
            parsed.clause(select, "SELECT"),
            "a query inside an expression",
            "Read one stream, and combine the results when you read them.",
        )
    for join in select.args.get("joins") or ():
        if not isinstance(join.this, exp.Lateral):
            raise asked.refusal(
                parsed.place(join),
                "a join",
                "Read one stream; join the results when you read them.",
            )
    _check_aggregation(asked, select)


def _behind_from(select: exp.Select) -> bool:
    """True for the query itself, a WITH query, and a query in brackets behind FROM."""
    holder = select.parent
    while isinstance(holder, exp.Subquery):
        holder = holder.parent
    return holder is None or isinstance(holder, (exp.CTE, exp.From))


def _check_aggregation(asked: Asked, select: exp.Select) -> None:
    parsed = asked.parsed
    group = select.args.get("group")
    if group and many_groupings(group):
        raise asked.refusal(
            parsed.clause(group, "GROUP"),
            "this kind of GROUP BY",
            "Name the grouping columns one by one; make a table for each grouping.",
        )
    for function in select.find_all(exp.Anonymous):
        if function.name.lower() == "session_window":
            raise asked.refusal(
                parsed.place(function),
                "session_window",
                "Use window(time, '1 minute') or window(time, '10 minutes', '1 minute').",
            )
    for window in select.find_all(exp.Window):
        raise asked.refusal(parsed.place(window), "OVER", _WHOLE)
    for distinct in select.find_all(exp.Distinct):
        call = distinct.parent
        if call is not None and call is not select and is_aggregate(parsed, call):
            raise asked.refusal(
                parsed.place(call),
                "DISTINCT in an aggregate",
                "Use approx_count_distinct(...), or collect_set(...) for few values.",
            )
    where = select.args.get("where")
    if where and not aggregates(parsed, select) and _reads_aggregate(parsed, select):
        raise asked.refusal(
            parsed.clause(where, "WHERE"),
            "WHERE over an aggregate",
            "Make the table without it and filter when you read it.",
        )


def _reads_aggregate(parsed: Parsed, select: exp.Select) -> bool:
    """True when what stands behind FROM aggregates."""
    source = source_of(select)
    return source is not None and any(aggregates(parsed, s) for s in source.find_all(exp.Select))


def _check_inputs(asked: Asked) -> None:
    mentions = sorted(relations(asked.parsed.tree), key=asked.parsed.place)
    if len(asked.query.inputs) > 1:
        second = next(m for m in mentions if m.name.lower() != mentions[0].name.lower())
        raise asked.refusal(
            asked.parsed.place(second),
            "a second input",
            "Read one stream; combine the results when you read them.",
        )
