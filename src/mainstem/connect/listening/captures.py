"""What each kind of source that listens brings: nothing is asked, the options say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from mainstem.connect.capture import Captured
from mainstem.connect.listening.options import address_of, invalid, stream_of
from mainstem.connect.listening.syslog_line import COLUMNS
from mainstem.errors import did_you_mean

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
        except (OSError, ValueError):
            zone = options["timezone"]
            raise invalid("timezone", zone, "there is no such zone", "'Europe/Berlin'") from None
        return (stream_of(name, options, COLUMNS, key=("host",), event_time="at"),)
