"""TRANSFORM (...) behind the options of a source or a sink: a list of calls, in order.

drop(column, ...)                    keep(column, ...)
rename(column, new_name)             cast(column, TYPE)
mask(column, hash [, '${env:SALT}']) mask(column, redact)     mask(column, partial, 4)
insert(column, 'text' | 1 | TRUE)    insert(column, _topic)
filter(condition)                    flatten(column)
timestamp(column, 'yyyy-MM-dd')      timestamp(column, seconds | millis | micros)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from mainstem.definitions.cursor import Cursor
from mainstem.definitions.lexer import Source, T, Token
from mainstem.definitions.names import check_column_name
from mainstem.definitions.rules import read_condition
from mainstem.definitions.transforms import (
    KINDS,
    ORIGINS,
    Cast,
    Drop,
    Filter,
    Flatten,
    Insert,
    Keep,
    Mask,
    Masking,
    Named,
    Rename,
    Timestamp,
    Transform,
    Unit,
)
from mainstem.definitions.types import read_type
from mainstem.errors import MainstemError, did_you_mean
from mainstem.vocabulary import SourceLocation

CLAUSE = "TRANSFORM"
MOST_SHOWN = 16
"""Characters that a partial mask may show."""
_BIGINT = 2**63
_REFERENCE = re.compile(r"\$\{(env|file):[^${}]+\}")
_Word = TypeVar("_Word", bound=StrEnum)


def read_transforms(cursor: Cursor) -> tuple[Transform, ...]:
    """The clause at the cursor, if it is there."""
    if not cursor.accept(CLAUSE):
        return ()
    cursor.expect("(")
    found = _calls(cursor)
    cursor.expect(")")
    return found


def parse_transforms(text: str, file: str = "<transforms>") -> tuple[Transform, ...]:
    """A list by itself: what stands in the brackets of the clause."""
    source = Source(text, file)
    statements = source.statements()
    if len(statements) != 1:
        raise source.syntax("a list of transforms was expected", 0)
    cursor = Cursor(source, statements[0])
    found = _calls(cursor)
    cursor.finish()
    return found


def _calls(cursor: Cursor) -> tuple[Transform, ...]:
    found = [_call(cursor)]
    while cursor.accept(","):
        found.append(_call(cursor))
    return tuple(found)


def _call(cursor: Cursor) -> Transform:
    token = cursor.take_word(f"one of {', '.join(KINDS)}")
    location = cursor.source.location(token.start)
    read = _READERS.get(token.text.lower())
    if read is None:
        raise MainstemError(
            "UNKNOWN_TRANSFORM",
            location=location,
            name=token.text,
            known=", ".join(KINDS),
            suggestion=did_you_mean(token.text, KINDS),
        )
    if token.text.lower() == "filter":  # what stands in its brackets is read by another parser
        return read(cursor, location)
    cursor.expect("(")
    found = read(cursor, location)
    cursor.expect(")")
    return found


def _drop(cursor: Cursor, location: SourceLocation) -> Drop:
    return Drop(_columns(cursor), location)


def _keep(cursor: Cursor, location: SourceLocation) -> Keep:
    return Keep(_columns(cursor), location)


def _rename(cursor: Cursor, location: SourceLocation) -> Rename:
    column = _column(cursor)
    cursor.expect(",")
    return Rename(column, _new_column(cursor), location)


def _cast(cursor: Cursor, location: SourceLocation) -> Cast:
    column = _column(cursor)
    cursor.expect(",")
    return Cast(column, read_type(cursor, column.name), location)


def _mask(cursor: Cursor, location: SourceLocation) -> Mask:
    column = _column(cursor)
    cursor.expect(",")
    how = _one_of(cursor, Masking)
    salt, shows = None, 0
    if how is Masking.HASH and cursor.accept(","):
        salt = _salt(cursor)
    elif how is Masking.PARTIAL:
        cursor.expect(",")
        place = cursor.current.start
        shows = cursor.take_number()
        if not 1 <= shows <= MOST_SHOWN:
            raise _invalid(
                cursor,
                place,
                f"mask cannot show {shows} characters",
                f"Show 1 to {MOST_SHOWN} of them.",
            )
    return Mask(column, how, location, salt, shows)


def _salt(cursor: Cursor) -> str:
    place = cursor.current.start
    salt = cursor.take_string("a salt in quotes, such as '${env:SALT}'")
    if _REFERENCE.fullmatch(salt) is None:
        found = replace(cursor.source.location(place), snippet="")  # which would show it
        raise MainstemError("SECRET_IN_PLAIN", location=found, option="salt", variable="SALT")
    return salt


def _insert(cursor: Cursor, location: SourceLocation) -> Insert:
    column = _new_column(cursor)
    cursor.expect(",")
    token = cursor.current
    if token.kind is T.STRING:
        return Insert(column, "string", location, value=cursor.take_string("a value"))
    if token.kind is T.WORD and token.upper in ("TRUE", "FALSE"):
        return Insert(column, "boolean", location, value=cursor.take().text.lower())
    sign = "-" if cursor.accept("-") else ""
    if cursor.current.kind is T.NUMBER:
        return Insert(column, "bigint", location, value=sign + _whole(cursor, cursor.take(), sign))
    wanted = f"a text in quotes, a whole number, TRUE, FALSE or one of {', '.join(ORIGINS)}"
    if sign or token.kind is not T.WORD:
        raise cursor.unexpected(wanted)
    origin = cursor.take().text.lower()
    if origin not in ORIGINS:
        near = did_you_mean(origin, ORIGINS)
        advice = f"Insert {wanted}.{near}"
        raise _invalid(cursor, token.start, f'a row has no "{token.text}"', advice)
    return Insert(column, ORIGINS[origin], location, origin=origin)


def _whole(cursor: Cursor, token: Token, sign: str) -> str:
    digits = token.text
    if not (digits.isascii() and digits.isdigit()) or int(digits) >= _BIGINT + bool(sign):
        advice = "Insert a whole number that a BIGINT holds, or the number as a text in quotes."
        raise _invalid(cursor, token.start, f'"{digits}" is no whole number', advice)
    return digits


def _filter(cursor: Cursor, location: SourceLocation) -> Filter:
    query = read_condition(cursor, "a filter")
    begin, select = query.location, len("SELECT ")
    place = replace(begin, column=begin.column + select)
    return Filter(query.text[select:], query.canonical[select:], place)


def _flatten(cursor: Cursor, location: SourceLocation) -> Flatten:
    return Flatten(_column(cursor), location)


def _timestamp(cursor: Cursor, location: SourceLocation) -> Timestamp:
    column = _column(cursor)
    cursor.expect(",")
    if cursor.current.kind is T.STRING:
        place = cursor.current.start
        pattern = cursor.take_string("a pattern")
        if not pattern.strip():
            advice = "Write for example 'yyyy-MM-dd'."
            raise _invalid(cursor, place, "the pattern is empty", advice)
        return Timestamp(column, location, pattern=pattern)
    return Timestamp(column, location, unit=_one_of(cursor, Unit))


_READERS: dict[str, Callable[[Cursor, SourceLocation], Transform]] = {
    "drop": _drop,
    "keep": _keep,
    "rename": _rename,
    "cast": _cast,
    "mask": _mask,
    "insert": _insert,
    "filter": _filter,
    "flatten": _flatten,
    "timestamp": _timestamp,
}


def _columns(cursor: Cursor) -> tuple[Named, ...]:
    found = [_column(cursor)]
    while cursor.accept(","):
        found.append(_column(cursor))
    return tuple(found)


def _column(cursor: Cursor) -> Named:
    path, place = cursor.take_path("a column")
    table, _, name = path.rpartition(".")
    return Named(name, cursor.source.location(place), table or None)


def _new_column(cursor: Cursor) -> Named:
    token = cursor.take_name("the name of the new column")
    check_column_name(cursor.source, token.name, token.start)
    return Named(token.name, cursor.source.location(token.start))


def _one_of(cursor: Cursor, words: type[_Word]) -> _Word:
    known: Sequence[str] = [word.value for word in words]
    token = cursor.take_word(f"one of {', '.join(known)}")
    if token.text.lower() not in known:
        advice = f"Use one of {', '.join(known)}.{did_you_mean(token.text, known)}"
        raise _invalid(cursor, token.start, f'there is no "{token.text}" here', advice)
    return words(token.text.lower())


def _invalid(cursor: Cursor, place: int, problem: str, advice: str) -> MainstemError:
    return cursor.source.error("INVALID_TRANSFORM", place, problem=problem, advice=advice)
