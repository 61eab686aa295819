"""The text of a query over tables -> its skeleton, or why it has none.

Only what is known here can have a skeleton; all else (LIMIT, a subquery in a condition, ...) may
make a row of the answer depend on any row of a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from mainstem.definitions.asked import Asked
from mainstem.definitions.model import Definition
from mainstem.definitions.relations import cte_of, relations, table_name
from mainstem.definitions.skeleton import Place, Scope, Skeleton, Use

_CHANCE = frozenset(
    {"RAND", "RANDN", "RANDOM", "RANDSTR", "UNIFORM", "UUID", "SHUFFLE", "NOW", "CURDATE"}
    | {"MONOTONICALLY_INCREASING_ID", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP"}
    | {"LOCALTIMESTAMP", "UNIX_TIMESTAMP"}
)
"""Functions whose value changes although no row does."""
_SELECT_PARTS = frozenset(
    {"with_", "expressions", "distinct", "from_", "joins", "laterals", "where", "group", "having"}
    | {"qualify", "windows", "order", "hint", "kind"}
)
_TABLE_PARTS = frozenset({"this", "db", "catalog", "alias"})
_SET_PARTS = frozenset({"with_", "this", "expression", "distinct", "order"})
_WORDS = {"limit": "LIMIT", "offset": "OFFSET", "pivots": "PIVOT", "sample": "TABLESAMPLE"}


class NoSkeletonError(Exception):
    """The text does not prove which rows belong together; says why."""


def skeletons(asked: Asked, inputs: Sequence[Definition]) -> list[Skeleton]:
    """All ways in which the query's answer comes about. Raises NoSkeletonError."""
    chance = sorted({token.upper for token in asked.parsed.tokens} & _CHANCE)
    if chance:
        raise NoSkeletonError(f"{chance[0].lower()}() may change without a change of a row")
    return _Reader(asked, inputs).query(asked.parsed.tree)


class _Reader:
    """Reads one query."""

    def __init__(self, asked: Asked, inputs: Sequence[Definition]) -> None:
        self._columns = {d.name.lower(): [c.name.lower() for c in d.columns] for d in inputs}
        self._mentions = {id(t): n for n, t in enumerate(relations(asked.parsed.tree))}
        self._uses = 0

    def query(self, node: exp.Expr) -> list[Skeleton]:
        """The ways of a SELECT, a set operation, or either in brackets."""
        if isinstance(node, exp.Subquery):
            _only(node, frozenset({"this", "alias"}))
            return self.query(node.this)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node)
        if isinstance(node, exp.Select):
            return self._select(node)
        raise NoSkeletonError("it holds more than SELECT and UNION")

    def _set_operation(self, node: exp.SetOperation) -> list[Skeleton]:
        _only(node, _SET_PARTS)
        for select in (node.this, node.expression):
            plain = (exp.Alias, exp.Column, exp.Star, exp.Literal)
            if any(not isinstance(p, plain) for p in getattr(select, "expressions", ())):
                raise NoSkeletonError("a column of a UNION has no name")
        left, right = self.query(node.this), self.query(node.expression)
        names = [name for name, _ in left[0].outputs]
        renamed = [_renamed(way, names) for way in right]
        return left + renamed

    def _select(self, node: exp.Select) -> list[Skeleton]:
        _only(node, _SELECT_PARTS)
        group = node.args.get("group")
        if group and set(_given(group)) - {"expressions", "all"}:
            raise NoSkeletonError("it groups in several ways at once")
        if group and any(group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets)):
            raise NoSkeletonError("it groups in several ways at once")
        clause, joins = node.args.get("from_"), node.args.get("joins") or []
        if clause is None:
            raise NoSkeletonError("it holds a SELECT without FROM")
        sources = {id(clause), *map(id, joins), id(node.args.get("with_"))}
        for part in node.iter_expressions():
            if id(part) not in sources and part.find(exp.Query):
                raise NoSkeletonError("it holds a subquery outside FROM and JOIN")
        alias, ways = self._relation(clause.this)
        scopes = [Scope.of(alias, way) for way in ways]
        for join in joins:
            condition = join.args.get("on")
            if condition is not None and condition.find(exp.Query):
                raise NoSkeletonError("it holds a subquery outside FROM and JOIN")
            if join.method:
                raise NoSkeletonError(f"it holds a {join.method} JOIN")
            alias, ways = self._relation(join.this)
            scopes = [scope.joined(join, alias, way) for scope in scopes for way in ways]
        where = node.args.get("where")
        return [_finished(node, scope.where(where.this if where else None)) for scope in scopes]

    def _relation(self, node: exp.Expr) -> tuple[str, list[Skeleton]]:
        """The name of what stands behind FROM or JOIN, and its ways."""
        if isinstance(node, exp.Subquery):
            if not isinstance(node.this, exp.Query):
                raise NoSkeletonError("it holds a JOIN in brackets")
            return node.alias.lower(), _with_aliases(node, self.query(node))
        if not isinstance(node, exp.Table) or isinstance(node.this, exp.Func):
            raise NoSkeletonError("it reads from a function")
        _only(node, _TABLE_PARTS)
        cte = cte_of(node)
        if cte is not None:
            holder = cte.parent
            if isinstance(holder, exp.With) and holder.recursive:
                raise NoSkeletonError("it holds WITH RECURSIVE")
            ways = _with_aliases(cte, self.query(cte.this))
        else:
            self._uses += 1
            name = table_name(node).lower()
            use = Use(self._uses, name, self._mentions[id(node)])
            columns = tuple((c, Place(use.number, c)) for c in self._columns[name])
            ways = [Skeleton((use,), (), columns)]
        return node.alias_or_name.lower(), _with_aliases(node, ways)


