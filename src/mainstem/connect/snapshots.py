"""Snapshots of single tables, taken while changes go on: asked for, followed, asked for again.

A connector of Debezium is asked in a topic of signals, and tells in a topic of notices how each
ended. It may forget what it was asked for: it marks a signal as read when it stops, be the snapshot
begun or not. So neither topic ever loses a record, what was asked for and did not end is known from
them alone, and is asked for once more when nothing was heard of it for long. A snapshot that is
taken twice changes nothing: its rows are those that there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

_PATIENCE_SECONDS = 60.0
_TABLE_DONE = "TABLE_SCAN_COMPLETED"
_GOOD = ("SUCCEEDED", "EMPTY")
_WORDS = {"UNKNOWN_SCHEMA": "its definition is not in the history of the connector"}


class Letters(Protocol):
    """What is needed of the log."""

    def send(self, topic: str, key: bytes, value: bytes) -> None:
        """Writes a record, and waits until it is there."""

    def read(self, topic: str, start: int) -> tuple[list[bytes], int]:
        """Values from an offset on, of a topic with one partition, and the offset behind them."""


@dataclass(slots=True)
class Snapshots:
    """Those of one connector. One thread at a time calls; any may read `shown`."""

    letters: Letters
    source: str
    signals: str
    notices: str
    """Topics."""
    _tables: dict[str, str] = field(default_factory=dict)
    """What was asked for: the table, by id, the last one last."""
    _ends: dict[str, str] = field(default_factory=dict)
    """How it ended, in Debezium's word."""
    _heard: dict[str, float] = field(default_factory=dict)
    """When something was heard of it last."""
    _read: dict[str, int] = field(default_factory=dict)

    def look(self, now: float) -> None:
        """Takes up what is new in both topics."""
        for value in self._new(self.signals):
            asked = json.loads(value)
            self._tables[asked["id"]] = asked["table"]
            self._heard[asked["id"]] = now
        for value in self._new(self.notices):
            told = json.loads(value)["payload"]
            if told["id"] not in self._tables:
                continue
            self._heard[told["id"]] = now
            if told["type"] == _TABLE_DONE:
                self._ends[told["id"]] = told["additional_data"].get("status", "")

    def ask(self, table: str, id: str, now: float) -> None:
        """Asks for a snapshot, unless that was done under this id."""
        if id not in self._tables:
            self._send(table, id, now)

    def remind(self, now: float) -> None:
        """Asks once more for what nothing was heard of for long."""
        for id, table in self._tables.items():
            if id not in self._ends and now - self._heard[id] >= _PATIENCE_SECONDS:
                self._send(table, id, now)

    def shown(self) -> Mapping[str, str]:
        """Of each table how its last snapshot is: `running`, `done`, or what went wrong."""
        last = {table: id for id, table in list(self._tables.items())}
        return {table: self._word(id) for table, id in sorted(last.items())}

    def failed(self) -> tuple[str, str] | None:
        """A table whose last snapshot went wrong, and why."""
        bad = ((t, word) for t, word in self.shown().items() if word not in ("running", "done"))
        return next(bad, None)

    def _word(self, id: str) -> str:
        end = self._ends.get(id)
        if end is None:
            return "running"
        return "done" if end in _GOOD else _WORDS.get(end, end.lower().replace("_", " "))

    def _new(self, topic: str) -> list[bytes]:
        values, self._read[topic] = self.letters.read(topic, self._read.get(topic, 0))
        return values

    def _send(self, table: str, id: str, now: float) -> None:
        wanted = {"type": "incremental", "data-collections": [re.escape(table)]}
        said = {"id": id, "type": "execute-snapshot", "data": wanted, "table": table}
        self.letters.send(self.signals, self.source.encode(), json.dumps(said).encode())
        self._tables[id] = table
        self._heard[id] = now
