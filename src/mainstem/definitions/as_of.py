"""AS OF: at which moment a query looks at each of its tables.

    SELECT * FROM visits AS OF TIMESTAMP '2026-01-31 12:00:00' WHERE page = '/home'
    SELECT * FROM visits AS OF OFFSETS '{"0": 1200, "1": 900}'
    SELECT * FROM orders JOIN customers USING (id) AS OF TIMESTAMP now() - INTERVAL 1 HOUR

A clause stands behind a table's name or alias, or at the end of the query. One moment that is given
is that of all tables of the query; where there are two, or offsets, each table has its own. Spark's
spellings `TIMESTAMP AS OF` and `FOR SYSTEM_TIME AS OF` mean the same. What Spark gets has spaces in
the place of the clauses.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from mainstem.definitions.bounds import may_be_constant
from mainstem.definitions.dialect import Parsed
from mainstem.definitions.lexer import Source, T, Token
from mainstem.definitions.model import Moment
from mainstem.definitions.relations import relations

_TIMES = ("TIMESTAMP", "SYSTEM_TIME")
_LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class Clause:
    """An AS OF of the text."""

    moment: Moment
    start: int
    end: int
    behind: Token
    """What stands before it."""
    last: bool
    """True at the end of the query."""


def take_moments(
    source: Source, tokens: tuple[Token, ...]
) -> tuple[Source, tuple[Token, ...], list[Clause]]:
    """The text and tokens of a query without its clauses, and the clauses."""
    found: list[Clause] = []
    left: list[Token] = []
    at = 0
    while at < len(tokens):
        span = _span(source, tokens, at)
        if span is None or not left:
            left.append(tokens[at])
            at += 1
            continue
        first, end, moment = span
        place = (tokens[first].start, tokens[end - 1].end)
        found.append(Clause(moment, *place, left[-1], end == len(tokens)))
        at = end
    edits = [(clause.start, clause.end, "") for clause in found]
    return (source.reworded(edits) if found else source), tuple(left), found


def moments_of(parsed: Parsed, clauses: Sequence[Clause]) -> tuple[Moment, ...]:
    """The moment of each mention of a table; none when the query has no clause."""
    if not clauses:
        return ()
    mentions = list(relations(parsed.tree))
    given: dict[int, Moment] = {}
    common: Clause | None = None
    for clause in clauses:
        own = [i for i, table in enumerate(mentions) if _stands_behind(parsed, table, clause)]
        if own:
            given[own[0]] = clause.moment
        elif clause.last:
            common = clause
        else:
            raise parsed.source.syntax(
                "AS OF stands behind the name of a table, or at the end of the query", clause.start
            )
    times = {moment.time for moment in given.values()}
    if common is None and len(times) == 1 and None not in times:
        common = clauses[0]
    if common is not None and common.moment.time is None and len(mentions) - len(given) > 1:
        raise parsed.source.syntax("offsets are those of one table", common.start)
    moments = [given.get(i, common.moment if common else None) for i in range(len(mentions))]
    for table, moment in zip(mentions, moments, strict=True):
        if moment is None:
            problem = f'the moment of "{table.name}" is not said; the other tables have theirs'
            raise parsed.source.syntax(problem, parsed.place(table))
    return tuple(moment for moment in moments if moment is not None)


def _span(source: Source, tokens: tuple[Token, ...], at: int) -> tuple[int, int, Moment] | None:
    """The clause that begins with a token: its first token, the one behind it, what it says."""

    def words(*wanted: str, ahead: int = 0) -> bool:
        upper = [token.upper for token in tokens[at + ahead : at + ahead + len(wanted)]]
        return upper == list(wanted)

    if words("AS", "OF") and at + 2 < len(tokens):
        if tokens[at + 2].upper == "OFFSETS":
            return at, at + 4, _offsets(source, tokens, at + 3)
        if tokens[at + 2].upper in _TIMES:
            return _time(source, tokens, at, at + 3)
        return None
    ahead = 1 if words("FOR") else 0
    timed = at + ahead < len(tokens) and tokens[at + ahead].upper in _TIMES
    if not timed or not words("AS", "OF", ahead=ahead + 1):
        return None
    return _time(source, tokens, at, at + ahead + 3, sure=bool(ahead))


def _time(
    source: Source, tokens: tuple[Token, ...], first: int, start: int, *, sure: bool = True
) -> tuple[int, int, Moment] | None:
    depth, end = 0, start
    for token in tokens[start:]:
        depth += (token.text == "(") - (token.text == ")")
        ends = depth < 0 or not may_be_constant(token)
        if ends or (depth == 0 and token.upper in ("AS", ",")):
            break
        end += 1
    if end == start:
        if not sure:  # a column of that name: SELECT timestamp AS of FROM ...
            return None
        place = tokens[start].start if start < len(tokens) else tokens[-1].end
        raise source.syntax("a time was expected, such as '2026-01-31 12:00:00'", place)
    text = source.text[tokens[start].start : tokens[end - 1].end]
    if "${" in text:  # Spark would put something else there, in strings and comments, too
        advice = "Write the time itself."
        raise source.error("SQL_NOT_ALLOWED", tokens[start].start, what="${...}", advice=advice)
    return first, end, Moment(source.location(tokens[first].start), time=text)


def _offsets(source: Source, tokens: tuple[Token, ...], at: int) -> Moment:
    example = """offsets by partition were expected, such as '{"0": 1200}'"""
    if at >= len(tokens):
        raise source.syntax(example, tokens[-1].end)
    token = tokens[at]
    try:
        given = json.loads(token.value) if token.kind is T.STRING else None
        pairs = {int(p): offset for p, offset in given.items()} if given else {}
    except (ValueError, AttributeError):
        pairs = {}
    wrong = any(type(o) is not int or not 0 <= o < _LARGEST or p < 0 for p, o in pairs.items())
    if not pairs or wrong:
        raise source.syntax(example, token.start)
    return Moment(source.location(token.start), offsets=tuple(sorted(pairs.items())))


def _stands_behind(parsed: Parsed, table: exp.Table, clause: Clause) -> bool:
    names = [table.parts[-1]]
    alias = table.args.get("alias")
    if alias is not None and alias.this is not None:
        names.append(alias.this)
    ends = {parsed.start + name.meta["end"] + 1 for name in names if "end" in name.meta}
    return clause.behind.end in ends
