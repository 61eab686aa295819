"""What each kind of source that listens brings: nothing is asked, the options say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from mainstem.connect.capture import Captured
from mainstem.connect.listening.column_list import columns_of, read_columns
from mainstem.connect.listening.made_values import maker
from mainstem.connect.listening.options import address_of, invalid, stream_of
from mainstem.connect.listening.request_ids import RequestId
from mainstem.connect.listening.syslog_line import COLUMNS
from mainstem.connect.listening.webhook import RAW_COLUMNS
from mainstem.definitions.event_time import TIME_TYPES
from mainstem.errors import did_you_mean
from mainstem.vocabulary import Column

_PROTOCOLS = ("udp", "tcp")


class SyslogCapture:
    """A `Capture`."""

    def look(self, name: str, options: Mapping[str, Any]) -> tuple[Captured, ...]:
        """The stream of messages."""
        address_of(options["listen"])
        for protocol in options["protocols"]:
            if protocol not in _PROTOCOLS:
                problem = f"it is neither udp nor tcp.{did_you_mean(protocol, _PROTOCOLS)}"
                raise invalid("protocols", protocol, problem, "'udp, tcp'")
        try:
            ZoneInfo(options["timezone"])
        except (OSError, ValueError, KeyError):
            zone = options["timezone"]
            raise invalid("timezone", zone, "there is no such zone", "'Europe/Berlin'") from None
        return (stream_of(name, options, COLUMNS, key=("host",), event_time="at"),)


class WebhookCapture:
    """A `Capture`."""

    def look(self, name: str, options: Mapping[str, Any]) -> tuple[Captured, ...]:
        """The stream of requests: of the columns that are given, or of whole bodies."""
        if (options["signature"] is None) is not (options["secret"] is None):
            given, lacking = (
                ("signature", "secret") if options["signature"] else ("secret", "signature")
            )
            example = "'${env:HOOK_SECRET}'" if lacking == "secret" else "'github'"
            problem = f"the option {lacking} has to be there, too"
            raise invalid(given, "...", problem, f"... and {lacking} = {example}")
        if options["header"] is not None and options["signature"] is None:
            raise invalid("header", options["header"], "there is no signature", "'X-Signature'")
        if options["id"] is not None:
            RequestId(options["id"])
        if options["columns"] is None:
            for option in ("key", "event_time"):
                if options[option] is not None:
                    problem = "it needs the option columns"
                    raise invalid(option, str(options[option]), problem, "'id'")
            return (stream_of(name, options, RAW_COLUMNS, event_time="at"),)
        return typed_stream(name, options, columns_of(read_columns(options["columns"])))


class GeneratorCapture:
    """A `Capture`."""

    def look(self, name: str, options: Mapping[str, Any]) -> tuple[Captured, ...]:
        """The stream of what is made up."""
        columns = read_columns(options["columns"], made=True)
        for declared in columns:
            maker(declared)
        return typed_stream(name, options, columns_of(columns))


def typed_stream(
    name: str, options: Mapping[str, Any], columns: tuple[Column, ...]
) -> tuple[Captured, ...]:
    """A stream with columns that are given, of which some may be key and event time."""
    key = options["key"] or ()
    for column in key:
        type_of(columns, "key", column)
    event_time = options["event_time"]
    if event_time is not None and type_of(columns, "event_time", event_time) not in TIME_TYPES:
        raise invalid("event_time", event_time, "it is no TIMESTAMP", "'at'")
    return (stream_of(name, options, columns, key=key, event_time=event_time),)


def type_of(columns: tuple[Column, ...], option: str, name: str) -> str:
    """The type of a column that an option names."""
    for column in columns:
        if column.name == name:
            return column.type
    near = did_you_mean(name, [column.name for column in columns])
    raise invalid(option, name, f"there is no such column.{near}", f"'{columns[0].name}'")
