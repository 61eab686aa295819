"""The options behind WITH: which exist, what they take, and intervals such as `10 minutes`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mainstem.definitions.cursor import Cursor
from mainstem.definitions.lexer import Source, T
from mainstem.definitions.model import Format, Kind, Lane, SubjectStrategy
from mainstem.definitions.names import plain_topic
from mainstem.errors import did_you_mean
from mainstem.vocabulary import INTERNAL_PREFIX

_UNITS = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
}
_SHORT = {"ms": "millisecond", "s": "second", "min": "minute", "h": "hour", "d": "day"}
_INTERVAL = re.compile(r"\s*([0-9]{1,9})\s*([A-Za-z]+)\s*")

_RECORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_NO_DELIMITER = "\"'\\\r\n\0 .-+:"
"""Quotes, ends of lines, and what numbers and times are written with."""
_DECLARED = {"format", "delimiter", "key", "key_format", "comment", "subject_strategy"}
_WRITTEN_FORMATS = tuple(each for each in Format if each is not Format.DEBEZIUM)
_KEY_FORMATS = tuple(each for each in _WRITTEN_FORMATS if each is not Format.CSV)
_TOPIC = {"topic", "partitions", "retention"}
_STREAM = {"record"}
_TIMES = {"event_time", "watermark", "max_ahead", "max_behind", "idle_timeout"}
_FLOW = {"latency", "trigger", "start"}
_DERIVED_STREAM = {"deduplicate", "within"}


def known_options(kind: Kind, derived: bool, *, wildcard: bool = False) -> tuple[str, ...]:
    """Names of the options that a definition of that kind takes."""
    known = set(_DECLARED)
    if not wildcard:  # which has no topic of its own
        known |= _TOPIC
    if kind is Kind.STREAM:
        known |= _STREAM | _TIMES
    if derived:
        known |= _FLOW
    if derived and kind is Kind.STREAM:
        known |= _DERIVED_STREAM
    return tuple(sorted(known))


def milliseconds(interval: str) -> int | None:
    """The length of an interval such as `10 minutes`; None when it is not one."""
    parts = _parts(interval)
    return parts[0] * _UNITS[parts[1]] if parts else None


def _parts(interval: str) -> tuple[int, str] | None:
    """Count and unit, the unit in full and singular."""
    match = _INTERVAL.fullmatch(interval)
    if not match:
        return None
    unit = match[2].lower()
    unit = _SHORT.get(unit, unit.removesuffix("s"))
    return (int(match[1]), unit) if unit in _UNITS else None


@dataclass(frozen=True, slots=True)
class Option:
    """One option as written: its value, and where name and value stand."""

    value: str
    name_at: int
    value_at: int


def read_options(cursor: Cursor) -> dict[str, Option]:
    """`(name = 'value', ...)` at the cursor, names in lower case.

    One with a dot is in quotes, and stays as it is: it means something to a system outside.
    """
    options: dict[str, Option] = {}
    cursor.expect("(")
    while True:
        quoted = cursor.current.kind is T.STRING
        token = cursor.take() if quoted else cursor.take_name("an option")
        name = token.value if quoted else token.name
        name = name if "." in name else name.lower()
        if name in options:
            raise cursor.source.syntax(f'option "{name}" stands twice', token.start)
        cursor.expect("=")
        place = cursor.current.start
        if cursor.current.kind is T.NUMBER:
            value = str(cursor.take_number())
        else:
            value = cursor.take_string("a value in quotes")
        options[name] = Option(value, token.start, place)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return options


def settings(
    source: Source, options: dict[str, Option], kind: Kind, derived: bool, *, wildcard: bool = False
) -> dict[str, Any]:
    """Checked options as the fields of a definition; `key` is a tuple of names."""
    known = known_options(kind, derived, wildcard=wildcard)
    what = f"a {'wildcard' if wildcard else 'derived' if derived else 'declared'} {kind}"
    fields: dict[str, Any] = {}
    for name, option in options.items():
        if name not in known:
            raise source.error(
                "UNKNOWN_OPTION",
                option.name_at,
                option=name,
                what=what,
                known=", ".join(known),
                suggestion=did_you_mean(name, known),
            )
        fields |= _field(source, name, option)
    if fields.get("lane") is Lane.REAL_TIME and "trigger" in fields:
        raise invalid(source, "trigger", options["trigger"], "a real-time flow has no trigger")
    if "delimiter" in fields and fields.get("format") is not Format.CSV:
        advice = "Add format = 'csv', or leave it out."
        problem = "there are no columns with something between them"
        raise invalid(source, "delimiter", options["delimiter"], problem, advice)
    _check_record(source, options, fields)
    if "within" in fields and "deduplicate" not in fields:
        advice = "Add deduplicate = '...' with the columns that make a record the same."
        problem = "there is nothing to be deduplicated"
        raise invalid(source, "within", options["within"], problem, advice)
    if "idle_timeout" in fields and "watermark" not in fields:
        advice = "Add watermark = '...': how late a record may be."
        problem = "there is no watermark that could go on"
        raise invalid(source, "idle_timeout", options["idle_timeout"], problem, advice)
    return fields


def _field(source: Source, name: str, option: Option) -> dict[str, Any]:
    value = option.value
    match name:
        case "topic":
            if not plain_topic(value) or value.startswith(INTERNAL_PREFIX):
                raise invalid(source, name, option, "it is not a name for a topic of yours")
            return {"topic": value}
        case "format":
            return {name: _format(source, name, option, _WRITTEN_FORMATS)}
        case "key_format":
            return {name: _format(source, name, option, _KEY_FORMATS)}
        case "delimiter":
            if len(value) != 1 or not value.isascii() or value.isalnum() or value in _NO_DELIMITER:
                advice = "Use one character such as ';', '|' or a tab."
                raise invalid(source, name, option, "it cannot stand between columns", advice)
            return {name: value}
        case "key" | "deduplicate":
            names = tuple(part.strip() for part in value.split(","))
            if not all(names):
                raise invalid(source, name, option, "a column name is missing")
            return {name: names}
        case "watermark" | "trigger":
            return {name: _interval(source, name, option)}
        case "within" | "idle_timeout":
            return {name: _interval(source, name, option, least=1)}
        case "retention" | "max_ahead" | "max_behind":
            forever = value.strip().lower() == "forever"
            least = 1 if name == "retention" else 0
            return {name: "forever" if forever else _interval(source, name, option, least=least)}
        case "partitions":
            if not (value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= 1000):
                raise invalid(source, name, option, "it is not a number from 1 to 1000")
            return {name: int(value)}
        case "latency":
            if value.lower() not in ("realtime", "normal"):
                raise invalid(source, name, option, "it is not known", "Use 'realtime'.")
            realtime = value.lower() == "realtime"
            return {"lane": Lane.REAL_TIME if realtime else Lane.MICRO_BATCH}
        case "start":
            if value.lower() not in ("earliest", "latest"):
                raise invalid(source, name, option, "it is neither 'earliest' nor 'latest'")
            return {name: value.lower()}
        case "subject_strategy":
            strategies = [strategy.value for strategy in SubjectStrategy]
            if value.lower() not in strategies:
                problem = f"it is not known{did_you_mean(value, strategies)}"
                advice = f"Use one of {', '.join(strategies)}."
                raise invalid(source, name, option, problem, advice)
            return {name: SubjectStrategy(value.lower())}
        case _:
            return {name: value}


def _check_record(source: Source, options: dict[str, Option], fields: dict[str, Any]) -> None:
    """A record has a name where a schema of the registry gives it one."""
    format_ = fields.get("format", Format.JSON)
    for name in ("record", "subject_strategy"):
        if name in fields and not format_.registered:
            known = ", ".join(f.value for f in Format if f.registered)
            problem = f"records of the format {format_} have no schema with a name"
            raise invalid(source, name, options[name], problem, f"Use one of the formats {known}.")
    record = fields.get("record")
    if record is None:
        return
    plain = _RECORD.fullmatch(record) is not None
    if not (plain or (format_ is Format.JSON_SCHEMA and record.strip() and record.isprintable())):
        advice = "Write it as its schema has it, such as 'com.shop.OrderPlaced'."
        raise invalid(source, "record", options["record"], "it is no name of a record", advice)


def _format(source: Source, name: str, option: Option, known: Sequence[Format]) -> Format:
    if (value := option.value.lower()) in known:
        return Format(value)
    problem = f"the format does not exist.{did_you_mean(value, known)}"
    raise invalid(source, name, option, problem, f"Use one of {', '.join(known)}.")


def _interval(source: Source, name: str, option: Option, least: int = 0) -> str:
    """The interval in one spelling, such as `10 minutes`, whatever was written."""
    parts = _parts(option.value)
    if parts is None or parts[0] < least:
        raise invalid(
            source, name, option, "it is not an interval", "Write for example '10 minutes'."
        )
    count, unit = parts
    return f"{count} {unit}{'' if count == 1 else 's'}"


def invalid(
    source: Source, name: str, option: Option, problem: str, advice: str = "Correct the value."
) -> Exception:
    """INVALID_OPTION at the option's value."""
    return source.error(
        "INVALID_OPTION",
        option.value_at,
        option=name,
        value=option.value,
        problem=problem,
        advice=advice,
    )
