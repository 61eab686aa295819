"""A query whose rows say which records they are made of.

Each row of an input has a column `ORIGIN`: an array with the place of its record. The query is
rewritten so that each of its own rows has that column, too:

- a row of a SELECT has the places of the rows that were joined to it;
- a group has those of all its rows; where only `max`, `min`, `max_by` and `min_by` are asked of it,
  those of the rows that decide them;
- the rows of both sides of UNION ALL have theirs.

DISTINCT and UNION at the top become rows that stand for the same result: each of them is enough.
All else is in the way, and is said in words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from mainstem.definitions.calls import closing_bracket
from mainstem.definitions.dialect import Parsed
from mainstem.definitions.lexer import T, Token
from mainstem.definitions.model import Query
from mainstem.definitions.query import aggregates, count_windows, is_aggregate, reparse
from mainstem.definitions.relations import apply_edits
from mainstem.vocabulary import HIDDEN_PREFIX

ORIGIN = HIDDEN_PREFIX + "origin"
_NONE = "array()"
_DECIDED = {"max": "max_by", "min": "min_by", "max_by": "max_by", "min_by": "min_by"}
"""Aggregates that one row decides, and what finds that row."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A query with the column `ORIGIN`."""

    query: Query
    exact: bool
    """True when no place can be left out: rows of records, or of a group that shows its count."""


class InTheWay(ValueError):
    """Why rows of a query cannot say what they are made of."""


def traced(query: Query, most: int) -> Traced:
    """The query, rewritten; of a group, so many places at most. Raises InTheWay."""
    if query.python is not None:
        raise InTheWay("it is a Python function")
    parsed = reparse(query)
    if any(count_windows(parsed)):
        raise InTheWay("it counts events")
    rewriting = _Rewriting(parsed, most)
    rewriting.node(parsed.tree, top=True)
    reached = rewriting.reached
    if any(select not in reached for select in map(id, parsed.tree.find_all(exp.Select))):
        raise InTheWay("it has a query inside a condition or a column")
    text = apply_edits(parsed, rewriting.edits)
    exact = not rewriting.groups or (rewriting.groups == 1 and _counts(parsed.tree))
    return Traced(replace(query, text=text), exact)


