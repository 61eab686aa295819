"""Which queries can run over streams without end.

Spark keeps what it has to remember; it never takes a row back. So rows that change go to a table
(`update` mode: one aggregate, and nothing else that keeps state), and all other queries must know
a row to be final when they write it (`append` mode: joins, unions, DISTINCT, EMIT FINAL).
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mainstem.definitions.asked import Asked
from mainstem.definitions.count_windows import count_window_of
from mainstem.definitions.grouping import many_groupings
from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.query import aggregates, count_windows, is_aggregate, joined
from mainstem.definitions.relations import cte_of
from mainstem.definitions.stream_filters import check_filters
from mainstem.definitions.stream_joins import check_joins, waits

_WHOLE = "A flow never sees the whole stream; do this in a query over the result."
_CLAUSES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "qualify": ("QUALIFY", ("QUALIFY",), _WHOLE),
    "windows": ("WINDOW", ("WINDOW",), _WHOLE),
    "order": ("ORDER BY", ("ORDER",), _WHOLE),
    "sort": ("SORT BY", ("SORT",), _WHOLE),
    "limit": ("LIMIT", ("LIMIT",), _WHOLE),
    "offset": ("OFFSET", ("OFFSET",), _WHOLE),
}
_FINAL = "Add EMIT FINAL behind the query: rows are written when their window closes."


def check_stream_flow(asked: Asked, definition: Definition, inputs: Sequence[Definition]) -> None:
    """Refuse a query that Spark cannot run over these streams without end."""
    tree = asked.parsed.tree
    counts = count_window_of(asked.query) is not None
    selects = list(tree.find_all(exp.Select))
    for query in (*tree.find_all(exp.SetOperation), *selects):
        _check_clauses(asked, query)
    for select in selects:
        _check_select(asked, select)
        if not counts:  # whose windows are computed whole
            _check_aggregates(asked, select)
    _check_with(asked)
    levels = [select for select in selects if aggregates(asked.parsed, select)]
    _check_unions(asked)
    check_joins(asked, inputs)
    if definition.final and not counts:
        _check_final(asked, definition, inputs, levels)
    elif levels and not definition.final:
        _check_changing(asked, definition, levels)
        check_filters(asked, inputs)
    _check_distinct(asked, definition, levels)


def check_no_stream_options(asked: Asked, definition: Definition) -> None:
    """Refuse what only flows over streams can do."""
    for asked_for, what in (
        (definition.final, "EMIT FINAL"),
        (definition.deduplicate, "deduplicate"),
    ):
        if asked_for:
            raise asked.refusal(
                asked.parsed.start, f"{what} over a table", "Leave it out: it is for streams only."
            )
    for call in count_windows(asked.parsed):
        raise asked.refusal(
            call.start, "count_window over a table", "Count the events of a stream instead."
        )


def _check_clauses(asked: Asked, query: exp.Expr) -> None:
    for part, (what, words, advice) in _CLAUSES.items():
        value = query.args.get(part)
        if value:
            node = value[0] if isinstance(value, list) else value
            raise asked.refusal(asked.parsed.clause(node, *words), what, advice)


def _check_select(asked: Asked, select: exp.Select) -> None:
    parsed = asked.parsed
    if not _behind_from(select):
        raise asked.refusal(
            parsed.clause(select, "SELECT"),
            "a query inside an expression",
            "Join the streams instead: FROM a LEFT SEMI JOIN b ON a.id = b.id AND ...",
        )
    group = select.args.get("group")
    if group and many_groupings(group):
        raise asked.refusal(
            parsed.clause(group, "GROUP"),
            "this kind of GROUP BY",
            "Name the grouping columns one by one; make a table for each grouping.",
        )
    for window in select.find_all(exp.Window):
        raise asked.refusal(parsed.place(window), "OVER", _WHOLE)


def _check_aggregates(asked: Asked, select: exp.Select) -> None:
    parsed = asked.parsed
    for distinct in select.find_all(exp.Distinct):
        call = distinct.parent
        if call is not None and call is not select and is_aggregate(parsed, call):
            raise asked.refusal(
                parsed.place(call),
                "DISTINCT in an aggregate",
                "Use approx_count_distinct(...), or collect_set(...) for few values.",
            )


def _behind_from(select: exp.Select) -> bool:
    """True for the query itself, a part of a UNION, a WITH query, and one behind FROM or JOIN."""
    inside: exp.Expr = select
    holder = select.parent
    while isinstance(holder, (exp.Subquery, exp.SetOperation)):
        inside, holder = holder, holder.parent
    if isinstance(holder, exp.Join):
        return holder.this is inside
    return holder is None or isinstance(holder, (exp.CTE, exp.From))


def _check_with(asked: Asked) -> None:
    """Spark never reads what nothing uses, and the flow would wait for its records for ever."""
    tree = asked.parsed.tree
    used = {id(cte_of(table)) for table in tree.find_all(exp.Table)}
    for cte in tree.find_all(exp.CTE):
        if id(cte) not in used:
            raise asked.refusal(
                asked.parsed.place(cte), "a WITH query that nothing reads", "Leave it out."
            )


def _check_unions(asked: Asked) -> None:
    """UNION ALL only; and what is written must come from state in all of its parts, or in none."""
    parsed = asked.parsed
    for operation in parsed.tree.find_all(exp.SetOperation):
        word = operation.key.upper()
        place = parsed.clause(operation.expression, word, "MINUS")
        if not isinstance(operation, exp.Union):
            raise asked.refusal(place, word, "Join the streams: LEFT SEMI JOIN, LEFT JOIN.")
        if operation.args.get("distinct"):
            raise asked.refusal(
                place,
                "UNION without ALL",
                "Use UNION ALL; SELECT DISTINCT over it in a second STREAM leaves out duplicates.",
            )
        parts = [_keeps(asked, part) for part in (operation.left, operation.right)]
        if any(parts) and not all(parts) and not _under_state(asked, operation):
            raise asked.refusal(
                place,
                "UNION ALL of a join or an aggregate with something else",
                "Make a STREAM of the join or aggregate first, and the UNION ALL over that one.",
            )


def _keeps(asked: Asked, part: exp.Expr) -> bool:
    selects = part.find_all(exp.Select)
    return any(aggregates(asked.parsed, select) or joined(select) for select in selects)


def _under_state(asked: Asked, node: exp.Expr) -> bool:
    if asked.query.distinct:
        return True
    above = node.find_ancestor(exp.Select)
    while above is not None:
        if aggregates(asked.parsed, above) or joined(above):
            return True
        above = above.find_ancestor(exp.Select)
    return False


def _check_changing(asked: Asked, definition: Definition, levels: list[exp.Select]) -> None:
    """An aggregate whose rows are written at every change."""
    parsed = asked.parsed
    if definition.kind is Kind.STREAM:
        raise asked.refusal(
            parsed.place(levels[0]),
            "an aggregate",
            "Make it a TABLE: its rows change as events arrive. Or add EMIT FINAL: the rows of a "
            "window are written once, when it closes.",
            "CREATE STREAM",
        )
    if waits(asked.query):
        raise asked.refusal(
            parsed.place(levels[0]),
            "an aggregate of an outer or semi join with every change",
            "Make a STREAM of the join first, and aggregate that one. Or group by a window, and "
            "add EMIT FINAL.",
        )
    for select in levels:
        for call in select.find_all(exp.Anonymous):
            if call.name.lower() == "session_window":
                what = (
                    "session_window with every change"  # sessions merge: rows would be taken back
                )
                raise asked.refusal(parsed.place(call), what, _FINAL)
    if len(levels) > 1:
        raise asked.refusal(
            parsed.place(levels[0]), "an aggregate of an aggregate with every change", _FINAL
        )
    if levels[0].find_ancestor(exp.SetOperation):
        raise asked.refusal(
            parsed.place(levels[0]),
            "UNION ALL of aggregates",
            "Put the UNION ALL behind FROM, and aggregate it; or make a table of each part.",
        )


def _check_final(
    asked: Asked, definition: Definition, inputs: Sequence[Definition], levels: list[exp.Select]
) -> None:
    if not levels:
        raise asked.refusal(
            asked.parsed.start,
            "EMIT FINAL without a window",
            "Leave it out, or group by a window: GROUP BY window(time, '1 minute').",
        )
    for source in inputs:
        if source.watermark is None:
            raise asked.refusal(
                asked.parsed.start,
                f'EMIT FINAL over the stream "{source.name}", which has no watermark,',
                f"Say how late its records may be: CREATE STREAM {source.name} ... "
                "WITH (watermark = '10 minutes').",
            )


def _check_distinct(asked: Asked, definition: Definition, levels: list[exp.Select]) -> None:
    parsed, tree = asked.parsed, asked.parsed.tree
    for select in tree.find_all(exp.Select):
        if select.args.get("distinct") and (select is not tree or levels):
            raise asked.refusal(
                parsed.clause(select, "DISTINCT"),
                "DISTINCT of an aggregate" if levels else "DISTINCT inside a query",
                "Group by the columns instead." if levels else "Make a STREAM of that part first.",
            )
    if definition.deduplicate and (levels or asked.query.distinct):
        raise asked.refusal(
            parsed.start,
            "deduplicate beside DISTINCT or an aggregate",
            "Make the deduplicated STREAM first, and the rest over that one.",
        )
