"""Which queries can run over tables: those whose answer is one answer, or change by change."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from mainstem.definitions.asked import Asked
from mainstem.definitions.functions import functions
from mainstem.definitions.model import Definition, Kind, Query
from mainstem.definitions.query import aggregates, reparse
from mainstem.definitions.relations import apply_edits, relations

_ROW_BY_ROW = frozenset({"kind", "expressions", "from_", "where", "hint"})


def check_table_flow(asked: Asked, definition: Definition) -> None:
    """Refuse a query over tables whose answer is left to chance."""
    parsed = asked.parsed
    if definition.kind is Kind.STREAM:
        _check_changes(asked, definition)
    for limit in parsed.tree.find_all(exp.Limit, exp.Offset):
        if limit.parent is not None and not limit.parent.args.get("order"):
            raise asked.refusal(
                parsed.clause(limit, "LIMIT", "OFFSET"),
                "LIMIT without ORDER BY",
                "Add ORDER BY, or any rows may be the chosen ones.",
            )


def marked(query: Query, column: str) -> Query:
    """The query of a stream of changes with one more column of its table behind the others."""
    parsed = reparse(query)
    at = parsed.clause(parsed.tree.args["from_"], "FROM")
    return replace(query, text=apply_edits(parsed, [(at, at, f", {column} ")]))


def _check_changes(asked: Asked, definition: Definition) -> None:
    """Refuse a stream of changes that does not follow one table, row by row."""
    parsed, tree = asked.parsed, asked.parsed.tree
    plain = (
        isinstance(tree, exp.Select)
        and not {part for part, value in tree.args.items() if value} - _ROW_BY_ROW
        and len(list(tree.find_all(exp.Select))) == len(list(relations(tree))) == 1
        and isinstance(tree.args["from_"].this, exp.Table)
        and not tree.find(exp.Window)
        and not aggregates(parsed, tree)
        and not any(_makes_rows(asked, projection) for projection in tree.expressions)
    )
    if not plain:
        raise asked.refusal(
            parsed.start,
            "more than SELECT ... FROM one table WHERE ...",
            "Make a TABLE of the query, and a STREAM of its changes: "
            "CREATE STREAM ... AS SELECT * FROM that_table.",
            "a stream of a table's changes",
        )
    if definition.key:
        raise asked.refusal(
            parsed.start,
            "a key",
            "Leave it out: a change has the key of the table's row.",
            "a stream of a table's changes",
        )


def _makes_rows(asked: Asked, projection: exp.Expr) -> bool:
    calls = projection.find_all(exp.Func)
    return any(asked.parsed.spelling(call).lower() in functions().generators for call in calls)