class _Rewriting:
    def __init__(self, parsed: Parsed, most: int) -> None:
        self._parsed = parsed
        self._most = most
        self.edits: list[tuple[int, int, str]] = []
        self.reached: set[int] = set()
        self.groups = 0

    def node(self, node: exp.Expr, *, top: bool) -> None:
        """Rewrites a query."""
        if isinstance(node, exp.Subquery):
            if node.args.get("joins") or node.args.get("laterals"):
                raise InTheWay("it joins in brackets")
            self.node(node.this, top=top)
        elif type(node) is exp.Union:
            self._with(node)
            if node.args.get("distinct"):
                self._union_all(node, top=top)
            self.node(node.left, top=top)
            self.node(node.right, top=top)
        elif isinstance(node, exp.SetOperation):
            raise InTheWay(f"it has {type(node).__name__.upper()}")
        elif isinstance(node, exp.Select):
            self._select(node, top=top)
        else:
            raise InTheWay("its form is not known")

    def _union_all(self, node: exp.Union, *, top: bool) -> None:
        if not top:
            raise InTheWay("it has UNION inside")
        at = self._parsed.clause(node.right, "UNION")
        tokens = self._parsed.tokens
        index = next(i for i, token in enumerate(tokens) if token.start == at)
        last = tokens[index + 1] if tokens[index + 1].upper == "DISTINCT" else tokens[index]
        self._edit(at, last.end, "UNION ALL")

    def _with(self, node: exp.Expr) -> None:
        clause = node.args.get("with_")
        for cte in clause.expressions if clause else ():
            _check_alias(cte)
            self.node(cte.this, top=False)

    def _select(self, select: exp.Select, *, top: bool) -> None:
        self.reached.add(id(select))
        self._with(select)
        if any(w.find_ancestor(exp.Select) is select for w in select.find_all(exp.Window)):
            raise InTheWay("it has a window function (OVER)")
        if select.args.get("distinct"):
            self._drop_distinct(select, top=top)
        clause = select.args.get("from_")
        if clause is None:
            raise InTheWay("it has a SELECT without FROM")
        names = self._sources(select)
        self._stars(select, names)
        joined = ", ".join(_one(name) for name in names)
        origin = ORIGIN if len(names) == 1 else f"concat({joined})"
        if aggregates(self._parsed, select):
            self.groups += 1
            origin = self._of_group(select, origin)
        at = self._parsed.clause(clause, "FROM")
        self._edit(at, at, f", {origin} AS {ORIGIN} ")

    def _sources(self, select: exp.Select) -> list[str]:
        """The names of what a SELECT reads; a single one may have none."""
        parts = [select.args["from_"].this]
        for join in select.args.get("joins") or ():
            if isinstance(join.this, exp.Lateral) or isinstance(join.this.this, exp.Func):
                continue
            if join.method.upper() == "NATURAL" or join.kind.upper() in ("SEMI", "ANTI"):
                raise InTheWay(f"it has a {join.method or join.kind} join")
            parts.append(join.this)
        names = []
        for part in parts:
            _check_alias(part)
            if isinstance(part, exp.Subquery):
                self.node(part, top=False)
            elif not isinstance(part, exp.Table) or isinstance(part.this, exp.Func):
                raise InTheWay("it reads a function")
            elif part.args.get("joins") or part.args.get("laterals"):
                raise InTheWay("it joins in brackets")
            name = part.alias_or_name.rpartition(".")[2]
            if not name and len(parts) > 1:
                raise InTheWay("it joins a query without a name")
            names.append(name)
        return names

    def _stars(self, select: exp.Select, names: list[str]) -> None:
        text, direct = self._parsed.text, set()
        for projection in select.expressions:
            star = projection.this if isinstance(projection, exp.Column) else projection
            if not isinstance(star, exp.Star):
                continue
            direct.add(id(star))
            qualifier = projection.table if isinstance(projection, exp.Column) else ""
            of = [name for name in names if qualifier.lower() in ("", name.lower())]
            hidden = ORIGIN if len(of) < 2 else ", ".join(f"`{name}`.{ORIGIN}" for name in of)
            if not of:
                raise InTheWay("it takes apart a column with a star")
            behind = star.meta["end"] + 1
            if star.args.get("except_"):
                opening = text.index("(", behind) + 1
                self.edits.append((opening, opening, f"{hidden}, "))
            else:
                self.edits.append((behind, behind, f" EXCEPT ({hidden})"))
        for star in select.find_all(exp.Star):
            own = id(star) not in direct and star.find_ancestor(exp.Select) is select
            if own and not isinstance(star.parent, exp.Count):
                raise InTheWay("it has a star inside a call")

    def _of_group(self, select: exp.Select, origin: str) -> str:
        parsed = self._parsed
        having = select.args.get("having")
        places = [*select.expressions, *([having] if having else [])]
        deciding = []
        for node in (n for part in places for n in part.find_all(exp.Func, exp.Any)):
            if node.find_ancestor(exp.Select) is select and is_aggregate(parsed, node):
                deciding.append(self._decides(node, origin))
        if any(text is None for text in deciding):
            place = f"try_element_at({origin}, 1).o"
            return f"flatten(max_by({origin}, coalesce({place}, 0L), {self._most}))"
        any_row = f"any_value({origin})"
        if not deciding:
            return any_row
        found = ", ".join(f"coalesce({text}, {any_row})" for text in deciding)
        return f"array_distinct(concat({found}))"

    def _decides(self, node: exp.Expr, origin: str) -> str | None:
        """What gives the places of the row that decides an aggregate; None: all of them do."""
        parsed = self._parsed
        name = parsed.spelling(node).lower()
        if name not in _DECIDED or isinstance(node.parent, exp.Filter):
            return None
        start = parsed.start + node.meta["start"]
        call = next(token for token in parsed.tokens if token.start == start)
        by = _arguments(parsed, call)[-1]
        return f"{_DECIDED[name]}({origin}, {by})"

    def _drop_distinct(self, select: exp.Select, *, top: bool) -> None:
        if not top:
            raise InTheWay("it has DISTINCT inside")
        first = select.expressions[0]
        at = self._parsed.clause(first, "DISTINCT")
        self._edit(at, at + len("DISTINCT"), "")

    def _edit(self, start: int, end: int, text: str) -> None:
        self.edits.append((start - self._parsed.start, end - self._parsed.start, text))


def _counts(tree: exp.Expr) -> bool:
    """True for a SELECT with a plain count(*) among its columns."""
    shown = [p.unalias() for p in tree.expressions] if isinstance(tree, exp.Select) else []
    return any(isinstance(node, exp.Count) and isinstance(node.this, exp.Star) for node in shown)


def _one(name: str) -> str:
    # the other side of an outer join may be missing
    return f"coalesce(`{name}`.{ORIGIN}, {_NONE})"


def _check_alias(node: exp.Expr) -> None:
    alias = node.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.columns:
        raise InTheWay("it gives the columns of a relation other names")


def _arguments(parsed: Parsed, call: Token) -> list[str]:
    """The texts of a call's arguments."""
    closing = closing_bracket(parsed, call)
    inside = [t for t in parsed.tokens if call.end < t.end and t.start < closing.start][1:]
    items: list[list[Token]] = [[]]
    depth = 0
    for token in inside:
        if token.kind is T.SYMBOL:
            depth += (token.text in "([{") - (token.text in ")]}")
        if token.text == "," and depth == 0:
            items.append([])
        else:
            items[-1].append(token)
    text = parsed.source.text
    return [text[item[0].start : item[-1].end] for item in items]
