"""The query that mends records in quarantine: one SELECT that makes a new value of each record."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from mainstem.definitions.dialect import Parsed
from mainstem.definitions.lexer import Source
from mainstem.definitions.model import Query
from mainstem.definitions.query import read_query

RELATION = "quarantine"
"""What stands behind FROM, if anything does."""
COLUMNS = ("key", "value", "cause", "_topic", "_partition", "_offset", "_timestamp")
"""The columns of that relation."""
_CLAUSES = frozenset({"expressions", "from_", "where"})
_ADVICE = "Write SELECT ... AS value [, ... AS key] [FROM quarantine [WHERE ...]]."


def read_fix(text: str) -> Query:
    """The query of a fix, checked like every query; `text` has FROM and begins with SELECT."""
    source = Source(text, "<sql>")
    statements = source.statements()
    if len(statements) != 1:
        place = statements[1][0].start if statements else 0
        raise source.error("ONE_STATEMENT_EXPECTED", place, count=len(statements))
    query, parsed = read_query(source, statements[0], definition=False)
    tree = parsed.tree
    if not isinstance(tree, exp.Select) or parsed.tokens[0].upper != "SELECT":
        raise _refused(parsed, parsed.start, "anything but one SELECT")
    for clause, value in tree.args.items():
        if value and clause not in _CLAUSES:
            raise _refused(parsed, parsed.start, clause.strip("_").upper())
    if query.aggregates or len(list(tree.find_all(exp.Query))) > 1:
        raise _refused(parsed, parsed.start, "an aggregate or a subquery")
    if not query.inputs:
        if tree.args.get("where"):
            raise _refused(parsed, parsed.start, "WHERE without FROM")
        return replace(query, text=f"{query.text}\nFROM {RELATION}")
    if [name.lower() for name in query.inputs] != [RELATION]:
        raise _refused(parsed, parsed.start, f"FROM {', '.join(query.inputs)}")
    return query


def _refused(parsed: Parsed, place: int, what: str) -> Exception:
    return parsed.error(
        "NOT_SUPPORTED", place, what=what, where="a query that mends records", advice=_ADVICE
    )
