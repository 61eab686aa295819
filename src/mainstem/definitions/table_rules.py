"""Which queries can keep a table up to date over other tables: any whose answer is one answer."""

from __future__ import annotations

from sqlglot import exp

from mainstem.definitions.asked import Asked
from mainstem.definitions.model import Definition, Kind


def check_table_flow(asked: Asked, definition: Definition) -> None:
    """Refuse a query over tables that makes no table, or whose answer is left to chance."""
    parsed = asked.parsed
    if definition.kind is Kind.STREAM:
        raise asked.refusal(
            parsed.start,
            "a stream over tables",
            "Make it a TABLE; subscribe to its changes with SELECT ... EMIT CHANGES.",
            "CREATE STREAM",
        )
    for limit in parsed.tree.find_all(exp.Limit, exp.Offset):
        if limit.parent is not None and not limit.parent.args.get("order"):
            raise asked.refusal(
                parsed.clause(limit, "LIMIT", "OFFSET"),
                "LIMIT without ORDER BY",
                "Add ORDER BY, or any rows may be the chosen ones.",
            )
