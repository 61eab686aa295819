"""Streams joined to tables: which queries give their answer record by record.

A record of the stream is joined to the tables as they are when it is processed, and never again.
So each select between the stream and the result must keep to single records: nothing in it may
need other records, and no join may bring rows of a table without a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from mainstem.definitions.asked import Asked
from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.query import aggregates
from mainstem.definitions.relations import cte_of, relations, table_name

_PER_RECORD = "Make a STREAM of the join first, and a second definition over that one."
_CLAUSES = {
    "distinct": "DISTINCT",
    "group": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
}


def check_enrich_flow(asked: Asked, inputs: Sequence[Definition]) -> None:
    """Refuse a query that does not work record by record."""
    parsed = asked.parsed
    mentions = stream_mentions(asked, inputs)
    for second in mentions[1:]:
        raise asked.refusal(
            parsed.place(second),
            "two streams and a table in one query",
            "Join the streams to a STREAM first, then that one to the table.",
        )
    for select, bearer in _way_up(asked, mentions[0]):
        for part, what in _CLAUSES.items():
            if select.args.get(part):
                raise asked.refusal(_place(asked, select, part), what, _PER_RECORD)
        if aggregates(parsed, select):
            raise asked.refusal(parsed.place(select), "an aggregate", _PER_RECORD)
        for window in select.find_all(exp.Window):
            if window.find_ancestor(exp.Select) is select:
                raise asked.refusal(parsed.place(window), "OVER", _PER_RECORD)
        _check_joins(asked, select, bearer)


def stream_mentions(asked: Asked, inputs: Sequence[Definition]) -> list[exp.Table]:
    """Where the query names streams, in the order of its text."""
    streams = {d.name.lower() for d in inputs if d.kind is Kind.STREAM}
    found = [t for t in relations(asked.parsed.tree) if table_name(t).lower() in streams]
    return sorted(found, key=asked.parsed.place)


def _way_up(asked: Asked, mention: exp.Table) -> Iterator[tuple[exp.Select, exp.Expr]]:
    """Each select from the stream to the result, with the part of it that bears the stream."""
    bearer: exp.Expr = mention
    while True:
        holder = bearer.parent
        while isinstance(holder, exp.Subquery):
            bearer, holder = holder, holder.parent
        if isinstance(holder, exp.From | exp.Join) and isinstance(holder.parent, exp.Select):
            select = holder.parent
            yield select, holder
            bearer = select
            above = select.parent
            while isinstance(above, exp.Subquery):
                bearer, above = above, above.parent
            if above is None:
                return
            if isinstance(above, exp.CTE):
                users = [
                    t
                    for t in asked.parsed.tree.find_all(exp.Table)
                    if len(t.parts) == 1 and cte_of(t) is above
                ]
                if len(users) != 1:
                    what = "a WITH query over a stream that is used more than once"
                    raise asked.refusal(asked.parsed.place(select), what, "Use it once.")
                bearer = users[0]
            continue
        what = "a stream at this place of a query that reads tables, too"
        advice = "Put the stream behind FROM or JOIN."
        raise asked.refusal(asked.parsed.place(mention), what, advice)


def _check_joins(asked: Asked, select: exp.Select, bearer: exp.Expr) -> None:
    """Every row of a table must come with a record: the stream's side is the one that is kept."""
    behind = isinstance(bearer, exp.From)
    for join in select.args.get("joins") or ():
        side = (join.side or "").upper()
        ok = side in ("", "LEFT") if behind else side in ("", "RIGHT")
        if join is bearer:
            behind = True
        elif not behind:
            ok = True  # tables among themselves, before the stream comes in
        if not ok or join.method:
            raise asked.refusal(
                asked.parsed.place(join),
                f"{side or join.method} JOIN at this place",
                "Keep the stream's rows: FROM stream LEFT JOIN table ON ...",
            )


def _place(asked: Asked, select: exp.Select, part: str) -> int:
    value = select.args[part]
    node = select if part == "distinct" else value[0] if isinstance(value, list) else value
    return asked.parsed.clause(node, _CLAUSES[part].split()[0])
