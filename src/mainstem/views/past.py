"""What lies between a client and the live end of the log, read for that client alone, in rounds.

A round is bounded in records, bytes and time, and its reader ends with it: a client that takes its
time holds neither a thread nor a connection to the broker while it does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from mainstem.views.events import Places
from mainstem.views.source import ObjectLog, Positions, check_hole, reached
from mainstem.vocabulary import Record

_MOST_RECORDS = 2_000
_MOST_BYTES = 1024 * 1024
_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Round:
    """What a round has brought: records as text, how many could not be read, and how far it got."""

    records: list[Record]
    unreadable: int
    end: Positions


def read_round(log: ObjectLog, start: Places, goal: Places) -> Round:
    """The next records from `start` on; ends at the latest when it is past `goal`. Blocks."""
    reader = log.open(start)
    try:
        records: list[Record] = []
        size = 0
        deadline = time.monotonic() + _SECONDS
        while True:
            found = reader.step(_MOST_RECORDS - len(records), deadline - time.monotonic())
            records += found
            size += sum(len(record.value or b"") for record in found)
            end = reader.positions()
            enough = len(records) >= _MOST_RECORDS or size >= _MOST_BYTES
            if enough or reached(end, goal) or time.monotonic() >= deadline:
                break
    finally:
        reader.close()
    check_hole(log, start, records)
    texts, unreadable = log.texts(records)
    return Round(texts, unreadable, end)
