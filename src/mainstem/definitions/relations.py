"""Which names behind FROM mean streams and tables, and putting other names there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from mainstem.definitions.dialect import Parsed, parse_query
from mainstem.definitions.lexer import Source


def table_name(table: exp.Table) -> str:
    """The dotted name as one string."""
    return ".".join(part.name for part in table.parts)


def relations(tree: exp.Expr) -> Iterator[exp.Table]:
    """All mentions of streams and tables: behind FROM, and not the name of a WITH query."""
    for table in tree.find_all(exp.Table, bfs=False):
        if not isinstance(table.this, exp.Func) and cte_of(table) is None:
            yield table


def cte_of(table: exp.Table) -> exp.CTE | None:
    """The WITH query that the name means at its place, if any."""
    if len(table.parts) != 1:
        return None
    wanted = table.name.lower()
    inside: exp.Expr = table
    holder = table.parent
    while holder is not None:
        clause = holder.args.get("with_")
        if isinstance(holder, exp.With):
            # Inside a WITH query only those before it are visible.
            before = holder.expressions[: holder.expressions.index(inside)]
        elif clause is not None and inside is not clause:
            before = clause.expressions
        else:
            before = []
        for cte in before:
            if isinstance(cte, exp.CTE) and cte.alias.lower() == wanted:
                return cte
        inside, holder = holder, holder.parent
    return None


def source_of(select: exp.Select) -> exp.Expr | None:
    """The query behind FROM, in brackets or by its WITH name; None: a stream, a table, nothing."""
    clause = select.args.get("from_")
    source = clause.this if clause else None
    if isinstance(source, exp.Table):
        return None if isinstance(source.this, exp.Func) else cte_of(source)
    return source


def replace_relations(text: str, replacement: Callable[[str], str]) -> str:
    """A checked query with each stream and table name replaced, all else as written.

    The engine puts its own view names there. `replacement` gets the name as written and returns
    an SQL identifier. A relation without an alias gets its own last name as alias, so that
    `orders.id` still works; `shop.orders.id` is shortened to that alias.
    """
    source = Source(text)
    statements = source.statements()
    parsed = parse_query(source, statements[0])
    edits: list[tuple[int, int, str]] = []
    names = set()
    for table in relations(parsed.tree):
        names.add(table_name(table).lower())
        start, end = _span(table.parts)
        alias = "" if table.alias else f" AS `{table.parts[-1].name.rpartition('.')[2]}`"
        edits.append((start, end, replacement(table_name(table)) + alias))
    for column in parsed.tree.find_all(exp.Column):
        parts = column.parts
        if len(parts) > 2 and f"{parts[0].name}.{parts[1].name}".lower() in names:
            start, end = _span(parts[:2])
            edits.append((start, end, f"`{parts[1].name}`"))
    return apply_edits(parsed, edits)


def narrow_stars(text: str, hidden: Sequence[str], owners: Sequence[str]) -> str:
    """A checked query whose stars leave out `hidden` columns, which the relations `owners` have.

    Metadata columns can be named, but are not part of `*`.
    """
    having = {name.lower() for name in owners}
    source = Source(text)
    parsed = parse_query(source, source.statements()[0])
    edits: list[tuple[int, int, str]] = []
    for select in parsed.tree.find_all(exp.Select):
        clause = select.args.get("from_")
        parts = [clause.this] if clause else []
        parts += [join.this for join in select.args.get("joins") or ()]
        streams = [
            part.alias_or_name
            for part in parts
            if isinstance(part, exp.Table)
            and not isinstance(part.this, exp.Func)
            and cte_of(part) is None
            and table_name(part).lower() in having
        ]
        for projection in select.expressions:
            star = projection.this if isinstance(projection, exp.Column) else projection
            if not isinstance(star, exp.Star):
                continue
            qualifier = projection.table if isinstance(projection, exp.Column) else ""
            of = [name for name in streams if qualifier.lower() in ("", name.lower())]
            if not of:
                continue
            named = hidden if len(of) == 1 else [f"`{name}`.{c}" for name in of for c in hidden]
            names = ", ".join(named)
            behind = star.meta["end"] + 1
            if star.args.get("except_"):
                opening = text.index("(", behind) + 1
                edits.append((opening, opening, f"{names}, "))
            else:
                edits.append((behind, behind, f" EXCEPT ({names})"))
    return apply_edits(parsed, edits)


def apply_edits(parsed: Parsed, edits: list[tuple[int, int, str]]) -> str:
    """The text with the spans `start..end` (within it) replaced."""
    text = parsed.text
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _span(parts: list[exp.Expr]) -> tuple[int, int]:
    return parts[0].meta["start"], parts[-1].meta["end"] + 1
