"""Calls of Python functions in a query, found among its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from mainstem.definitions.dialect import Parsed
from mainstem.definitions.lexer import T, Token
from mainstem.definitions.model import Flavour, FunctionDefinition


def called(parsed: Parsed) -> tuple[FunctionDefinition, ...]:
    """The Python functions that a checked query calls, by name."""
    found = {function.name: function for _, function in own_calls(parsed)}
    return tuple(function for _, function in sorted(found.items()))


def place_of_call(parsed: Parsed, function: FunctionDefinition) -> int:
    """Offset of the first call of a Python function."""
    return next(token.start for token, own in own_calls(parsed) if own == function)


def own_calls(parsed: Parsed) -> Iterator[tuple[Token, FunctionDefinition]]:
    """The names before a bracket that are Python functions."""
    for token, after in pairwise(parsed.tokens):
        own = own_function(parsed, token)
        if own is not None and after.text == "(":
            yield token, own


def own_function(parsed: Parsed, token: Token) -> FunctionDefinition | None:
    """The Python function that a name means, if any."""
    if token.kind not in (T.WORD, T.QUOTED):
        return None
    return (parsed.source.functions or {}).get(token.name.lower())


def check_call(
    parsed: Parsed, token: Token, before: Token | None, function: FunctionDefinition
) -> None:
    """A table function stands where a relation stands, the others do not; and the arguments."""
    relation = before is not None and before.upper in ("LATERAL", "FROM", "JOIN")
    if relation is not (function.flavour is Flavour.TABLE):
        name = function.name
        raise parsed.error(
            "SQL_NOT_ALLOWED",
            token.start,
            what=f'the {function.flavour} function "{name}"',
            advice=f"It gives one value: SELECT {name}(...)."
            if relation
            else f"It gives rows: FROM some_stream, LATERAL {name}(...) AS r.",
        )
    given = _arguments(parsed, token)
    most = len(function.parameters)
    if not function.fewest <= given <= most:
        least = "" if function.fewest == most else f"{function.fewest} to "
        raise parsed.error(
            "FUNCTION_ARGUMENTS",
            token.start,
            name=function.name,
            wanted=f"{least}{most} argument{'' if most == 1 else 's'}",
            given=given,
            signature=function.signature,
        )


def closing_bracket(parsed: Parsed, call: Token) -> Token:
    """The bracket that ends a call, whose name is given; the parser made sure that there is one."""
    return _inside(parsed, call)[0]


def _arguments(parsed: Parsed, call: Token) -> int:
    """How many arguments stand in the brackets behind a name."""
    closing, commas = _inside(parsed, call)
    first = parsed.tokens[parsed.tokens.index(call) + 2]
    return 0 if first == closing else commas + 1


def _inside(parsed: Parsed, call: Token) -> tuple[Token, int]:
    """The closing bracket of a call, and how many commas part its arguments."""
    depth, commas = 0, 0
    for token in parsed.tokens[parsed.tokens.index(call) + 1 :]:
        if token.kind is T.SYMBOL:
            depth += (token.text in "([{") - (token.text in ")]}")
            commas += token.text == "," and depth == 1
        if depth == 0:
            return token, commas
    raise AssertionError("the brackets of a parsed query are closed")
