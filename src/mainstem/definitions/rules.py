"""Rules in the brackets of a definition: NOT NULL, CHECK and EXPECT, and what a violation means.

    column type [CONSTRAINT name] NOT NULL | CHECK (condition) [ON VIOLATION action]
    [CONSTRAINT name] CHECK (condition) [ON VIOLATION action]
    EXPECT [name] (condition) [ON VIOLATION action]
    CONSTRAINT name EXPECT (condition) [ON VIOLATION action]

CHECK and EXPECT mean the same. An action is quarantine (the default), drop or fail; `DROP ROW` and
`FAIL UPDATE`, which other systems say, are read as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from mainstem.definitions.cursor import Cursor
from mainstem.definitions.dialect import Parsed
from mainstem.definitions.event_time import NOW
from mainstem.definitions.keywords import words
from mainstem.definitions.lexer import Source, T, Token
from mainstem.definitions.model import Definition, OnViolation, Query, Rule
from mainstem.definitions.names import check_column_name
from mainstem.definitions.query import read_query
from mainstem.errors import MainstemError, did_you_mean
from mainstem.vocabulary import METADATA_COLUMNS

_SELECT = "SELECT "
_TYPES_WITH_BRACKETS = words("DECIMAL DEC NUMERIC VARCHAR CHAR CHARACTER")
_NOISE = {OnViolation.DROP: "ROW", OnViolation.FAIL: "UPDATE"}


def at_rule(cursor: Cursor) -> bool:
    """True when a rule over the whole record comes next, and not a column."""
    if cursor.at("CONSTRAINT"):
        return cursor.peek(2).upper in ("CHECK", "EXPECT")
    if cursor.at("EXPECT"):
        word = cursor.peek(1)
        named = cursor.peek(2).text == "(" and word.upper not in _TYPES_WITH_BRACKETS
        return word.text == "(" or (word.kind in (T.WORD, T.QUOTED) and named)
    return cursor.at("CHECK", "(")


def read_rule(cursor: Cursor, rules: list[Rule]) -> None:
    """The rule at the cursor, for which `at_rule` is true."""
    name = cursor.take_name("a name") if cursor.accept("CONSTRAINT") else None
    if not cursor.accept("CHECK"):
        cursor.expect("EXPECT")
        if name is None and not cursor.at("("):
            name = cursor.take_name("a name")
    _add(cursor, rules, name, "check", read_condition(cursor))


def read_column_rule(cursor: Cursor, rules: list[Rule], column: Token) -> bool:
    """Step over the rule behind a column, if one comes next."""
    ahead = 2 if cursor.at("CONSTRAINT") else 0
    word, after = cursor.peek(ahead).upper, cursor.peek(ahead + 1).upper
    if word != "CHECK" and (word, after) != ("NOT", "NULL"):
        return False
    name = cursor.take_name("a name") if cursor.accept("CONSTRAINT") else None
    if cursor.accept("CHECK"):
        _add(cursor, rules, name, f"{column.name}_check", read_condition(cursor))
        return True
    place = cursor.take().start
    cursor.expect("NULL")
    quoted = "`" + column.name.replace("`", "``") + "`"
    source = Source(f"{_SELECT}{quoted} IS NOT NULL", cursor.source.file)
    condition, _ = read_query(source, source.statements()[0], definition=True)
    condition = _placed(condition, cursor.source, place)
    _add(cursor, rules, name, f"{column.name}_not_null", condition)
    return True


def told(definition: Definition, names: Sequence[str]) -> str:
    """Which rules were broken, in words; without the record's values, which may be personal."""
    texts = {rule.name: rule.shown for rule in definition.rules}
    return ", ".join(f'the rule "{name}" ({texts[name]})' for name in names)


def only_dropped(definition: Definition, names: Sequence[str]) -> bool:
    """True when all the rules that a record breaks say `drop`."""
    actions = {rule.name: rule.action for rule in definition.rules}
    return all(actions[name] is OnViolation.DROP for name in names)


def _add(
    cursor: Cursor, rules: list[Rule], name: Token | None, otherwise: str, condition: Query
) -> None:
    """One more rule, with what stands behind its condition."""
    taken = {rule.name.lower() for rule in rules}
    if name is None:
        given, number = otherwise, 1
        while given.lower() in taken:
            number += 1
            given = f"{otherwise}_{number}"
    else:
        given = name.name
        check_column_name(cursor.source, given, name.start)
        if given.lower() in taken:
            raise _invalid(
                cursor.source, name.start, given, "the name stands twice", "Give it another name."
            )
    rules.append(Rule(given, condition, _action(cursor, given)))


