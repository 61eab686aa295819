"""The nouns that every package shares: a place in a text, a column, a record, a clock."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

Offsets = Mapping[int, int]
"""Partition -> next offset to read, for one topic."""

INTERNAL_PREFIX = "_mainstem."
CATALOG_TOPIC = INTERNAL_PREFIX + "catalog"
STATUS_TOPIC = INTERNAL_PREFIX + "status"
COMMITS_TOPIC = INTERNAL_PREFIX + "commits"
QUARANTINE_TOPIC = INTERNAL_PREFIX + "quarantine"
QUARANTINE_STATES_TOPIC = INTERNAL_PREFIX + "quarantine.states"
QUARANTINE_COUNTS_TOPIC = INTERNAL_PREFIX + "quarantine.counts"
LATE_TOPIC = INTERNAL_PREFIX + "late"
CHANGELOG_PREFIX = INTERNAL_PREFIX + "state."
"""Before the topic of a stateful function: the topic of what it keeps."""
TICKS_PREFIX = INTERNAL_PREFIX + "ticks."
"""Before the topic of a stateful function: the topic that wakes it when a timer is due."""
BACKFILL_PREFIX = INTERNAL_PREFIX + "backfill."
"""Before the topic of a table and a generation: what a backfill of it has computed so far."""
LEDGER_TOPIC = INTERNAL_PREFIX + "ledger"
"""What must be decided once, whichever gateway is asked: see log/ledger."""
REQUESTS_TOPIC = INTERNAL_PREFIX + "requests"
REPLIES_TOPIC = INTERNAL_PREFIX + "replies"

METADATA_COLUMNS: dict[str, str] = {
    "_key": "string",
    "_topic": "string",
    "_partition": "int",
    "_offset": "bigint",
    "_timestamp": "timestamp",
    "_headers": "array<struct<key:string,value:binary>>",
}
"""Columns that every stream has beside its own, and their Spark types."""

EVENT_TIME = "_event_time"
"""A stream's event time, however it is declared: a column for Spark's eyes only."""
RESERVED_COLUMNS = (*METADATA_COLUMNS, EVENT_TIME)
"""Names that no column of a stream or table may have."""

HIDDEN_PREFIX = "_mainstem_"
"""Columns with such names exist inside the engine only."""


def group_of(flow: str) -> str:
    """The consumer group under which every Kafka tool sees the flow's position."""
    return f"mainstem.{flow}"


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A place in a text: 1-based line and column, and the line itself for the caret."""

    file: str
    line: int
    column: int
    snippet: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `type` is Spark's simple string, such as `bigint` or `array<string>`."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the log. `timestamp` is in milliseconds since the epoch."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...] = field(default=())


class Clock(Protocol):
    """Wall-clock time as an input: code that needs the time takes a clock."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()
