"""Filters over an aggregate (HAVING, WHERE above it) and DISTINCT, as a stream can run them.

Spark writes a row of an aggregate each time it changes, and never takes one back: a filter would
leave the last row that matched in the table for ever. So the filter's condition becomes a hidden
column, and a row that does not meet it is written as a delete of its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import exp

from mainstem.definitions.asked import Asked
from mainstem.definitions.dialect import Parsed
from mainstem.definitions.model import Definition, Query
from mainstem.definitions.query import aggregates, is_aggregate, reparse
from mainstem.definitions.relations import apply_edits, source_of
from mainstem.vocabulary import HIDDEN_PREFIX

_SET_WORDS = ("UNION", "EXCEPT", "INTERSECT", "MINUS")


@dataclass(frozen=True, slots=True)
class Filter:
    """A select between the aggregate and the result, and its filter, if it has one."""

    select: exp.Select
    clause: exp.Expr | None
    word: str


def check_filters(asked: Asked, inputs: Sequence[Definition]) -> None:
    """Refuse a name in HAVING that means an input's column in one place, an alias in the other."""
    columns = {c.name.lower() for source in inputs for c in source.columns}
    for step in _steps(asked.parsed):
        if step.clause is None or step.word != "HAVING":
            continue
        aliases = {
            p.alias.lower()
            for p in step.select.expressions
            if isinstance(p, exp.Alias) and p.alias.lower() != p.this.name.lower()
        }
        for column in step.clause.find_all(exp.Column):
            name = column.name.lower()
            if len(column.parts) == 1 and name in aliases & columns and not _inside(asked, column):
                raise asked.refusal(
                    asked.parsed.place(column),
                    f'"{column.name}", which is an input column and another column of the result,',
                    "Give the column of the result another name with AS.",
                    "HAVING",
                )


def without_filters(query: Query) -> Query:
    """The query of a changing aggregate, its filters made hidden columns of the result."""
    parsed, text = reparse(query), query.text
    edits: list[tuple[int, int, str]] = []
    carried: list[str] = []
    for step in reversed(_steps(parsed)):
        star = any(projection.is_star for projection in step.select.expressions)
        added = [] if star else list(carried)
        if step.clause is not None:
            start, end = _span(parsed, step)
            name = f"{HIDDEN_PREFIX}kept_{len(carried)}"
            condition = text[start + len(step.word) : end].strip()
            added.append(f"({condition}) AS {name}")
            carried.append(name)
            edits.append((start, end, ""))
        if added:
            at = parsed.clause(step.select.args["from_"], "FROM")
            edits.append((at, at, "".join(f", {part}" for part in added) + " "))
    return replace(query, text=apply_edits(parsed, edits))


def without_distinct(query: Query) -> Query:
    """The query without the DISTINCT behind its SELECT."""
    parsed = reparse(query)
    depth = 0
    for token, after in pairwise(parsed.tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.upper == "SELECT":  # WITH queries stand in brackets
            return replace(query, text=apply_edits(parsed, [(after.start, after.end, "")]))
    return query


def _steps(parsed: Parsed) -> list[Filter]:
    """The selects from the result down to the aggregate; none when there is no aggregate."""
    found: list[Filter] = []
    node: exp.Expr | None = parsed.tree
    while node is not None:
        while isinstance(node, (exp.Subquery, exp.CTE)):
            node = node.this
        if not isinstance(node, exp.Select):
            return []
        if aggregates(parsed, node):
            return [*found, Filter(node, node.args.get("having"), "HAVING")]
        found.append(Filter(node, node.args.get("where"), "WHERE"))
        node = source_of(node)
    return []


def _span(parsed: Parsed, step: Filter) -> tuple[int, int]:
    """From the clause's keyword to the end of its select: nothing that is allowed follows it."""
    assert step.clause is not None
    start = end = parsed.clause(step.clause, step.word)
    depth = 0
    for token in parsed.tokens:
        if token.start < start:
            continue
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0 or (depth == 0 and token.upper in _SET_WORDS):
            break
        end = token.end
    return start, end


def _inside(asked: Asked, node: exp.Expr) -> bool:
    """True inside the brackets of an aggregate function."""
    call = node.find_ancestor(exp.Func)
    while call is not None:
        if is_aggregate(asked.parsed, call):
            return True
        call = call.find_ancestor(exp.Func)
    return False
