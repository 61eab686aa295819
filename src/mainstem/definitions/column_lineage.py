"""Which columns of its inputs each column of a query is made of, and of which it is a plain copy.

A copy is a column that is passed on as it is: by name, under another name, by `*`, in brackets or
cast, or a field of it; through subqueries, WITH and UNION. Whatever else a column's expression
mentions, it is made of. Columns that only decide which rows there are (WHERE, ON, GROUP BY) are no
part of a column; a time window is made of the time that it is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, build_scope

from mainstem.definitions.model import Definition, Kind
from mainstem.definitions.query import reparse
from mainstem.definitions.relations import table_name
from mainstem.vocabulary import METADATA_COLUMNS


class Place(NamedTuple):
    """A column of a stream or table, in lower case."""

    object: str
    column: str


Origins = Mapping[Place, bool]
"""Columns of inputs -> True when the column may be a plain copy of that one."""

_Outputs = list[tuple[str, Origins]]
"""Columns in their order."""


def column_origins(
    definition: Definition, inputs: Mapping[str, Definition]
) -> Mapping[str, Origins] | None:
    """The columns of an object by lower-case name; None: no query tells what they are made of.

    `inputs` is what it reads, by lower-case name.
    """
    query = definition.query
    if query is None or query.python is not None:
        return None
    try:
        scope = build_scope(reparse(query).tree)
    except SqlglotError:
        return None
    if scope is None:
        return None
    found: dict[str, Origins] = {}
    for name, origins in _Reading(inputs).outputs(scope):
        found[name] = _merged((found.get(name, {}), origins))
    return found


class _Reading:
    def __init__(self, inputs: Mapping[str, Definition]) -> None:
        self._inputs = inputs

    def outputs(self, scope: Scope) -> _Outputs:
        """The columns that a query gives."""
        if scope.set_operation_scopes:
            sides = [self.outputs(side) for side in scope.set_operation_scopes]
            return [
                (columns[0][0], _merged(origins for _, origins in columns))
                for columns in zip(*sides, strict=False)
            ]
        return _Select(self, scope).outputs()

    def columns(self, node: exp.Expr, source: exp.Expr | Scope) -> _Outputs:
        """The columns of what stands behind FROM, under the names that it has there."""
        if isinstance(source, Scope):
            found = self.outputs(source)
            found = _renamed(found, source.expression.parent)
            return _renamed(found, node) if isinstance(node, exp.Table) else found
        known = self._known(source)
        if known is None:
            return []
        name = known.name.lower()
        columns = [column.name.lower() for column in known.columns]
        return _renamed([(column, {Place(name, column): True}) for column in columns], node)

    def metadata(self, source: exp.Expr | Scope) -> _Outputs:
        """Columns that `*` does not take."""
        known = None if isinstance(source, Scope) else self._known(source)
        if known is None or known.kind is not Kind.STREAM:
            return []
        return [(c, {Place(known.name.lower(), c): True}) for c in METADATA_COLUMNS]

    def _known(self, source: exp.Expr) -> Definition | None:
        if not isinstance(source, exp.Table):
            return None
        return self._inputs.get(table_name(source).lower())


class _Select:
    """One SELECT and what it reads."""

    def __init__(self, reading: _Reading, scope: Scope) -> None:
        self._reading = reading
        self._scope = scope
        self._select = scope.expression
        self._sources: dict[str, _Outputs] = {}
        self._hidden: dict[str, _Outputs] = {}
        self._found: _Outputs = []
        for name, (node, source) in scope.selected_sources.items():
            if isinstance(node, exp.Lateral):
                made = self._mentioned(node.this)
                columns = [(c.lower(), made) for c in node.alias_column_names]
            else:
                columns = reading.columns(node, source)
                self._hidden[name.lower()] = reading.metadata(source)
            self._sources[name.lower()] = columns

    def outputs(self) -> _Outputs:
        for part in self._select.expressions:
            star = part.this if isinstance(part, exp.Column) else part
            if isinstance(star, exp.Star):
                left_out = {e.name.lower() for e in star.args.get("except_") or ()}
                of = part.table.lower() if isinstance(part, exp.Column) else ""
                self._found += [c for c in self._all(of) if c[0] not in left_out]
            else:
                self._found.append((part.alias_or_name.lower(), self._made(part.unalias())))
        return self._found

    def _all(self, of: str) -> _Outputs:
        """The columns that `*` or `of.*` stands for."""
        if of:
            return self._sources.get(of, [])
        joins: list[exp.Join] = self._select.args.get("joins") or []
        shared = {name.name.lower() for join in joins for name in join.args.get("using") or ()}
        only_asked = {j.alias_or_name.lower() for j in joins if j.kind in ("SEMI", "ANTI")}
        found: _Outputs = []
        for name, columns in self._sources.items():
            for column, origins in columns if name not in only_asked else ():
                place = next((n for n, (c, _) in enumerate(found) if c == column), None)
                if column in shared and place is not None:
                    found[place] = (column, _merged((found[place][1], origins)))
                else:
                    found.append((column, origins))
        return found

    def _made(self, node: exp.Expr) -> Origins:
        while isinstance(node, (exp.Paren, exp.Cast, exp.Dot)):
            node = node.this
        return self._named(node) if isinstance(node, exp.Column) else self._mentioned(node)

    def _mentioned(self, node: exp.Expr) -> Origins:
        """All that an expression is made of; it is a copy of nothing."""
        found = [self._named(c) for c in node.find_all(exp.Column) if self._is_here(c)]
        for star in node.find_all(exp.Star):
            if not isinstance(star.parent, (exp.Count, exp.Column)) and self._is_here(star):
                found += [origins for _, origins in self._all("")]
        for inner in self._scope.subquery_scopes:
            if any(part is node for part in _around(inner.expression)):
                found += [origins for _, origins in self._reading.outputs(inner)]
        return dict.fromkeys(_merged(found), False)

    def _is_here(self, node: exp.Expr) -> bool:
        """False inside of a subquery, whose names are its own."""
        return node.find_ancestor(exp.Select) is self._select

    def _named(self, column: exp.Column) -> Origins:
        """What a name means: a column of what is read, a window, or what was selected before."""
        names = [part.name.lower() for part in column.parts]
        if isinstance(column.this, exp.Star):
            return _merged(origins for _, origins in self._sources.get(column.table.lower(), []))
        for at, name in enumerate(names[:-1]):
            if name in self._sources:
                found = self._column(names[at + 1], (name,))
                if found is not None:
                    return found
        # a field of a column is a copy of it, too
        found = self._column(names[0], self._sources)
        if found is not None:
            return found
        for window in self._windows(names[0]):
            return self._mentioned(window)
        return next((dict(o) for c, o in reversed(self._found) if c == names[0]), {})

    def _column(self, name: str, sources: Iterable[str]) -> Origins | None:
        found = [
            origins
            for source in sources
            for column, origins in (*self._sources[source], *self._hidden.get(source, ()))
            if column == name
        ]
        return _merged(found) if found else None

    def _windows(self, name: str) -> Iterator[exp.Expr]:
        """The call in GROUP BY that a column `window` stands for."""
        group = self._select.args.get("group")
        for call in group.expressions if group is not None else ():
            if isinstance(call, exp.Func) and name in (call.name.lower(), call.sql_name().lower()):
                yield call


def _around(node: exp.Expr) -> Iterator[exp.Expr]:
    inside: exp.Expr | None = node
    while inside is not None:
        yield inside
        inside = inside.parent


def _renamed(columns: _Outputs, node: exp.Expr | None) -> _Outputs:
    """Under the names of `AS t (a, b)`, if there are some."""
    names = node.alias_column_names if isinstance(node, (exp.DerivedTable, exp.Table)) else []
    if not names:
        return columns
    return [(name.lower(), made) for name, (_, made) in zip(names, columns, strict=False)]


def _merged(parts: Iterable[Origins]) -> Origins:
    found: dict[Place, bool] = {}
    for origins in parts:
        for place, copied in origins.items():
            found[place] = found.get(place, False) or copied
    return found
