"""Which queries can run as a flow: one stream in, at most one aggregation."""

from __future__ import annotations

from sqlglot import exp

from mainstem.definitions.calls import place_of_call
from mainstem.definitions.dialect import Parsed
from mainstem.definitions.grouping import shape_of
from mainstem.definitions.model import Flavour, Kind, Query
from mainstem.definitions.query import aggregates, is_aggregate, parameters
from mainstem.definitions.relations import cte_of, relations
from mainstem.errors import MainstemError

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


def check_flow(parsed: Parsed, query: Query, kind: Kind) -> None:
    """Refuse a definition's query that the engine cannot run as a flow."""
    tree = parsed.tree
    if parameters(parsed):
        raise parsed.error(
            "SQL_NOT_ALLOWED",
            next(t.start for t in parsed.tokens if t.text in ("?", ":")),
            what="a parameter in a definition",
            advice="Write the value itself.",
        )
    for function in query.functions:
        if function.flavour is Flavour.AGGREGATE:
            raise _unsupported(
                parsed,
                place_of_call(parsed, function),
                f'the aggregate function "{function.name}"',
                "A flow aggregates with Spark's own functions; call this one in a query over the "
                "stream.",
            )
    for operation in tree.find_all(exp.SetOperation):
        word = operation.key.upper()
        raise _unsupported(
            parsed,
            parsed.clause(operation.expression, word, "MINUS"),
            word,
            "Make a stream of each part, or filter one stream.",
        )
    selects = list(tree.find_all(exp.Select))
    for select in selects:
        _check_select(parsed, select)
    _check_inputs(parsed, query)
    levels = [select for select in selects if aggregates(parsed, select)]
    if len(levels) > 1:
        raise _unsupported(
            parsed,
            parsed.place(levels[0]),
            "an aggregate of an aggregate",
            "Aggregate once here, and the result again when you read it.",
        )
    if levels and kind is Kind.STREAM:
        raise _unsupported(
            parsed,
            parsed.place(levels[0]),
            "an aggregate",
            "Make it a TABLE: the rows of an aggregate change as events arrive.",
            "CREATE STREAM",
        )


def table_key(
    parsed: Parsed, query: Query, name: str, declared: tuple[str, ...]
) -> tuple[str, ...]:
    """The primary key of a derived table: declared, or the grouping columns."""
    if not query.aggregates:
        if not declared:
            raise parsed.error(
                "MISSING_PRIMARY_KEY",
                parsed.start,
                name=name,
                advice="Add PRIMARY KEY (...) or WITH (key = '...') to keep the latest row of each "
                "key, or group the rows with GROUP BY.",
            )
        return declared
    missing = shape_of(parsed).missing
    if missing:
        group = next(parsed.tree.find_all(exp.Group))
        raise parsed.error(
            "MISSING_PRIMARY_KEY",
            parsed.clause(group, "GROUP"),
            name=name,
            advice=f"Add the grouping column {missing[0]} to the SELECT list under a name "
            "(AS ...): the grouping columns are the key.",
        )
    keys = query.group_keys
    if declared and {k.lower() for k in declared} != {k.lower() for k in keys}:
        raise parsed.error(
            "INVALID_OPTION",
            parsed.start,
            option="key",
            value=", ".join(declared),
            problem="the key of an aggregate is its grouping columns",
            advice=f"Leave the key out; it is ({', '.join(keys)}).",
        )
    return declared or keys


def _check_select(parsed: Parsed, select: exp.Select) -> None:
    for part, (what, words, advice) in _CLAUSES.items():
        value = select.args.get(part)
        if value:
            node = value[0] if isinstance(value, list) else value
            if part == "distinct":
                node = select  # a bare DISTINCT has no parts that tell its place
            raise _unsupported(parsed, parsed.clause(node, *words), what, advice)
    if not _behind_from(select):
        raise _unsupported(
            parsed,
            parsed.clause(select, "SELECT"),
            "a query inside an expression",
            "Read one stream, and combine the results when you read them.",
        )
    for join in select.args.get("joins") or ():
        if not isinstance(join.this, exp.Lateral):
            raise _unsupported(
                parsed,
                parsed.place(join),
                "a join",
                "Read one stream; join the results when you read them.",
            )
    _check_aggregation(parsed, select)


def _behind_from(select: exp.Select) -> bool:
    """True for the query itself, a WITH query, and a query in brackets behind FROM."""
    holder = select.parent
    while isinstance(holder, exp.Subquery):
        holder = holder.parent
    return holder is None or isinstance(holder, (exp.CTE, exp.From))


def _check_aggregation(parsed: Parsed, select: exp.Select) -> None:
    group = select.args.get("group")
    if group and (group.args.get("all") or group.find(exp.Cube, exp.Rollup, exp.GroupingSets)):
        raise _unsupported(
            parsed,
            parsed.clause(group, "GROUP"),
            "this kind of GROUP BY",
            "Name the grouping columns one by one; make a table for each grouping.",
        )
    for function in select.find_all(exp.Anonymous):
        if function.name.lower() == "session_window":
            raise _unsupported(
                parsed,
                parsed.place(function),
                "session_window",
                "Use window(time, '1 minute') or window(time, '10 minutes', '1 minute').",
            )
    for window in select.find_all(exp.Window):
        raise _unsupported(parsed, parsed.place(window), "OVER", _WHOLE)
    for distinct in select.find_all(exp.Distinct):
        call = distinct.parent
        if call is not None and call is not select and is_aggregate(parsed, call):
            raise _unsupported(
                parsed,
                parsed.place(call),
                "DISTINCT in an aggregate",
                "Use approx_count_distinct(...), or collect_set(...) for few values.",
            )
    where = select.args.get("where")
    if where and not aggregates(parsed, select) and _reads_aggregate(parsed, select):
        raise _unsupported(
            parsed,
            parsed.clause(where, "WHERE"),
            "WHERE over an aggregate",
            "Make the table without it and filter when you read it.",
        )


def _reads_aggregate(parsed: Parsed, select: exp.Select) -> bool:
    """True when what stands behind FROM aggregates."""
    clause = select.args.get("from_")
    source = clause.this if clause else None
    if isinstance(source, exp.Table):
        source = cte_of(source)
    return source is not None and any(aggregates(parsed, s) for s in source.find_all(exp.Select))


def _check_inputs(parsed: Parsed, query: Query) -> None:
    mentions = sorted(relations(parsed.tree), key=parsed.place)
    if not mentions:
        raise _unsupported(
            parsed, parsed.start, "a query without FROM", "Read a stream: SELECT ... FROM name."
        )
    if len(query.inputs) > 1:
        second = next(m for m in mentions if m.name.lower() != mentions[0].name.lower())
        raise _unsupported(
            parsed,
            parsed.place(second),
            "a second input",
            "Read one stream; combine the results when you read them.",
        )


def _unsupported(
    parsed: Parsed, offset: int, what: str, advice: str, where: str = "a definition"
) -> MainstemError:
    return parsed.error("NOT_SUPPORTED", offset, what=what, where=where, advice=advice)
