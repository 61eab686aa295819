"""The ledger of late data: records that came too late for a window, with the windows they missed.

It is a topic of one partition, kept for ever. An entry is a JSON document: `flow` (with the
generation), `object`, `topic`, `partition`, `offset`, `timestamp` (of the record), `key` and
`value` (text; `base64:...` for bytes that are none), `windows` (pairs of start and end) and the
`watermark` that had passed their ends. A document with `applied` instead says that all entries of
the flow before that offset of the ledger are in its result; it is written in one transaction with
the rows that APPLY LATE corrected.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing
from mainstem.vocabulary import LATE_TOPIC, Record

_REMEMBERED = ("topic", "partition", "offset", "windows", "watermark")
Window = tuple[str, str]
"""Start and end, ISO 8601 in UTC."""


def ensure_late(admin: Admin, replication_factor: int, max_record_bytes: int) -> None:
    """Makes the topic when it is missing; the largest record fits in, as base64 even."""
    config = {"retention.ms": "-1", "max.message.bytes": str(max_record_bytes * 4 // 3 + 16_384)}
    admin.ensure_topic(TopicSpec(LATE_TOPIC, 1, replication_factor, config))


def late_entry(
    record: Record, flow: str, name: str, windows: list[Window], watermark: str
) -> bytes:
    """The value of an entry: a record that missed windows of a flow."""
    return json.dumps(
        {
            "flow": flow,
            "object": name,
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _text(record.key),
            "value": _text(record.value),
            "windows": windows,
            "watermark": watermark,
        },
        ensure_ascii=False,
    ).encode()


def applied_entry(flow: str, up_to: int) -> Outgoing:
    """Says that all entries of the flow before an offset of the ledger are in its result."""
    return Outgoing(flow.encode(), json.dumps({"flow": flow, "applied": up_to}).encode())


@dataclass(slots=True)
class LateRecords:
    """What waits in the ledger for one flow."""

    entries: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Offset in the ledger and entry without the record's content, oldest first."""

    @property
    def windows(self) -> set[Window]:
        """The windows that the records missed."""
        return {(w[0], w[1]) for _, entry in self.entries for w in entry["windows"]}

    @property
    def sample(self) -> dict[str, Any] | None:
        """Where the newest of them is and what it missed, without its content."""
        if not self.entries:
            return None
        return self.entries[-1][1]


class Ledger:
    """The ledger as far as it was read; for several threads."""

    def __init__(self, connection: Connection, admin: Admin) -> None:
        self._connection = connection
        self._admin = admin
        self._lock = threading.Lock()
        self._position: dict[int, int] = {}
        self._waiting: dict[str, LateRecords] = {}

    def refresh(self) -> None:
        """Reads what was committed since the last time."""
        with self._lock:
            ends = self._admin.all_end_offsets([LATE_TOPIC]).get(LATE_TOPIC, {})
            begins = self._position or self._admin.all_begin_offsets([LATE_TOPIC]).get(
                LATE_TOPIC, {}
            )
            if ends == begins:
                return
            for records in read_range(self._connection, LATE_TOPIC, begins, ends):
                for record in records:
                    self._take(record)
                    self._position[record.partition] = record.offset + 1
            self._position = dict(ends)

    def of(self, flow: str) -> LateRecords:
        """What waits for a flow, by its name with the generation."""
        with self._lock:
            return LateRecords(list(self._waiting.get(flow, LateRecords()).entries))

    def mine(self, document: Mapping[str, Any]) -> bool:
        """True for what is to be read: all of it, here."""
        return True

    def _take(self, record: Record) -> None:
        document = json.loads(record.value or b"{}")
        if not self.mine(document):
            return
        waiting = self._waiting.setdefault(document.get("flow", ""), LateRecords())
        if "applied" in document:
            done = int(document["applied"])
            waiting.entries = [item for item in waiting.entries if item[0] >= done]
        elif "windows" in document:
            # what came late is in the log; here it is only counted and looked up
            kept = {name: document[name] for name in _REMEMBERED}
            waiting.entries.append((record.offset, kept))


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(data).decode()
