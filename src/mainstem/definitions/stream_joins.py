"""Streams joined to streams: which joins Spark can run without end.

Rows of each side wait for those of the other. An equality says which rows can meet; bounds between
the event times say until when one has to wait, and so when a row is known to meet none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from mainstem.definitions.asked import Asked
from mainstem.definitions.model import Definition, Query
from mainstem.definitions.query import aggregates, joined, reparse
from mainstem.definitions.relations import cte_of, table_name
from mainstem.definitions.state import event_time_of

_BOUNDS = (
    "Bound the times in the condition: ... AND b.{b} BETWEEN a.{a} AND a.{a} + INTERVAL 1 HOUR."
)


def check_joins(asked: Asked, inputs: Sequence[Definition]) -> None:
    """Refuse joins of streams that would never give an answer."""
    for select in asked.parsed.tree.find_all(exp.Select):
        for join in joined(select):
            _check_join(asked, select, join, inputs)


def waits(query: Query) -> bool:
    """True when a join of the query writes a row because nothing met it, or only once."""
    selects = reparse(query).tree.find_all(exp.Select)
    return any(_waits(join) for select in selects for join in joined(select))


def _waits(join: exp.Join) -> bool:
    return bool(join.side) or join.kind.upper() == "SEMI"


def bounds_advice(inputs: Sequence[Definition]) -> str:
    """How to say until when rows wait for each other."""
    times = [event_time_of(source) for source in inputs]
    return _BOUNDS.format(a=times[0], b=times[-1])


def _check_join(
    asked: Asked, select: exp.Select, join: exp.Join, inputs: Sequence[Definition]
) -> None:
    parsed = asked.parsed
    place = parsed.clause(join.this, "JOIN", ",")
    if join.kind.upper() == "ANTI":
        raise asked.refusal(
            place,
            "ANTI JOIN of streams",
            "Use LEFT JOIN, and WHERE ... IS NULL in a second STREAM.",
        )
    for side in (select.args["from_"].this, join.this):
        source = cte_of(side) if isinstance(side, exp.Table) else side
        for part in source.find_all(exp.Select) if source is not None else ():
            if aggregates(parsed, part):
                raise asked.refusal(
                    parsed.place(part),
                    "a join with an aggregate",
                    "Make a TABLE of the aggregate first, and join the stream to that one.",
                )
    if not _has_equality(select, join, inputs):
        raise asked.refusal(
            place,
            "a join of streams without an equality",
            "Say which rows belong together: ON a.id = b.id AND ...",
        )
    if _waits(join):
        for source in inputs:
            if source.watermark is None:
                raise asked.refusal(
                    place,
                    f'a {join.side or join.kind} JOIN with the stream "{source.name}", which has '
                    "no watermark,",
                    "Say how late its records may be: WITH (watermark = '10 minutes'). "
                    + bounds_advice(inputs),
                )


def _has_equality(select: exp.Select, join: exp.Join, inputs: Sequence[Definition]) -> bool:
    """True when a condition equates something of this side with something of another."""
    if join.args.get("using") or (join.method or "").upper() == "NATURAL":
        return True
    right = join.this.alias_or_name.lower()
    sides = [select.args["from_"].this, *(j.this for j in joined(select))]
    columns = {side.alias_or_name.lower(): _columns(side, inputs) for side in sides}
    where = select.args.get("where")
    conditions = [join.args.get("on"), where.this if where and not join.side else None]
    for condition in conditions:
        for part in _conjuncts(condition):
            if isinstance(part, (exp.EQ, exp.NullSafeEQ)):
                left_of, right_of = (_owners(side, columns) for side in (part.left, part.right))
                for one, other in ((left_of, right_of), (right_of, left_of)):
                    if one == {right} and other and right not in other:
                        return True
                    if None in one | other:
                        return True  # the text does not tell whose column it is: Spark will
    return False


def _conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    if condition is None:
        return
    bare = condition.unnest()
    if isinstance(bare, exp.And):
        yield from _conjuncts(bare.left)
        yield from _conjuncts(bare.right)
    else:
        yield bare


def _columns(side: exp.Expr, inputs: Sequence[Definition]) -> set[str] | None:
    """Names of a relation's columns; None when it is a query."""
    if not isinstance(side, exp.Table) or cte_of(side) is not None:
        return None
    name = table_name(side).lower()
    return {c.name.lower() for d in inputs if d.name.lower() == name for c in d.columns}


def _owners(part: exp.Expr, columns: dict[str, set[str] | None]) -> set[str | None]:
    """The relations whose columns stand in an expression; None: one that the text does not tell."""
    found: set[str | None] = set()
    for column in part.find_all(exp.Column):
        first = column.parts[0].name.lower()
        if len(column.parts) > 1 and first in columns:
            found.add(first)
            continue
        owners = [side for side, names in columns.items() if names and first in names]
        found.add(owners[0] if len(owners) == 1 else None)
    return found
