"""The option `event_time`: a column, an expression over the record, or the time of the batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from mainstem.definitions.dialect import Parsed
from mainstem.definitions.lexer import Source, T
from mainstem.definitions.model import Query
from mainstem.definitions.options import Option, invalid
from mainstem.definitions.query import read_query
from mainstem.errors import MainstemError
from mainstem.vocabulary import EVENT_TIME

TIME_TYPES = ("timestamp", "timestamp_ntz")
"""Types that an event time can have."""

_SELECT = "SELECT "
_EXAMPLE = "Write for example event_time = 'timestamp_millis(ts)'."
_PROCESSING = "SELECT CURRENT_TIMESTAMP ( )"
NOW = frozenset(
    {"current_timestamp", "now", "localtimestamp", "current_date", "curdate", "current_time"}
)
"""Functions that tell the time of the batch."""
_INGEST = "_timestamp"
_BOUNDS = ("max_ahead", "max_behind")


def read_event_time(
    source: Source, options: Mapping[str, Option], given: str | None
) -> dict[str, Any]:
    """The fields of a definition that the option means; `given` is its value, if it is there."""
    fields = {} if given is None else _fields(source, options["event_time"])
    time: Query | None = fields.get("time")
    for bound in _BOUNDS:
        if bound in options and (not fields or (time is not None and not time.columns_read)):
            raise invalid(
                source,
                bound,
                options[bound],
                "there is no event time of the record to be compared with its time stamp",
                "Add event_time = '...' with a column or an expression, or leave this out.",
            )
    return fields


def _fields(source: Source, option: Option) -> dict[str, Any]:
    tokens = _tokens(source, option)
    if len(tokens) == 1 and tokens[0].kind in (T.WORD, T.QUOTED):
        name = tokens[0].name
        return {} if name.lower() == _INGEST else {"event_time": name}
    return {"event_time": EVENT_TIME, "time": _expression(source, option)}


def _tokens(source: Source, option: Option) -> tuple[Any, ...]:
    inside = Source(option.value, source.file)
    try:
        statements = inside.statements()
    except MainstemError as error:
        raise _placed(error, source, option, 0) from None
    if len(statements) != 1:
        problem = "it is neither a column nor an expression"
        raise invalid(source, "event_time", option, problem, _EXAMPLE)
    return statements[0]


def _expression(source: Source, option: Option) -> Query:
    """The expression as a query without FROM, which knows its place in the file."""
    inside = Source(_SELECT + option.value, source.file)
    try:
        query, parsed = read_query(inside, inside.statements()[0], definition=True)
        _check(parsed, query)
    except MainstemError as error:
        raise _placed(error, source, option, len(_SELECT)) from None
    start = source.location(_start(source, option))
    return replace(query, location=replace(start, column=start.column - len(_SELECT)))


def _check(parsed: Parsed, query: Query) -> None:
    tree = parsed.tree
    plain = (
        isinstance(tree, exp.Select)
        and {part for part, value in tree.args.items() if value} == {"expressions"}
        and len(tree.expressions) == 1
        and not isinstance(tree.expressions[0], exp.Alias)
        and not tree.find(exp.Subquery, exp.Window, exp.Star)
        and not query.aggregates
        and not query.distinct
    )
    if not plain:
        raise parsed.error(
            "NOT_SUPPORTED",
            parsed.start + len(_SELECT),
            what="more than one expression over the record",
            where="event_time",
            advice=_EXAMPLE,
        )
    if "_headers" in query.columns_read:
        raise parsed.error(
            "NOT_SUPPORTED",
            parsed.start + len(_SELECT),
            what="_headers",
            where="event_time",
            advice="Use the record's columns.",
        )
    # the quarantine looks at records again later, and must come to the same result
    called = {token.text.lower() for token in parsed.tokens if token.kind is T.WORD}
    if (called & NOW or not query.columns_read) and query.canonical != _PROCESSING:
        raise parsed.error(
            "NOT_SUPPORTED",
            parsed.start + len(_SELECT),
            what="a time that is not the record's",
            where="event_time",
            advice="Use the record's columns alone, or event_time = 'current_timestamp()' for the "
            "time at which a record is processed.",
        )


def _start(source: Source, option: Option) -> int:
    """Where the value begins; a text with escapes has no simple place for its characters."""
    begin = option.value_at + 1
    plain = source.text.startswith(option.value, begin)
    return begin if plain else option.value_at


def _placed(error: MainstemError, source: Source, option: Option, before: int) -> MainstemError:
    """The error at its place in the file instead of the value."""
    place, start = error.location, _start(source, option)
    inside = place.column - 1 - before if place is not None and place.line == 1 else 0
    moved = start + max(0, inside) if start > option.value_at else start
    return MainstemError(error.code, location=source.location(moved), **error.params)
