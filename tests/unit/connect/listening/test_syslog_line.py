"""Syslog messages: the examples of the RFCs, and what senders make of them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from mainstem.connect.listening.syslog_line import COLUMNS, NotSyslog, read_line

NOW = datetime(2026, 11, 16, 6, 0, tzinfo=UTC)
NOW_TEXT = "2026-11-16T06:00:00Z"


def read(text, received=NOW, zone="UTC"):
    return read_line(text, received, ZoneInfo(zone))


RFC_5424 = {
    "example 1, with a BOM": (
        "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - "
        "\ufeff'su root' failed for lonvick on /dev/pts/8",
        {
            "facility": "auth", "facility_number": 4, "severity": "crit", "severity_number": 2,
            "at": "2003-10-11T22:14:15.003000Z", "host": "mymachine.example.com", "app": "su",
            "procid": None, "msgid": "ID47", "structured": None,
            "message": "'su root' failed for lonvick on /dev/pts/8",
        },
    ),
    "example 2, microseconds and an offset": (
        "<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time.",
        {
            "facility": "local4", "severity": "notice", "at": "2003-08-24T12:14:15.000003Z",
            "host": "192.0.2.1", "procid": "8710", "msgid": None, "message": "%% It's time.",
        },
    ),
    "example 3, structured data": (
        '<165>1 2003-10-11T22:14:15.003Z h evntslog - ID47 [exampleSDID@32473 iut="3" '
        'eventSource="Application" eventID="1011"] \ufeffAn application event log entry...',
        {
            "structured": {
                "exampleSDID@32473": {"iut": "3", "eventSource": "Application", "eventID": "1011"}
            },
            "message": "An application event log entry...",
        },
    ),
    "example 4, structured data alone": (
        '<165>1 2003-10-11T22:14:15.003Z h evntslog - ID47 [exampleSDID@32473 iut="3"]'
        '[examplePriority@32473 class="high"]',
        {
            "structured": {
                "exampleSDID@32473": {"iut": "3"},
                "examplePriority@32473": {"class": "high"},
            },
            "message": None,
        },
    ),
    "all that may be nil": (
        "<0>1 - - - - - -",
        {
            "facility": "kern", "severity": "emerg", "at": NOW_TEXT, "host": None, "app": None,
            "procid": None, "msgid": None, "structured": None, "message": None,
        },
    ),
    "escapes in a value": (
        r'<14>1 - - - - - [a@1 q="say \"hi\"" b="c:\\x" s="[\]" o="\n"] m',
        {"structured": {"a@1": {"q": 'say "hi"', "b": "c:\\x", "s": "[]", "o": "\\n"}}},
    ),
    "an element without parameters": ("<14>1 - - - - - [a@1] m", {"structured": {"a@1": {}}}),
    "a parameter that is there twice": (
        '<14>1 - - - - - [origin ip="192.0.2.1" ip="192.0.2.129"] m',
        {"structured": {"origin": {"ip": "192.0.2.1", "ip[2]": "192.0.2.129"}}},
    ),
    "a message with line feeds": ("<14>1 - - - - - - one\ntwo", {"message": "one\ntwo"}),
    "a message that begins with spaces": ("<14>1 - - - - - -   m", {"message": "  m"}),
    "the largest priority": ("<191>1 - - - - - - m", {"facility": "local7", "severity": "debug"}),
}  # fmt: skip

RFC_3164 = {
    "example 1": (
        "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
        {
            "facility": "auth", "severity": "crit", "at": "2026-10-11T22:14:15Z",
            "host": "mymachine", "app": "su", "procid": None, "structured": None,
            "message": "'su root' failed for lonvick on /dev/pts/8",
        },
    ),
    "example 2, no tag": (
        "<13>Feb  5 17:32:18 10.0.0.99 Use the BFG!",
        {"at": "2026-02-05T17:32:18Z", "host": "10.0.0.99", "app": None, "message": "Use the BFG!"},
    ),
    "example 4, no time that can be read": (
        "<0>1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All!",
        {
            "at": NOW_TEXT, "host": None,
            "message": "1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: "
            "That's All!",
        },
    ),
    "a process": (
        "<38>Nov 16 05:59:58 web1 sshd[4721]: Failed password for root",
        {"app": "sshd", "procid": "4721", "message": "Failed password for root"},
    ),
    "rsyslog's forward format": (
        "<38>2026-11-16T05:59:58.123456+01:00 web1 sshd[4721]: Failed password",
        {"at": "2026-11-16T04:59:58.123456Z", "host": "web1", "app": "sshd"},
    ),
    "a year": ("<13>Oct 11 2003 22:14:15 h a: m", {"at": "2003-10-11T22:14:15Z", "host": "h"}),
    "milliseconds": ("<13>Oct 11 22:14:15.25 h a: m", {"at": "2026-10-11T22:14:15.250000Z"}),
    "no host, as programs write it to the local socket": (
        "<13>Oct 11 22:14:15 su[12]: m", {"host": None, "app": "su", "procid": "12"},
    ),
    "an IPv6 host": ("<13>Oct 11 22:14:15 fe80::1 a: m", {"host": "fe80::1", "app": "a"}),
    "last year's December": ("<13>Dec 31 23:59:59 h a: m", {"at": "2025-12-31T23:59:59Z"}),
    "nothing but a text": ("<13>hello there", {"at": NOW_TEXT, "message": "hello there"}),
    "a tag without a header": ("<13>su: m", {"app": "su", "message": "m"}),
    "nothing behind the priority": ("<13>", {"message": "", "host": None}),
    "a time that does not exist": (
        "<13>Feb 31 10:00:00 h a: m",
        {"at": NOW_TEXT, "message": "Feb 31 10:00:00 h a: m"},
    ),
}  # fmt: skip

REFUSED = {
    "no priority": ("hello", "priority"),
    "nothing": ("", "priority"),
    "a priority that is too large": ("<192>1 - - - - - - m", "192"),
    "a priority of four digits": ("<0034>m", "priority"),
    "nine digits of a second, the RFC's example of a bad time": (
        "<165>1 2003-08-24T05:14:15.000000003-07:00 192.0.2.1 myproc 8710 - - m", "time",
    ),
    "a time without a zone": ("<13>1 2003-08-24T05:14:15 h a - - - m", "time"),
    "a month that does not exist": ("<13>1 2003-13-24T05:14:15Z h a - - - m", "does not exist"),
    "too few fields": ("<13>1 2003-08-24T05:14:15Z h", "app name"),
    "no structured data": ("<13>1 - h a - -", "structured data is missing"),
    "structured data that is not closed": ('<13>1 - h a - - [a@1 b="c" m', "cannot be read"),
    "structured data without quotes": ("<13>1 - h a - - [a@1 b=c] m", "cannot be read"),
    "an element that is there twice": ("<13>1 - h a - - [a@1][a@1] m", "twice"),
    "no space behind it": ("<13>1 - h a - - [a@1]m", "space"),
    "a host that is not ASCII": ("<13>1 - h\u00f6st a - - - m", "not ASCII"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), RFC_5424.values(), ids=RFC_5424)
def test_rfc_5424(text, expected):
    row = read(text)
    assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize(("text", "expected"), RFC_3164.values(), ids=RFC_3164)
def test_rfc_3164(text, expected):
    row = read(text)
    assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_message_is_refused_with_the_reason(text, why):
    with pytest.raises(NotSyslog, match=why):
        read(text)


def test_a_row_has_all_columns_and_the_whole_line():
    for text in ("<13>1 - - - - - - m", "<13>m"):
        row = read(text)
        assert {*row, "peer"} == {column.name for column in COLUMNS}
        assert row["raw"] == text


def test_the_year_is_the_last_that_is_not_ahead():
    new_year = datetime(2027, 1, 1, 0, 0, 5, tzinfo=UTC)
    assert read("<13>Dec 31 23:59:59 h a: m", new_year)["at"] == "2026-12-31T23:59:59Z"
    assert read("<13>Jan  1 00:00:01 h a: m", new_year)["at"] == "2027-01-01T00:00:01Z"
    old_year = datetime(2026, 12, 31, 23, 59, 58, tzinfo=UTC)
    assert read("<13>Jan  1 00:00:01 h a: m", old_year)["at"] == "2027-01-01T00:00:01Z"
    leap = datetime(2028, 3, 1, tzinfo=UTC)
    assert read("<13>Feb 29 10:00:00 h a: m", leap)["at"] == "2028-02-29T10:00:00Z"


def test_clocks_that_do_not_say_where_they_are():
    row = read("<13>Jul  1 12:00:00 h a: m", zone="Europe/Berlin")
    assert row["at"] == "2026-07-01T10:00:00Z"
    row = read("<13>1 2026-07-01T12:00:00Z h a - - - m", zone="Europe/Berlin")
    assert row["at"] == "2026-07-01T12:00:00Z"
