"""Push queries: a snapshot, then every change, and a token on each event to go on from.

A table's subscription begins with the rows of one PostgreSQL snapshot and the offsets that belong
to it; then it reads the log from exactly those offsets, so between the two nothing is missing and
nothing comes twice. A stream's subscription begins at the end of the log; a topic that joins a
wildcard stream later is read from its beginning. A client that resumes
with the token of the last event it saw gets the changes behind it and no others; a token from
inside a snapshot starts the snapshot again, since a part of one is of no use.

The generator is pulled: the log is read only as fast as the client takes events. Reading blocks,
so it happens in threads of a small pool, one for each open subscription.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import psycopg

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Format, Kind
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.schemas.codec import Codec, NotDecoded
from mainstem.views.batch import record_text
from mainstem.views.changes import Change, Evaluated, Evaluation, Selection
from mainstem.views.readers import AsyncConnection, Readers, translate
from mainstem.views.times import iso_utc
from mainstem.views.tokens import Token
from mainstem.views.values import json_names
from mainstem.vocabulary import Offsets, Record

_HEARTBEAT_SECONDS = 5.0
_POLL_SECONDS = 0.5
_BATCH = 1000
_PAGE = 500
_MOST_KNOWN_KEYS = 100_000
_LOOK_FOR_TOPICS_SECONDS = 1.0
_FETCH = {"fetch.wait.max.ms": 100, "queued.max.messages.kbytes": 4096}
"""A reader for one client must be quick to answer and small."""

CurrentEntry = Callable[[str], Entry | None]
"""The catalog's entry of that name, now."""


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event: its name, its data as JSON text, and the token behind it."""

    name: str
    data: str
    id: str


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a client asked for."""

    entry: Entry
    selection: Selection
    snapshot: bool = True
    after: Token | None = None
    limit: int | None = None
    """Ends after so many rows and deletions."""


class Push:
    """Opens subscriptions; one for the whole process."""

    def __init__(
        self,
        connection: Connection,
        admin: Admin,
        readers: Readers,
        current: CurrentEntry,
        codec: Codec,
        most: int = 64,
    ) -> None:
        self._codec = codec
        self._connection = connection
        self._admin = admin
        self._readers = readers
        self._current = current
        self._most = most
        self._open = 0
        self._stopping = False
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="push")

    @property
    def open_subscriptions(self) -> int:
        """How many clients are being served."""
        return self._open

    def stop(self) -> None:
        """Let all subscriptions end within a moment. Takes no lock: signal handlers call it."""
        self._stopping = True

    def close(self) -> None:
        """Give up the threads, after `stop`."""
        self._threads.shutdown(wait=False)

    async def subscribe(self, wanted: Subscription) -> AsyncGenerator[Event, None]:
        """The events of a subscription; the caller closes the generator when the client leaves.

        What is wrong from the beginning is raised before the first event; what goes wrong later
        is an event `error` with the problem, and the end.
        """
        if self._open >= self._most:
            raise MainstemError("TOO_MANY_SUBSCRIPTIONS", limit=self._most)
        self._open += 1
        run = _Run(self, wanted)
        try:
            async with aclosing(run.events()) as events:
                async for event in events:
                    yield event
        finally:
            self._open -= 1
            await run.close()

    async def _in_thread(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)


class _LogReader:
    """A reader of the log that threads of the pool use one after another."""

    def __init__(self, connection: Connection, offsets: Mapping[str, Offsets]) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._reader = Reader(connection, offsets, committed=True, tuning=_FETCH)

    def poll(self) -> tuple[list[Record], dict[str, dict[int, int]]]:
        """New records, or none after a while, and the positions behind them."""
        with self._lock:
            if self._closed:
                return [], {}
            records = self._reader.poll(_BATCH, _POLL_SECONDS)
            return records, self._reader.positions()

    def change(self, new: Mapping[str, Offsets], gone: Iterable[str]) -> None:
        """Read other topics from now on."""
        with self._lock:
            if self._closed:
                return
            for topic in gone:
                self._reader.remove(topic)
            for topic, offsets in new.items():
                self._reader.add(topic, offsets)

    def close(self) -> None:
        """End, after the poll that is under way."""
        with self._lock:
            self._closed = True
            self._reader.close()


