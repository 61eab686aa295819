"""Which columns hold personal data: those that are tagged PII, and plain copies of them.

A copy is a column that a query passes on as it is: by name, under another name, by `*`, in
brackets or cast, through subqueries, WITH and UNION. What a function or an expression makes of a
column is not followed, nor is what Python makes of it, nor a stream of a table's changes: tag the
column of a declared object that such data goes to, or leave the column out.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, build_scope

from mainstem.definitions.model import Definition
from mainstem.definitions.query import reparse
from mainstem.definitions.relations import table_name

Personal = Mapping[str, str]
"""Lower-case name of a column -> the tagged column that it is a copy of, as `stream.column`."""

_Outputs = list[tuple[str, str | None]]
"""Columns in their order, each with where it is copied from; None: it is no personal data."""


def personal_columns(
    definition: Definition, inputs: Mapping[str, tuple[Definition, Personal]]
) -> Personal:
    """The personal data of an object; `inputs` is what it reads, by lower-case name."""
    if definition.query is None:
        return {name.lower(): f"{definition.name}.{name}" for name in definition.pii}
    if definition.query.python is not None or not any(found for _, found in inputs.values()):
        return {}
    try:
        scope = build_scope(reparse(definition.query).tree)
    except SqlglotError:
        return {}
    outputs = [] if scope is None else _Reading(inputs).outputs(scope)
    known = {column.name.lower() for column in definition.columns}
    return {name: origin for name, origin in outputs if origin is not None and name in known}


class _Reading:
    def __init__(self, inputs: Mapping[str, tuple[Definition, Personal]]) -> None:
        self._inputs = inputs

    def outputs(self, scope: Scope) -> _Outputs:
        """The columns that a query gives."""
        if scope.set_operation_scopes:
            sides = [self.outputs(side) for side in scope.set_operation_scopes]
            return [
                (names[0][0], next((origin for _, origin in names if origin is not None), None))
                for names in zip(*sides, strict=False)
            ]
        sources = {
            name.lower(): self._columns(source)
            for name, (_, source) in scope.selected_sources.items()
        }
        found: _Outputs = []
        for part in scope.expression.expressions:
            star = part.this if isinstance(part, exp.Column) else part
            if isinstance(star, exp.Star):
                left_out = {e.name.lower() for e in star.args.get("except_") or ()}
                of = part.table.lower() if isinstance(part, exp.Column) else ""
                for name, columns in sources.items():
                    if of in ("", name):
                        found += [pair for pair in columns if pair[0] not in left_out]
            else:
                found.append((part.alias_or_name.lower(), _copied(part.unalias(), sources)))
        return found

    def _columns(self, source: exp.Expr | Scope) -> _Outputs:
        if isinstance(source, Scope):
            return self.outputs(source)
        known = (
            self._inputs.get(table_name(source).lower()) if isinstance(source, exp.Table) else None
        )
        if known is None:
            return []
        definition, personal = known
        return [(c.name.lower(), personal.get(c.name.lower())) for c in definition.columns]


def _copied(node: exp.Expr, sources: Mapping[str, _Outputs]) -> str | None:
    """Which tagged column an expression is a plain copy of, if any."""
    while isinstance(node, (exp.Paren, exp.Cast)):
        node = node.this
    if not isinstance(node, exp.Column):
        return None
    names = [part.name.lower() for part in node.parts]
    qualified = len(names) > 1 and names[-2] in sources
    # a field of a personal struct is personal, too
    wanted = names[-1] if qualified else names[0]
    for name, columns in sources.items():
        if not qualified or name == names[-2]:
            for column, origin in columns:
                if column == wanted and origin is not None:
                    return origin
    return None
