"""Syslog lines -> records of the log: rows of the stream, or of the quarantine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from mainstem.connect.listening.intake import Line
from mainstem.connect.listening.syslog_line import NotSyslog, read_line
from mainstem.errors import MainstemError
from mainstem.log.producer import Outgoing
from mainstem.log.quarantine import quarantined
from mainstem.vocabulary import QUARANTINE_TOPIC, Record

STAGE = "source"
CODE = "NOT_SYSLOG"
_NOWHERE = -1
"""Partition and offset of what has never been in a topic."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@lru_cache(maxsize=10)
def _moment(received: float) -> datetime:
    # lines that were read together have the same
    return datetime.fromtimestamp(received, UTC)


class SyslogRecords:
    """Makes the records for one stream. Threads may share it."""

    def __init__(
        self, stream: str, topic: str, zone: ZoneInfo, charset: str, max_record_bytes: int
    ) -> None:
        self._stream = stream
        self._topic = topic
        self._zone = zone
        self._charset = charset
        self._most = max_record_bytes

    def make(self, lines: Sequence[Line]) -> tuple[list[Outgoing], int]:
        """The records in the order of the lines, and how many of them go to the quarantine."""
        records, refused = [], 0
        for line in lines:
            try:
                records.append(self._record(line))
            except NotSyslog as problem:
                refused += 1
                records.append(self._refused(line, str(problem)))
        return records, refused

    def _record(self, line: Line) -> Outgoing:
        if line.problem is not None:
            raise NotSyslog(line.problem)
        try:
            text = line.data.decode(self._charset)
        except UnicodeDecodeError as error:
            where = f"at byte {error.start}"
            raise NotSyslog(f"it is not {self._charset} text ({where}); see `charset`") from None
        row = read_line(text, _moment(line.received), self._zone)
        row["peer"] = line.peer
        value = _encode(row).encode()
        key = None if row["host"] is None else row["host"].encode()
        if len(value) + len(key or b"") > self._most:
            raise NotSyslog(f"its row of {len(value)} bytes is more than the log takes")
        return Outgoing(key, value, timestamp=int(line.received * 1000))

    def _refused(self, line: Line, problem: str) -> Outgoing:
        origin = Record(
            self._topic,
            _NOWHERE,
            _NOWHERE,
            None,
            line.data,
            int(line.received * 1000),
            (("peer", line.peer.encode()),),
        )
        error = MainstemError(CODE, problem=problem)
        made = quarantined(
            origin,
            stage=STAGE,
            reader=self._stream,
            code=error.code,
            cause=error.message,
            at=line.received,
        )
        return replace(made, topic=QUARANTINE_TOPIC)
