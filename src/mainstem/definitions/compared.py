"""Which columns a condition of PostgreSQL compares with a value: those that an index helps."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mainstem.definitions.model import Definition

_RANGES = (exp.GT, exp.GTE, exp.LT, exp.LTE)


def compared(condition: str, definition: Definition) -> tuple[str, ...]:
    """The columns that a condition of a plan compares with a value: equal ones, then one range."""
    try:
        tree = sqlglot.parse_one(condition, dialect="postgres")
    except SqlglotError:
        return ()
    equal: list[str] = []
    ranges: list[str] = []
    for part in tree.unnest().flatten() if isinstance(tree.unnest(), exp.And) else [tree]:
        node = part.unnest()
        column = _column(node, definition)
        if column is not None:
            (ranges if isinstance(node, _RANGES) else equal).append(column)
    return tuple(dict.fromkeys([*equal, *ranges[:1]]))


def _column(node: exp.Expr, definition: Definition) -> str | None:
    if not isinstance(node, (exp.EQ, *_RANGES)):
        return None
    left, right = node.this.unnest(), node.expression
    while isinstance(left, exp.Cast):
        left = left.this.unnest()
    if not isinstance(left, exp.Column) or right.find(exp.Column):
        return None
    return next((c.name for c in definition.columns if c.name == left.name), None)
