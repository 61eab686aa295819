"""The option event_time: a column, an expression, or the time of the batch."""

from __future__ import annotations

import pytest

from mainstem.catalog.compare import changed_columns
from mainstem.catalog.fingerprint import decoding, fingerprint
from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError


def stream(options: str) -> Definition:
    text = f"CREATE STREAM s (ms BIGINT, at TIMESTAMP, x STRUCT<at: TIMESTAMP>)\n  WITH ({options})"
    definition: Definition = parse_one(text).definition  # type: ignore[union-attr]
    return definition


@pytest.mark.parametrize(
    ("value", "column", "expression", "processing"),
    [
        ("AT", "at", None, False),
        ("`at`", "at", None, False),
        ("_timestamp", None, None, False),
        ("timestamp_millis(ms)", "_event_time", "SELECT timestamp_millis(ms)", False),
        ("x.at", "_event_time", "SELECT x.at", False),
        ("current_timestamp()", "_event_time", "SELECT current_timestamp()", True),
    ],
)
def test_which_time(
    value: str, column: str | None, expression: str | None, processing: bool
) -> None:
    found = stream(f"event_time = '{value}'")
    assert found.event_time == column
    assert (found.time.text if found.time else None) == expression
    assert found.processing_time is processing


@pytest.mark.parametrize(
    ("options", "code", "column"),
    [
        ("event_time = 'nope'", "INVALID_OPTION", 22),
        ("event_time = 'ms'", "INVALID_OPTION", 22),
        ("event_time = ''", "INVALID_OPTION", 22),
        ("event_time = 'ms; at'", "INVALID_OPTION", 22),
        ("event_time = 'ms +'", "SQL_SYNTAX", 27),
        ("event_time = 'ms $ at'", "SQL_NOT_ALLOWED", 26),
        ("event_time = 'reflect(ms)'", "FUNCTION_NOT_ALLOWED", 23),
        ("event_time = 'timestamp_millis(rand())'", "FUNCTION_NOT_ALLOWED", 40),
        ("event_time = 'ms, at'", "NOT_SUPPORTED", 23),
        ("event_time = 'max(at)'", "NOT_SUPPORTED", 23),
        ("event_time = 'x.*'", "NOT_SUPPORTED", 23),
        ("event_time = '(SELECT at FROM s)'", "NOT_SUPPORTED", 23),
        ("event_time = 'at FROM s'", "NOT_SUPPORTED", 23),
        ("event_time = 'now()'", "NOT_SUPPORTED", 23),
        ("event_time = 'least(at, current_timestamp())'", "NOT_SUPPORTED", 23),
        ("event_time = 'CAST(_headers AS TIMESTAMP)'", "NOT_SUPPORTED", 23),
        ("max_ahead = '1 day'", "INVALID_OPTION", 21),
        ("event_time = '_timestamp', max_ahead = '1 day'", "INVALID_OPTION", 48),
        ("event_time = 'current_timestamp()', max_behind = '1 d'", "INVALID_OPTION", 58),
        ("event_time = 'at', max_ahead = 'soon'", "INVALID_OPTION", 40),
    ],
)
def test_refused_at_its_place(options: str, code: str, column: int) -> None:
    with pytest.raises(MainstemError) as caught:
        stream(options)
    assert caught.value.code == code
    place = caught.value.location
    assert place is not None
    assert (place.line, place.column) == (2, column)


@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
def test_the_name_of_the_event_time_is_taken(kind: str) -> None:
    with pytest.raises(MainstemError) as caught:
        parse_one(f"CREATE {kind} s (_event_time TIMESTAMP)")
    assert caught.value.code == "RESERVED_NAME"


def test_a_changed_time_or_bound_reaches_those_who_read_it() -> None:
    plain = stream("event_time = 'at'")
    spelled = stream("event_time = 'AT'")
    bounded = stream("event_time = 'at', max_ahead = '2 days'")
    made = stream("event_time = 'timestamp_millis(ms)'")
    other = stream("event_time = 'timestamp_seconds(ms)'")
    assert fingerprint(plain, ()) == fingerprint(spelled, ())
    assert len({decoding(d) for d in (plain, bounded, made, other)}) == 4
    assert changed_columns(plain, bounded) == {"at"}
    assert changed_columns(plain, made) == {"at", "_event_time"}
    assert changed_columns(made, other) == {"_event_time"}
    assert changed_columns(plain, spelled) == set()
