"""A query whose calls of Python functions say which record they are for."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from mainstem.definitions.calls import closing_bracket, own_calls
from mainstem.definitions.dialect import Parsed
from mainstem.definitions.model import Query
from mainstem.definitions.query import reparse
from mainstem.definitions.relations import apply_edits, relations

PLACE = ("_partition", "_offset")


def traced(query: Query) -> Query | None:
    """The query with the record's partition and offset behind the arguments of every call.

    None when it calls no function, or when a call does not stand for one record: only a SELECT
    that reads its stream directly, without aggregates, can tell.
    """
    if not query.functions:
        return None
    parsed = reparse(query)
    if not _direct(parsed, query):
        return None
    edits = []
    for token, _ in own_calls(parsed):
        end = closing_bracket(parsed, token).start - parsed.start
        edits.append((end, end, ", " + ", ".join(PLACE)))
    return replace(
        query,
        text=apply_edits(parsed, edits),
        columns_read=tuple(sorted({*query.columns_read, *PLACE})),
    )


def _direct(parsed: Parsed, query: Query) -> bool:
    tree = parsed.tree
    return (
        isinstance(tree, exp.Select)
        and not query.aggregates
        and len(list(tree.find_all(exp.Select))) == 1
        and len(list(relations(tree))) == 1
    )
