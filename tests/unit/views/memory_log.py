"""A log in memory and a query over it, for subscriptions without Kafka and PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Definition, Kind
from mainstem.errors import MainstemError
from mainstem.views.changes import Change, Evaluated, Selection
from mainstem.views.events import Places
from mainstem.views.served import SnapshotPage
from mainstem.views.source import Positions
from mainstem.vocabulary import Column, Offsets, Record, SourceLocation

COLUMNS = (Column("k", "string"), Column("n", "bigint"))


class MemoryLog:
    """Partitions of some topics; what is appended wakes readers."""

    def __init__(self, *topics: str, partitions: int = 3, grows: bool = False) -> None:
        self.grows = grows
        self.changed = threading.Condition()
        self.data: dict[str, list[list[Record]]] = {}
        self.first: dict[str, list[int]] = {}
        self.partitions = partitions
        self.opened = 0
        self.reading = 0
        self.decoded = 0
        self.kept: float | None = None
        self.away = 0
        """How often PostgreSQL will not answer."""
        for topic in topics:
            self.make(topic)

    def make(self, topic: str) -> None:
        with self.changed:
            self.data[topic] = [[] for _ in range(self.partitions)]
            self.first[topic] = [0] * self.partitions
            self.changed.notify_all()

    def append(self, topic: str, key: str, value: Any) -> None:
        """A row, or None to delete it; its partition follows from the key."""
        with self.changed:
            partition = sum(key.encode()) % self.partitions
            records = self.data[topic][partition]
            text = None if value is None else json.dumps(value).encode()
            records.append(Record(topic, partition, len(records), key.encode(), text, 0))
            self.changed.notify_all()

    # -- ObjectLog

    def topics(self) -> list[str]:
        return sorted(self.data)

    def begins(self, topics: Iterable[str] | None = None) -> Positions:
        wanted = self.data if topics is None else topics
        return {t: dict(enumerate(self.first[t])) for t in wanted if t in self.first}

    def ends(self) -> Positions:
        with self.changed:
            return {t: dict(enumerate(map(len, at))) for t, at in self.data.items()}

    def deletions_kept(self) -> float | None:
        return self.kept

    def open(self, places: Places) -> MemoryReader:
        self.opened += 1
        self.reading += 1
        return MemoryReader(self, places)

    def texts(self, records: list[Record]) -> tuple[list[Record], int]:
        self.decoded += len(records)
        good = [r for r in records if r.value != b'"unreadable"']
        return good, len(records) - len(good)


class MemoryReader:
    def __init__(self, log: MemoryLog, places: Places) -> None:
        self._log = log
        self._at = {t: dict(at) for t, at in places.items()}

    def step(self, max_records: int, timeout: float) -> list[Record]:
        with self._log.changed:
            found = self._take(max_records)
            if not found:
                self._log.changed.wait(timeout)
                found = self._take(max_records)
            return found

    def _take(self, most: int) -> list[Record]:
        found: list[Record] = []
        for topic, at in self._at.items():
            if topic not in self._log.data:
                raise MainstemError("UNKNOWN_TOPIC", topic=topic, suggestion="")
            for partition in at:
                at[partition] = max(at[partition], self._log.first[topic][partition])
                records = self._log.data[topic][partition][at[partition] :]
                some = records[: most - len(found)]
                at[partition] += len(some)
                found += some
        return found

    def positions(self) -> Positions:
        return {t: dict(at) for t, at in self._at.items()}

    def add(self, topic: str, offsets: Offsets) -> None:
        self._at.setdefault(topic, {}).update(offsets)

    def remove(self, topic: str) -> None:
        del self._at[topic]

    def close(self) -> None:
        self._log.reading -= 1


class MemoryQuery:
    """`SELECT * FROM t WHERE n % every = 0`, and how often it was evaluated."""

    def __init__(self, log: MemoryLog, entry: Entry, every: int, evaluated: list[int]) -> None:
        self._log = log
        self._table = entry.definition.kind is Kind.TABLE
        self._every = every
        self._evaluated = evaluated

    async def columns(self) -> tuple[Column, ...]:
        return COLUMNS

    async def changes(self, records: Sequence[Record]) -> Evaluated:
        if self._log.away:
            self._log.away -= 1
            raise MainstemError("VIEW_STORE_UNREACHABLE")
        self._evaluated.append(len(records))
        await asyncio.sleep(0.002)  # as a database: meanwhile the log goes on
        made = [(r, c) for r in records if (c := self._change(r)) is not None]
        return Evaluated(tuple(made), 0)

    def _change(self, record: Record) -> Change | None:
        assert record.key is not None
        key = json.dumps({"k": record.key.decode()})
        row = None if record.value is None else json.loads(record.value)
        matches = row is not None and row["n"] % self._every == 0
        if not self._table:
            return _change("append", key, row) if matches else None
        return _change("upsert" if matches else "delete", key, row if matches else None)

    async def snapshot(self) -> AsyncGenerator[SnapshotPage, None]:
        with self._log.changed:
            ends = self._log.ends()
            records = [r for at in self._log.data.values() for p in at for r in p]
        rows: dict[str, Change] = {}
        for record in records:
            change = self._change(record)
            assert change is not None
            rows.pop(change.key, None)
            if change.kind == "upsert":
                rows[change.key] = change
        yield ends, list(rows.values())


def _change(kind: str, key: str, row: Any) -> Change:
    return Change(kind, json.dumps({"row": row, "key": json.loads(key)}), key)


class MemorySources:
    """One log, and queries over it: the selection's condition is the number `every`."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self.evaluated: list[int] = []
        """How many records each evaluation had."""

    def log(self, entry: Entry) -> MemoryLog:
        return self._log

    def query(self, entry: Entry, selection: Selection) -> MemoryQuery:
        return MemoryQuery(self._log, entry, int(selection.where), self.evaluated)


def entry_of(kind: Kind, topic: str = "t") -> Entry:
    definition = Definition(
        name="t",
        kind=kind,
        topic=topic,
        location=SourceLocation("test.sql", 1, 1),
        text="",
        columns=COLUMNS,
        key=("k",),
    )
    return Entry(definition, fingerprint="f")


def selection(entry: Entry, every: int = 1) -> Selection:
    """All rows, or those whose `n` can be divided."""
    return Selection(entry.definition, "*", str(every), digest=f"q{every}", filtered=every > 1)
