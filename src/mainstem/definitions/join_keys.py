"""By which columns a stream is joined to tables, so that only rows in question are looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from mainstem.definitions.asked import Asked
from mainstem.definitions.enrich_rules import stream_mentions
from mainstem.definitions.model import Definition, Query
from mainstem.definitions.relations import cte_of, relations, table_name


@dataclass(frozen=True, slots=True)
class JoinKey:
    """Rows of `table` matter only if their `columns` equal some row's `source_columns`."""

    table: str
    columns: tuple[str, ...]
    source: str
    source_columns: tuple[str, ...]


class _Equality(NamedTuple):
    """A column of a relation must equal another's, or the relation's row does not count."""

    alias: str
    column: str
    other: str
    other_column: str


def join_keys(query: Query, inputs: Sequence[Definition]) -> list[JoinKey]:
    """By which columns the tables are joined, nearest to the stream first.

    Only what the text proves: tables mentioned once, beside the stream, by plain equalities.
    """
    if query.python is not None:
        return []
    asked = Asked.of(query)
    [mention] = stream_mentions(asked, inputs)
    select = mention.find_ancestor(exp.Select)
    if select is None:
        return []
    beside = _relations_beside(select)
    names = [table_name(table).lower() for table in relations(asked.parsed.tree)]
    by_alias = {alias: table_name(t).lower() for alias, t in beside.items()}
    columns = {d.name.lower(): {c.name.lower() for c in d.columns} for d in inputs}
    once = {alias for alias, name in by_alias.items() if names.count(name) == 1}
    stream = mention.alias_or_name.lower()
    reached = {stream}
    found: list[JoinKey] = []
    equalities = list(_equalities(select, by_alias, columns))
    while True:
        usable = [e for e in equalities if e.alias in once - reached and e.other in reached]
        if not usable:
            return found
        first = usable[0]
        chosen = [e for e in usable if (e.alias, e.other) == (first.alias, first.other)]
        found.append(
            JoinKey(
                by_alias[first.alias],
                tuple(e.column for e in chosen),
                by_alias[first.other],
                tuple(e.other_column for e in chosen),
            )
        )
        reached.add(first.alias)


def _relations_beside(select: exp.Select) -> dict[str, exp.Table]:
    """Streams and tables of this select by the name under which it knows them."""
    clause = select.args.get("from_")
    parts = [clause.this] if clause else []
    parts += [join.this for join in select.args.get("joins") or ()]
    return {
        part.alias_or_name.lower(): part
        for part in parts
        if isinstance(part, exp.Table)
        and not isinstance(part.this, exp.Func)
        and cte_of(part) is None
    }


def _equalities(
    select: exp.Select, by_alias: dict[str, str], columns: dict[str, set[str]]
) -> Iterator[_Equality]:
    """Equalities that each row of a table has to meet: its name and column, the other's."""
    where = select.args.get("where")
    outer = set()
    for join in select.args.get("joins") or ():
        right = join.this.alias_or_name.lower()
        if join.side:
            outer.add(right)
        for column in join.args.get("using") or ():
            name = column.name.lower()
            for alias, table in by_alias.items():
                if alias != right and name in columns[table] and right in by_alias:
                    yield _Equality(right, name, alias, name)
                    if not join.side:
                        yield _Equality(alias, name, right, name)
        condition = join.args.get("on")
        for one, other in _pairs(condition, by_alias, columns):
            for (a, x), (b, y) in ((one, other), (other, one)):
                if a == right or not join.side:
                    yield _Equality(a, x, b, y)
    for one, other in _pairs(where.this if where else None, by_alias, columns):
        for (a, x), (b, y) in ((one, other), (other, one)):
            if a not in outer:
                yield _Equality(a, x, b, y)


def _pairs(
    condition: exp.Expr | None, by_alias: dict[str, str], columns: dict[str, set[str]]
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Pairs of plain columns of two relations that a condition says are equal."""
    if condition is None:
        return
    for part in condition.flatten() if isinstance(condition, exp.And) else (condition,):
        bare = part.unnest()
        if isinstance(bare, exp.EQ):
            one = _column(bare.left, by_alias, columns)
            other = _column(bare.right, by_alias, columns)
            if one and other and one[0] != other[0]:
                yield one, other


def _column(
    node: exp.Expr, by_alias: dict[str, str], columns: dict[str, set[str]]
) -> tuple[str, str] | None:
    """Relation and name of a plain column, if there is no doubt about it."""
    if not isinstance(node, exp.Column) or len(node.parts) > 2:
        return None
    name = node.name.lower()
    if node.table:
        alias = node.table.lower()
        known = alias in by_alias and name in columns[by_alias[alias]]
        return (alias, name) if known else None
    owners = [alias for alias, table in by_alias.items() if name in columns[table]]
    return (owners[0], name) if len(owners) == 1 else None
