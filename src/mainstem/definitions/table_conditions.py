"""The condition of a table's rule in PostgreSQL's words.

A table's records are read by flows and, for the served rows, by PostgreSQL. Both have to come to
the same result for every record, so a table's rule is made of what is computed alike by both:
columns, constants, comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL and length(). None of it
can fail for a record, and NULL means the same to both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sqlglot import exp

from mainstem.definitions.model import Definition, Rule
from mainstem.definitions.query import reparse
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_UNDERSTOOD = {"this", "expression", "expressions", "low", "high", "to", "is_string"}
"""Arguments of the parser's nodes; a node with others would mean more than is written here."""
_NUMBER = re.compile(r"\d+(\.\d+)?|\.\d+")
_TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")


class _Kind(StrEnum):
    """What can be compared with what."""

    NUMBER = "numeric"
    TEXT = "text"
    TRUTH = "boolean"
    DATE = "date"
    TIME = "timestamptz"
    LOCAL_TIME = "timestamp"
    OTHER = ""


_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "float", "double"), _Kind.NUMBER),
    "string": _Kind.TEXT,
    "boolean": _Kind.TRUTH,
    "date": _Kind.DATE,
    "timestamp": _Kind.TIME,
    "timestamp_ntz": _Kind.LOCAL_TIME,
}


class _Operand(NamedTuple):
    sql: str
    kind: _Kind
    constant: str | None = None
    """The text of a constant, which may be taken for a time."""


class _Refused(ValueError):
    """What has no place in the rule of a table."""


def postgres_condition(rule: Rule, columns: Sequence[Column]) -> str:
    """The rule's condition over a row with these columns; NOT_SUPPORTED if it has none."""
    [condition] = reparse(rule.condition).tree.expressions
    try:
        return _Writer(columns).condition(condition)
    except _Refused as refused:
        raise MainstemError(
            "NOT_SUPPORTED",
            location=rule.location,
            what=str(refused),
            where="a rule of a table",
            advice="PostgreSQL judges it as well as Spark: use columns, constants, comparisons, "
            "AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL and length(). For more, declare a stream "
            "with the rule, and make the table of it: CREATE TABLE ... WITH (key = '...') AS "
            "SELECT * FROM the stream.",
        ) from None


def check_table_rules(definition: Definition) -> None:
    """Refuse what PostgreSQL could not judge; whether all columns are there is asked of Spark."""
    known = {column.name.lower() for column in definition.columns}
    for rule in definition.rules:
        if {name.lower() for name in rule.condition.columns_read} <= known:
            postgres_condition(rule, definition.columns)


class _Writer:
    """Writes the parts of one condition."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = {column.name.lower(): column for column in columns}

    def condition(self, node: exp.Expr) -> str:
        """What is true, false or NULL."""
        if isinstance(node, exp.Like):
            return self._like(node)
        _check_understood(node)
        match node:
            case exp.Paren():
                return self.condition(node.this)
            case exp.And() | exp.Or():
                word = "AND" if isinstance(node, exp.And) else "OR"
                return f"({self.condition(node.left)} {word} {self.condition(node.right)})"
            case exp.Not():
                return f"(NOT {self.condition(node.this)})"
            case exp.Is():
                return self._is(node)
            case exp.In() if node.expressions:
                tests = [self._compared(node.this, "=", item) for item in node.expressions]
                return f"({' OR '.join(tests)})"
            case exp.Between():
                low = self._compared(node.this, ">=", node.args["low"])
                return f"({low} AND {self._compared(node.this, '<=', node.args['high'])})"
            case _ if type(node) in _COMPARISONS:
                return self._compared(node.this, _COMPARISONS[type(node)], node.expression)
        operand = self._operand(node)
        if operand.kind is not _Kind.TRUTH:
            raise _Refused(_named(node))
        return operand.sql

    def _is(self, node: exp.Is) -> str:
        if isinstance(node.expression, exp.Null):
            return f"({self._operand(node.this).sql} IS NULL)"
        if isinstance(node.expression, exp.Boolean):
            word = "TRUE" if node.expression.this else "FALSE"
            return f"({self.condition(node.this)} IS {word})"
        raise _Refused(_named(node))

    def _like(self, node: exp.Like) -> str:
        _check_understood(node, "negate")
        text, pattern = self._operand(node.this), self._operand(node.expression)
        if text.kind is not _Kind.TEXT or pattern.constant is None or "\\" in pattern.constant:
            raise _Refused(_named(node))
        return f"({text.sql} {'NOT ' if node.args.get('negate') else ''}LIKE {pattern.sql})"

    def _compared(self, left: exp.Expr, sign: str, right: exp.Expr) -> str:
        one, other = self._operand(left), self._operand(right)
        one, other = _as_time(one, other.kind), _as_time(other, one.kind)
        if one.kind is not other.kind or one.kind is _Kind.OTHER:
            raise _Refused(f"{_named(left)} beside {_named(right)}")
        return f"({one.sql} {sign} {other.sql})"

    def _operand(self, node: exp.Expr) -> _Operand:
        _check_understood(node)
        match node:
            case exp.Paren():
                return self._operand(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Boolean():
                return _Operand("TRUE" if node.this else "FALSE", _Kind.TRUTH)
            case exp.Literal() if node.is_string:
                return _Operand(_literal(node.name), _Kind.TEXT, node.name)
            case exp.Literal() if _NUMBER.fullmatch(node.name):
                return _Operand(node.name, _Kind.NUMBER)
            case exp.Neg(this=exp.Literal()) if _NUMBER.fullmatch(node.name):
                return _Operand(f"(-{node.name})", _Kind.NUMBER)
            case exp.Length():
                text = self._operand(node.this)
                if text.kind is _Kind.TEXT:
                    return _Operand(f"length({text.sql})", _Kind.NUMBER)
            case exp.Cast(this=exp.Literal()) if node.to.this in _TYPED:
                return _Operand(_literal(node.name), _Kind.TEXT, node.name)
        raise _Refused(_named(node))

    def _column(self, node: exp.Column) -> _Operand:
        column = self._columns[node.name.lower()]
        name = '"' + column.name.replace('"', '""') + '"'
        decimal = column.type.startswith("decimal")
        kind = _Kind.NUMBER if decimal else _KINDS.get(column.type, _Kind.OTHER)
        # Spark compares texts byte by byte
        return _Operand(f'{name} COLLATE "C"' if kind is _Kind.TEXT else name, kind)


_TYPED = (
    exp.DataType.Type.DATE,
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPLTZ,
)
"""Of constants with a type before them: they stand for what they are compared with."""


def _check_understood(node: exp.Expr, *more: str) -> None:
    if {name for name, value in node.args.items() if value} - _UNDERSTOOD.union(more):
        raise _Refused(_named(node))


def _as_time(operand: _Operand, kind: _Kind) -> _Operand:
    """A constant that is compared with a time, as a time."""
    if operand.constant is None or kind not in (_Kind.DATE, _Kind.TIME, _Kind.LOCAL_TIME):
        return operand
    text = operand.constant
    if not _TIME.fullmatch(text) or (kind is _Kind.DATE and len(text) > len("2026-01-01")):
        raise _Refused(f"{operand.sql} as a {kind}")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _Refused(f"{operand.sql} as a {kind}") from None
    if kind is _Kind.DATE:
        return _Operand(f"DATE '{moment.date()}'", kind)
    zone = "+00" if kind is _Kind.TIME else ""
    return _Operand(f"{kind} '{moment.isoformat(' ')}{zone}'", kind)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _named(node: exp.Expr) -> str:
    return node.sql(dialect="spark", comments=False)