def _action(cursor: Cursor, rule: str) -> OnViolation:
    if not cursor.accept("ON", "VIOLATION"):
        return OnViolation.QUARANTINE
    token = cursor.take_word("quarantine, drop or fail")
    known = [action.value for action in OnViolation]
    if token.text.lower() not in known:
        raise _invalid(
            cursor.source,
            token.start,
            rule,
            f'there is no action "{token.text}"',
            f"Behind ON VIOLATION stands one of: {', '.join(known)}."
            + did_you_mean(token.text.lower(), known),
        )
    action = OnViolation(token.text.lower())
    if action in _NOISE:
        cursor.accept(_NOISE[action])
    return action


def read_condition(cursor: Cursor, where: str = "a rule") -> Query:
    """What stands in brackets at the cursor, as a query without FROM that knows its place."""
    source = cursor.source
    cursor.expect("(")
    tokens = _until_closed(cursor)
    if not tokens:
        raise cursor.unexpected("a condition")
    start = tokens[0].start
    inside = Source(_SELECT + source.text[start : tokens[-1].end], source.file)
    try:
        query, parsed = read_query(inside, inside.statements()[0], definition=True)
        _check(parsed, query, where)
    except MainstemError as error:
        at = len(_SELECT) if error.location is None else inside.offset(error.location)
        place = source.location(start + max(0, at - len(_SELECT)))
        raise MainstemError(error.code, location=place, **error.params) from None
    cursor.expect(")")
    return _placed(query, source, start)


def _placed(query: Query, source: Source, start: int) -> Query:
    """The condition as one that begins there in the file; before that stands our own SELECT."""
    place = source.location(start)
    return replace(query, location=replace(place, column=place.column - len(_SELECT)))


def _until_closed(cursor: Cursor) -> Sequence[Token]:
    """The tokens up to the bracket that closes the one before them."""
    found: list[Token] = []
    depth = 0
    while cursor.current.kind is not T.END:
        symbol = cursor.current.text if cursor.current.kind is T.SYMBOL else ""
        depth += (symbol == "(") - (symbol == ")")
        if depth < 0:
            return found
        found.append(cursor.take())
    raise cursor.unexpected(")")


def _check(parsed: Parsed, query: Query, where: str) -> None:
    tree = parsed.tree
    plain = isinstance(tree, exp.Select) and {p for p, v in tree.args.items() if v} == {
        "expressions"
    }
    refused = {
        "a condition without a column": not query.columns_read,
        "a subquery": any(node is not tree for node in tree.find_all(exp.Query)),
        "an aggregate": query.aggregates,
        "a window function": tree.find(exp.Window) is not None,
        "a star": tree.find(exp.Star) is not None,
        "more than one condition": not plain or len(tree.expressions) != 1,
        "AS": any(isinstance(part, exp.Alias) for part in tree.expressions),
    }
    for what, found in refused.items():
        if found:
            advice = f"{where.capitalize()} is one condition over the columns of a single record."
            raise _unsupported(parsed, where, what, advice)
    metadata = [name for name in METADATA_COLUMNS if name in query.columns_read]
    if metadata:
        raise _unsupported(parsed, where, metadata[0], "Use the record's columns.", metadata[0])
    for token, *after in zip(parsed.tokens, parsed.tokens[1:], parsed.tokens[2:], strict=False):
        # the quarantine looks at records again later, and must come to the same result
        called = token.name.lower()
        empty = [other.text for other in after] == ["(", ")"]
        if token.kind is T.WORD and (called in NOW or (called == "unix_timestamp" and empty)):
            advice = f"{where.capitalize()} must judge a record the same way whenever it is read."
            raise _unsupported(parsed, where, token.text, advice, token.text)


def _unsupported(
    parsed: Parsed, where: str, what: str, advice: str, word: str = ""
) -> MainstemError:
    places = [t.start for t in parsed.tokens if word and t.name.lower() == word.lower()]
    at = places[0] if places else parsed.start + len(_SELECT)
    return parsed.error("NOT_SUPPORTED", at, what=what, where=where, advice=advice)


def _invalid(source: Source, at: int, rule: str, problem: str, advice: str) -> MainstemError:
    return source.error("INVALID_RULE", at, rule=rule, problem=problem, advice=advice)