class _Run:
    """One subscription from its first event to its last."""

    def __init__(self, push: Push, wanted: Subscription) -> None:
        self._push = push
        self._wanted = wanted
        self._entry = wanted.entry
        self._definition = wanted.entry.definition
        self._keys = self._definition.keys
        self._evaluation = Evaluation(wanted.selection)
        self._names: tuple[str, ...] = ()
        # by topic; None: the snapshot has yet to say them
        self._offsets: dict[str, dict[int, int]] | None = None
        self._skipped = 0
        self._sent = 0
        self._spoke_at = time.monotonic()
        self._checked_at = 0.0
        self._looked_at = 0.0
        self._reader: _LogReader | None = None
        # keys that the client has; None: not known, so every deletion is sent
        self._known: set[str] | None = None

    async def close(self) -> None:
        if self._reader is not None:
            # not the pool: it may be shut down or full, and a poll may be under way
            await asyncio.to_thread(self._reader.close)

    async def events(self) -> AsyncGenerator[Event, None]:
        await self._begin()
        async with self._push._readers.single() as connection:
            columns = await self._evaluation.columns(connection)
        self._names = json_names([c.name for c in columns])
        described = json.dumps([{"name": c.name, "type": c.type} for c in columns])
        yield Event("columns", described, self._token())
        try:
            if self._needs_snapshot:
                async with aclosing(self._snapshot()) as rows:
                    async for event in rows:
                        yield event
                if self._finished:
                    return
            yield self._progress()
            async with aclosing(self._follow()) as changes:
                async for event in changes:
                    yield event
        except psycopg.Error as error:
            yield self._error(translate(error, self._push._readers.timeout_seconds))
        except MainstemError as error:
            yield self._error(error)

    # -- where it begins

    @property
    def _needs_snapshot(self) -> bool:
        return self._offsets is None

    async def _begin(self) -> None:
        """Set the offsets to go on from, unless a snapshot has to say them."""
        wanted, token = self._wanted, self._wanted.after
        if token is not None:
            if token.name != self._entry.name or token.generation != self._entry.served_generation:
                raise MainstemError(
                    "RESUME_TOKEN_INVALID", problem="what it belongs to was rebuilt or is another"
                )
            if token.offsets is not None:
                await self._check_offsets(token.offsets)
                return
        if self._definition.kind is Kind.STREAM or not wanted.snapshot:
            self._offsets = await self._ask(self._push._admin.all_end_offsets)

    async def _check_offsets(self, offsets: Mapping[str, Offsets]) -> None:
        begin = await self._ask(self._push._admin.all_begin_offsets)
        end = await self._ask(self._push._admin.all_end_offsets)
        # topics of a pattern that were deleted since are left behind
        places = [(t, p, o) for t, at in offsets.items() if t in begin for p, o in at.items()]
        if any(offset < begin[t].get(p, 0) for t, p, offset in places):
            raise MainstemError(
                "RESUME_TOKEN_INVALID", problem="the log no longer has the records behind it"
            )
        if any(offset > end.get(t, {}).get(p, 0) for t, p, offset in places):
            raise MainstemError("RESUME_TOKEN_INVALID", problem="it lies behind the log's end")
        # what was added since the token was made, partition or topic, is read from its beginning
        self._offsets = {
            topic: {p: offsets.get(topic, {}).get(p, first) for p, first in at.items()}
            for topic, at in begin.items()
        }

    async def _ask(
        self, question: Callable[[Iterable[str]], dict[str, dict[int, int]]]
    ) -> dict[str, dict[int, int]]:
        def ask() -> dict[str, dict[int, int]]:
            answer = question(self._push._admin.topics_of(self._definition))
            if not answer and self._definition.pattern is None:
                raise MainstemError("UNKNOWN_TOPIC", topic=self._definition.topic, suggestion="")
            return answer

        answer: dict[str, dict[int, int]] = await self._push._in_thread(ask)
        return answer

    # -- the snapshot

    async def _snapshot(self) -> AsyncGenerator[Event, None]:
        known: set[str] = set()
        readers = self._push._readers

        async def begun() -> None:
            async with readers.single() as connection:
                await self._position(connection)

        await readers.when_served(begun)
        async with readers.snapshot() as connection:
            offsets = await self._position(connection)
            async with psycopg.AsyncRawServerCursor(connection, "snapshot") as rows:
                await rows.execute(self._evaluation.snapshot)
                while page := await rows.fetchmany(_PAGE):
                    for row in page:
                        change = self._evaluation.upsert(self._names, row)
                        known.add(change.key)
                        yield self._event(change)
                        if self._finished:
                            return
                    self._check_current()
        self._offsets = {self._definition.topic: offsets}
        self._known = known if len(known) <= _MOST_KNOWN_KEYS else None

    async def _position(self, connection: AsyncConnection) -> dict[int, int]:
        """Where the table's view is in its topic."""
        cursor = await connection.execute(
            "SELECT partition, next_offset FROM _mainstem.offsets WHERE view = $1",
            [self._entry.name],
        )
        offsets = {int(p): int(o) for p, o in await cursor.fetchall()}
        if not offsets:
            raise MainstemError("VIEW_NOT_READY", name=self._entry.name)
        return offsets

    # -- the changes

    async def _follow(self) -> AsyncGenerator[Event, None]:
        reader = await self._open_reader()
        while not self._push._stopping:
            self._check_current()
            await self._look_for_topics(reader)
            try:
                records, positions = await self._push._in_thread(reader.poll)
            except MainstemError as error:
                if error.code != "UNKNOWN_TOPIC" or self._definition.pattern is None:
                    raise
                # a topic was deleted; what came together with that news is read once more
                reader = await self._open_reader()
                continue
            if records:
                await self._check_gap(records)
                for change in await self._changes(records):
                    yield change
                    if self._finished:
                        return
            for topic, at in positions.items():
                self._place(topic).update(at)
            if time.monotonic() - self._spoke_at >= _HEARTBEAT_SECONDS:
                yield self._progress()

    async def _open_reader(self) -> _LogReader:
        """A reader from where the client is; it takes the place of the one before."""
        await self.close()
        offsets = self._offsets or {}
        self._looked_at = time.monotonic()
        if self._definition.pattern is not None:
            there = await self._push._in_thread(self._push._admin.topics_of, self._definition)
            self._offsets = offsets = {t: at for t, at in offsets.items() if t in there}
        self._reader = _LogReader(self._push._connection, offsets)
        return self._reader

    async def _look_for_topics(self, reader: _LogReader) -> None:
        """Take up topics of a pattern that were made, from their beginning; leave deleted ones."""
        waited = time.monotonic() - self._looked_at
        if self._definition.pattern is None or waited < _LOOK_FOR_TOPICS_SECONDS:
            return
        self._looked_at = time.monotonic()
        offsets = self._offsets or {}
        admin = self._push._admin
        there = await self._push._in_thread(admin.topics_of, self._definition)
        new = [topic for topic in there if topic not in offsets]
        gone = offsets.keys() - set(there)
        if new or gone:
            begins = await self._push._in_thread(admin.all_begin_offsets, new)
            await self._push._in_thread(reader.change, begins, gone)
            kept = {topic: at for topic, at in offsets.items() if topic not in gone}
            self._offsets = {**kept, **begins}

    def _place(self, topic: str) -> dict[int, int]:
        """Where the client is in a topic."""
        if self._offsets is None:
            self._offsets = {}
        return self._offsets.setdefault(topic, {})

    async def _changes(self, records: list[Record]) -> Iterator[Event]:
        texts, bad = records, 0
        if self._definition.format is not Format.JSON or self._keys is not None:
            texts, bad = await self._push._in_thread(self._texts, records)
        evaluated = await self._evaluation.changes(self._push._readers, self._names, texts)
        self._skipped += evaluated.skipped + bad
        return self._told(evaluated)

    def _texts(self, records: list[Record]) -> tuple[list[Record], int]:
        """The records with keys and values as JSON; and how many there were that cannot be read.

        Records of another name are neither.
        """
        made, bad = [], 0
        definition, codec = self._definition, self._push._codec
        for record in records:
            try:
                if codec.is_own(definition, record.value):
                    made.append(record_text(record, definition, self._keys, codec))
            except NotDecoded:
                bad += 1
        return made, bad

    def _told(self, evaluated: Evaluated) -> Iterator[Event]:
        for record, change in evaluated.changes:
            self._place(record.topic)[record.partition] = record.offset + 1
            if self._concerns(change):
                yield self._event(change)

    def _concerns(self, change: Change) -> bool:
        """False for the deletion of a row that the client never had."""
        if self._known is None:
            return True
        if change.kind == "delete":
            had = change.key in self._known
            self._known.discard(change.key)
            return had
        self._known.add(change.key)
        if len(self._known) > _MOST_KNOWN_KEYS:
            self._known = None
        return True

    def _check_current(self) -> None:
        """Stop when the object was dropped or rebuilt: its changes are no longer these."""
        now = self._push._current(self._entry.name)
        if now is None:
            raise MainstemError("UNKNOWN_RELATION", name=self._entry.name, suggestion="")
        if now.served_generation != self._entry.served_generation:
            raise MainstemError("RESUME_TOKEN_INVALID", problem="the object was rebuilt")

    async def _check_gap(self, records: list[Record]) -> None:
        """Notice when the log dropped records before this client had taken them.

        Holes are normal (markers of transactions, compaction), so only the log's beginning tells.
        """
        first: dict[tuple[str, int], int] = {}
        for record in records:
            first.setdefault((record.topic, record.partition), record.offset)
        hole = any(offset > self._place(t).get(p, offset) for (t, p), offset in first.items())
        if hole and time.monotonic() - self._checked_at > 1.0:
            self._checked_at = time.monotonic()
            begin = await self._ask(self._push._admin.all_begin_offsets)
            if any(self._place(t).get(p, 0) < begin.get(t, {}).get(p, 0) for t, p in first):
                raise MainstemError(
                    "RESUME_TOKEN_INVALID", problem="the log dropped records before they were sent"
                )

    # -- events

    @property
    def _finished(self) -> bool:
        return self._wanted.limit is not None and self._sent >= self._wanted.limit

    def _token(self) -> str:
        return Token(self._entry.name, self._entry.served_generation, self._offsets).encode()

    def _event(self, change: Change) -> Event:
        self._sent += 1
        self._spoke_at = time.monotonic()
        return Event(change.kind, change.data, self._token())

    def _progress(self) -> Event:
        self._spoke_at = time.monotonic()
        data = {"snapshot_complete": True, "at": iso_utc(time.time()), "skipped": self._skipped}
        return Event("progress", json.dumps(data), self._token())

    def _error(self, error: MainstemError) -> Event:
        return Event("error", json.dumps(error.problem()), self._token())