def _finished(node: exp.Select, scope: Scope) -> Skeleton:
    """What a SELECT makes of its relations.

    Behind GROUP BY a plain column is a grouping column, or Spark would refuse it. With window
    functions a row depends on all rows of its partitions, so only their columns are sure.
    """
    outputs = tuple(_outputs(node, scope))
    windows = [w for w in node.find_all(exp.Window) if w.find_ancestor(exp.Select) is node]
    named = {w.name.lower(): w for w in node.args.get("windows") or ()}
    for window in windows:
        if window.arg_key == "windows":
            continue
        meant = named.get(window.alias.lower(), window)
        by = {scope.place(column) for column in meant.args.get("partition_by") or ()}
        outputs = tuple((name, place if place in by else None) for name, place in outputs)
    return Skeleton(scope.uses, scope.edges, outputs)


def _outputs(node: exp.Select, scope: Scope) -> Iterator[tuple[str, Place | None]]:
    for projection in node.expressions:
        star = projection.this if isinstance(projection, exp.Column) else projection
        if isinstance(star, exp.Star):
            if set(_given(star)) - {"except_"}:
                raise NoSkeletonError("it holds * with REPLACE or RENAME")
            hidden = {column.name.lower() for column in star.args.get("except_") or ()}
            qualifier = projection.table.lower() if isinstance(projection, exp.Column) else ""
            columns = scope.columns(qualifier)
            if columns is None:
                raise NoSkeletonError(f"it holds {qualifier}.*, which is not a table's")
            yield from ((name, place) for name, place in columns if name not in hidden)
        elif isinstance(projection, exp.Aliases):
            yield from ((alias.name.lower(), None) for alias in projection.aliases)
        else:
            yield projection.alias_or_name.lower(), scope.place(projection.unalias())


def _with_aliases(node: exp.Expr, ways: list[Skeleton]) -> list[Skeleton]:
    """The ways with their columns renamed, as by `AS t(a, b)`."""
    alias = node.args.get("alias")
    names = [column.name.lower() for column in alias.args.get("columns") or ()] if alias else []
    return [_renamed(way, names) for way in ways] if names else ways


def _renamed(way: Skeleton, names: Sequence[str]) -> Skeleton:
    if len(names) != len(way.outputs):
        raise NoSkeletonError("its columns cannot be counted")
    outputs = tuple((n, place) for n, (_, place) in zip(names, way.outputs, strict=True))
    return replace(way, outputs=outputs)


def _given(node: exp.Expr) -> Mapping[str, object]:
    return {part: value for part, value in node.args.items() if value}


def _only(node: exp.Expr, known: frozenset[str]) -> None:
    for part in _given(node):
        if part not in known:
            raise NoSkeletonError(f"it holds {_WORDS.get(part, part.upper().strip('_'))}")
