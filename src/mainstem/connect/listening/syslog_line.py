"""One syslog message -> the columns of a row, as RFC 5424 and RFC 3164 have it.

RFC 3164 only describes what was found in the wild. What is read as it: a priority, then, if they
are there, a time (without a year, with one, or as RFC 3339), a host, and a tag with its process.
What cannot be told apart is in the message, so that nothing of a line is lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any

from mainstem.vocabulary import Column

STRUCTURED = "map<string,map<string,string>>"
COLUMNS = (
    Column("facility", "string"),
    Column("facility_number", "int"),
    Column("severity", "string"),
    Column("severity_number", "int"),
    Column("at", "timestamp"),
    Column("host", "string"),
    Column("app", "string"),
    Column("procid", "string"),
    Column("msgid", "string"),
    Column("message", "string"),
    Column("structured", STRUCTURED),
    Column("raw", "string"),
    Column("peer", "string"),
)
FACILITIES = (
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv",
    "ftp", "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
)  # fmt: skip
SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")

_NIL = "-"
_BOM = "\ufeff"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PRIORITY = re.compile(r"<(\d{1,3})>", re.ASCII)
_MOST_PRIORITY = 191
_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)"
_STAMPED = re.compile(_STAMP, re.ASCII)
_HEADER = re.compile(r"1 ([!-~]+) ([!-~]+) ([!-~]+) ([!-~]+) ([!-~]+)(?: |$)")
_FIELDS = ("time", "host", "app name", "process id", "message id", "structured data")
_NAME = r"[!#-<>-\\^-~]{1,32}"  # printable, but none of = ] "
_VALUE = r'"((?:[^"\\]|\\.)*)"'
_ELEMENT = re.compile(rf"\[({_NAME})((?: +{_NAME}={_VALUE})*) *\]", re.DOTALL)
_PARAMETER = re.compile(rf" +({_NAME})={_VALUE}", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\\]])')
_OLD = re.compile(
    rf"(?:({'|'.join(_MONTHS)}) ([ 0-3]?\d)(?: (\d{{4}}))? (\d\d:\d\d:\d\d)(\.\d{{1,6}})?"
    rf"|({_STAMP}))(?: +|$)",
    re.ASCII,
)
_HOST = re.compile(r"(\S*[^\s:])(?: +|$)")
_TAG = re.compile(r"([^\s:\[\]]{1,128})(?:\[([^\]\s]*)\])?:(?: |$)")
_CLOCKS_DIFFER = timedelta(days=1)


class NotSyslog(ValueError):
    """A line that is no syslog message; the text says why."""


def read_line(text: str, received: datetime, zone: tzinfo) -> dict[str, Any]:
    """The columns of a message, but for `peer`; raises NotSyslog.

    `received` has a time zone. `zone` is where the clocks of those senders are that do not say it.
    """
    priority = _PRIORITY.match(text)
    if priority is None:
        raise NotSyslog("it does not begin with a priority such as <34>")
    number = int(priority[1])
    if number > _MOST_PRIORITY:
        raise NotSyslog(f"its priority {number} is more than {_MOST_PRIORITY}")
    facility, severity = divmod(number, 8)
    row: dict[str, Any] = {
        "facility": FACILITIES[facility],
        "facility_number": facility,
        "severity": SEVERITIES[severity],
        "severity_number": severity,
    }
    start = priority.end()
    if text.startswith("1 ", start):
        _read_new(text, start, received, row)
    else:
        _read_old(text, start, received, zone, row)
    row["raw"] = text
    return row


# -- RFC 5424


def _read_new(text: str, start: int, received: datetime, row: dict[str, Any]) -> None:
    header = _HEADER.match(text, start)
    if header is None:
        # how many of its fields are there
        words = text[start:].split(" ")[1:]
        raise NotSyslog(f"RFC 5424: the {_FIELDS[min(len(words), 5)]} is missing, or not ASCII")
    stamp, host, app, process, message_id = header.groups()
    row["at"] = _iso(received) if stamp == _NIL else _stamp(stamp)
    row["host"] = _or_none(host)
    row["app"] = _or_none(app)
    row["procid"] = _or_none(process)
    row["msgid"] = _or_none(message_id)
    row["structured"], end = _structured(text, header.end())
    if end < len(text) and text[end] != " ":
        raise NotSyslog("RFC 5424: there is no space behind the structured data")
    row["message"] = text[end + 1 :].removeprefix(_BOM) if end < len(text) else None


def _or_none(text: str) -> str | None:
    return None if text == _NIL else text


def _structured(text: str, start: int) -> tuple[Mapping[str, Mapping[str, str]] | None, int]:
    """The structured data at that place, and where it ends."""
    if text.startswith(_NIL, start):
        return None, start + 1
    found: dict[str, dict[str, str]] = {}
    end = start
    while element := _ELEMENT.match(text, end):
        name = element[1]
        if name in found:
            raise NotSyslog(f"RFC 5424: the element {name} of the structured data is there twice")
        found[name] = _parameters(element[2])
        end = element.end()
    if end == start:
        problem = "is missing" if start >= len(text) else "cannot be read"
        raise NotSyslog(f"RFC 5424: the structured data {problem}")
    return found, end


def _parameters(text: str) -> dict[str, str]:
    """A name may be there more than once: then they are `name`, `name[2]`, `name[3]`."""
    found: dict[str, str] = {}
    for name, value in _PARAMETER.findall(text):
        key, count = name, 1
        while key in found:
            count += 1
            key = f"{name}[{count}]"
        found[key] = _ESCAPED.sub(r"\1", value) if "\\" in value else value
    return found


# -- RFC 3164


def _read_old(text: str, start: int, received: datetime, zone: tzinfo, row: dict[str, Any]) -> None:
    stamp = _OLD.match(text, start)
    at = None if stamp is None else _old_time(stamp, received, zone)
    host = None
    if stamp is not None and at is not None:
        start = stamp.end()
        host = _HOST.match(text, start)
        start = start if host is None else host.end()
    tag = _TAG.match(text, start)
    row["at"] = at or _iso(received)
    row["host"] = None if host is None else host[1]
    row["app"], row["procid"] = (None, None) if tag is None else (tag[1], tag[2] or None)
    row["msgid"] = row["structured"] = None
    row["message"] = text[start if tag is None else tag.end() :]


def _old_time(match: re.Match[str], received: datetime, zone: tzinfo) -> str | None:
    month, day, year, clock, fraction, stamp = match.groups()
    if stamp is not None:
        try:
            return _stamp(stamp)
        except NotSyslog:
            return None
    # the day is alike for many lines, and enough to choose a year
    return _in_year(month, int(day), year, clock, fraction or "", received.date(), zone)


@lru_cache(maxsize=1000)
def _in_year(
    month: str, day: int, year: str | None, clock: str, fraction: str, near: date, zone: tzinfo
) -> str | None:
    """The time in the given year, else the last one that is not ahead of when it came."""
    years = [int(year)] if year else [near.year - 1, near.year, near.year + 1]
    number = _MONTHS.index(month) + 1
    found = []
    for one in years:
        try:
            at = datetime.fromisoformat(f"{one:04}-{number:02}-{day:02}T{clock}{_micro(fraction)}")
            found.append(at.replace(tzinfo=zone).astimezone(UTC))
        except (ValueError, OverflowError):
            continue  # the 29th of February, or no time at all
    past = [at for at in found if year or at.date() <= near + _CLOCKS_DIFFER]
    return _iso(past[-1]) if past else None


# -- times


def _stamp(text: str) -> str:
    if _STAMPED.fullmatch(text) is None:
        raise NotSyslog(f'the time "{text[:40]}" is not one of RFC 5424')
    try:
        return _iso(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise NotSyslog(f'the time "{text[:40]}" does not exist') from None


def _micro(fraction: str) -> str:
    return fraction and fraction.ljust(7, "0")


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
