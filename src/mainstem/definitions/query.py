"""What a checked query says of itself: inputs, aggregation, grouping columns, columns read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sqlglot import exp

from mainstem.definitions.calls import called
from mainstem.definitions.dialect import Parsed, parse_query
from mainstem.definitions.functions import functions
from mainstem.definitions.grouping import COUNT_WINDOW, shape_of
from mainstem.definitions.guard import guard
from mainstem.definitions.lexer import Source, T, Token
from mainstem.definitions.model import Flavour, Query
from mainstem.definitions.relations import relations, source_of, table_name

ARRIVAL = ("_topic", "_partition", "_offset")
"""The order in which events are counted."""


def read_query(
    source: Source, tokens: Sequence[Token], *, definition: bool
) -> tuple[Query, Parsed]:
    """Parse, check and describe the query that the tokens make up."""
    parsed = parse_query(source, tokens)
    guard(parsed, definition=definition)
    query = Query(
        text=parsed.text,
        canonical=canonical(parsed),
        inputs=_inputs(parsed),
        location=source.location(parsed.start),
        aggregates=any(aggregates(parsed, s) for s in parsed.tree.find_all(exp.Select)),
        joins=any(map(joined, parsed.tree.find_all(exp.Select))),
        distinct=isinstance(parsed.tree, exp.Select) and bool(parsed.tree.args.get("distinct")),
        group_keys=tuple(out.name for out in shape_of(parsed).keys if out.name),
        columns_read=_columns_read(parsed),
        functions=called(parsed),
    )
    return query, parsed


def reparse(query: Query) -> Parsed:
    """The tree of a query that was read before."""
    source = Source(query.text, functions={f.name.lower(): f for f in query.functions})
    return parse_query(source, source.statements()[0])


def mentions(query: Query) -> tuple[str, ...]:
    """The streams and tables of a query in lower case, as often as it mentions them."""
    return tuple(table_name(table).lower() for table in relations(reparse(query).tree))


def canonical(parsed: Parsed) -> str:
    """The query without comments, layout and case of keywords.

    Only words that the parser took for names keep their case: it shows in the columns' names.
    """
    names = {
        parsed.start + node.meta["start"]
        for node in parsed.tree.find_all(exp.Identifier)
        if "start" in node.meta
    }
    return " ".join(token.text if token.start in names else token.upper for token in parsed.tokens)


def parameters(parsed: Parsed) -> tuple[str, ...]:
    """The parameters in the order of the text: `?`, or the name of `:name`."""
    named = {p.name for p in parsed.tree.find_all(exp.Placeholder) if p.name}
    found = []
    for index, token in enumerate(parsed.tokens):
        if token.kind is T.SYMBOL and token.text == "?":
            found.append("?")
        elif token.kind is T.SYMBOL and token.text == ":" and index + 1 < len(parsed.tokens):
            name = parsed.tokens[index + 1].text
            if name in named:
                found.append(name)
    return tuple(found)


def aggregates(parsed: Parsed, select: exp.Select) -> bool:
    """True when this SELECT itself groups or calls an aggregate function."""
    return bool(select.args.get("group")) or any(
        is_aggregate(parsed, node)
        for part in select.expressions
        for node in part.find_all(exp.Func, exp.Any)
        if node.find_ancestor(exp.Select) is select
    )


def joined(select: exp.Select) -> list[exp.Join]:
    """The joins of this SELECT that bring in another relation, and not only parts of a row."""
    return [j for j in select.args.get("joins") or () if not isinstance(j.this, exp.Lateral)]


def one_row(parsed: Parsed) -> bool:
    """True when the query, or what alone it reads, aggregates everything into one row."""
    node: exp.Expr | None = parsed.tree
    while node is not None:
        while isinstance(node, (exp.Subquery, exp.CTE)):
            node = node.this
        if not isinstance(node, exp.Select) or node.args.get("group"):
            return False
        if aggregates(parsed, node):
            return True
        node = source_of(node)
    return False


def is_aggregate(parsed: Parsed, node: exp.Expr) -> bool:
    """True for a call of an aggregate function that is not a ranking with OVER."""
    caller = _caller(node)
    if isinstance(caller, exp.Window):
        return False
    if isinstance(node, exp.Any):  # sqlglot knows it as an operator only: a LIKE ANY (...)
        return not isinstance(caller, (exp.Like, exp.ILike))
    spelled = parsed.spelling(node).lower()
    own = (parsed.source.functions or {}).get(spelled)
    if own is not None:
        return own.flavour is Flavour.AGGREGATE
    return spelled in functions().aggregates if spelled else isinstance(node, exp.AggFunc)


def count_windows(parsed: Parsed) -> Iterator[Token]:
    """The names in calls of `count_window`, which is ours and not Spark's."""
    for token, after in pairwise(parsed.tokens):
        named = token.kind in (T.WORD, T.QUOTED) and token.name.lower() == COUNT_WINDOW
        if named and after.text == "(":
            yield token


def _caller(node: exp.Expr) -> exp.Expr | None:
    """What stands around a call, apart from FILTER, WITHIN GROUP and IGNORE NULLS."""
    parent = node.parent
    while isinstance(parent, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        parent = parent.parent
    return parent


def _inputs(parsed: Parsed) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for table in sorted(relations(parsed.tree), key=parsed.place):
        name = table_name(table)
        found.setdefault(name.lower(), name)
    return tuple(found.values())


def _columns_read(parsed: Parsed) -> tuple[str, ...]:
    read = set()
    for column in parsed.tree.find_all(exp.Column):
        # `a.b` may be a column of a relation or a field of a column: both count.
        read |= {part.name.lower() for part in column.parts if not isinstance(part, exp.Star)}
    for join in parsed.tree.find_all(exp.Join):
        read |= {column.name.lower() for column in join.args.get("using") or ()}
    if any(count_windows(parsed)):
        read |= set(ARRIVAL)
    stars = parsed.tree.find_all(exp.Star)
    if any(not isinstance(star.parent, exp.Count) for star in stars):
        read.add("*")
    return tuple(sorted(read))
