"""Push queries: a snapshot, then every change, and a token on each event to go on from.

A table's subscription begins with the rows of one PostgreSQL snapshot and the offsets that belong
to it; then it reads the log from exactly those offsets, so between the two nothing is missing and
nothing comes twice. A stream's subscription begins at the end of the log; a topic that joins a
wildcard stream later is read from its beginning. A client that resumes with the token of the last
event it saw gets the changes behind it and no others; a token from inside a snapshot starts the
snapshot again, since a part of one is of no use.

However many there are, an object is read from the log once (`feed`) and a query is evaluated once
(`live`); only a client that is behind reads for itself (`past`) until it is not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Protocol, TypeVar

from mainstem.catalog.entry import Entry
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.schemas.codec import Codec
from mainstem.views.changes import Selection
from mainstem.views.events import Piece, Places
from mainstem.views.feed import Feed
from mainstem.views.live import KeyBudget, Live, Voice
from mainstem.views.readers import Readers
from mainstem.views.served import PushQuery, ServedQuery, Turns
from mainstem.views.source import KafkaLog, ObjectLog
from mainstem.views.subscriber import Run, Subscription

T = TypeVar("T")

MOST_SUBSCRIPTIONS = 1_000
_THREADS = 16
"""For questions to the log; and as many for clients that read it by themselves."""
_LINGER_SECONDS = 30.0
"""How long a feed and a query go on without a client: many come back at once."""
_REACH = 10_000
_MARGIN = 2_000
"""Records before the first client that a feed begins with at most: others may be behind it."""

CurrentEntry = Callable[[str], Entry | None]
"""The catalog's entry of that name, now."""


class Sources(Protocol):
    """Where objects are read from and queries are answered."""

    def log(self, entry: Entry) -> ObjectLog:
        """The log of an object."""
        ...

    def query(self, entry: Entry, selection: Selection) -> PushQuery:
        """A query over an object."""
        ...


class LogAndViews:
    """Objects from Kafka, queries by PostgreSQL."""

    def __init__(
        self, connection: Connection, admin: Admin, readers: Readers, codec: Codec
    ) -> None:
        self._connection = connection
        self._admin = admin
        self._readers = readers
        self._codec = codec
        self._turns = Turns()

    def log(self, entry: Entry) -> ObjectLog:
        """See Sources."""
        return KafkaLog(self._connection, self._admin, self._codec, entry.definition)

    def query(self, entry: Entry, selection: Selection) -> PushQuery:
        """See Sources."""
        return ServedQuery(self._readers, self._turns, entry, selection)


class Push:
    """Opens subscriptions; one for the whole process."""

    def __init__(
        self, sources: Sources, current: CurrentEntry, most: int = MOST_SUBSCRIPTIONS
    ) -> None:
        self._sources = sources
        self._current = current
        self._most = most
        self._open = 0
        self.stopping = False
        self.budget = KeyBudget()
        self._feeds: dict[Hashable, asyncio.Task[Feed]] = {}
        self._lives: dict[Hashable, Live] = {}
        self._sweeping = False
        self._asking = ThreadPoolExecutor(_THREADS, thread_name_prefix="push")
        self._reading = ThreadPoolExecutor(_THREADS, thread_name_prefix="push-past")

    @property
    def open_subscriptions(self) -> int:
        """How many clients are being served."""
        return self._open

    @property
    def open_feeds(self) -> int:
        """How many objects are being read."""
        return len(self._feeds)

    @property
    def open_queries(self) -> int:
        """How many different queries are being evaluated."""
        return len(self._lives)

    def stop(self) -> None:
        """Let all subscriptions end within a moment. Takes no lock: signal handlers call it."""
        self.stopping = True

    def close(self) -> None:
        """Give up the threads, after `stop`."""
        for live in self._lives.values():
            live.close()
        for opening in self._feeds.values():
            if opening.done() and not opening.cancelled() and opening.exception() is None:
                opening.result().close()
            opening.cancel()
        self._lives.clear()
        self._feeds.clear()
        for threads in (self._asking, self._reading):
            threads.shutdown(wait=False, cancel_futures=True)

    async def subscribe(self, wanted: Subscription) -> AsyncGenerator[Piece, None]:
        """The pieces of a subscription; the caller closes the generator when the client leaves.

        What is wrong from the beginning is raised before the first piece; what goes wrong later
        is an event `error` with the problem, and the end.
        """
        if self._open >= self._most:
            raise MainstemError("TOO_MANY_SUBSCRIPTIONS", limit=self._most)
        self._open += 1
        try:
            log = self._sources.log(wanted.entry)
            run = Run(self, wanted, log, self._sources.query(wanted.entry, wanted.selection))
            async with aclosing(run.pieces()) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            self._open -= 1

    # -- what subscriptions share

    async def live(self, wanted: Subscription, place: Places) -> Live:
        """See Shared."""
        entry, selection = wanted.entry, wanted.selection
        of_object = _object(entry)
        feed = await self._feed(of_object, entry, place)
        of_query = (of_object, selection.projection, selection.where)
        live = self._lives.get(of_query)
        if live is None or live.ended or live.feed is not feed:
            query = self._sources.query(entry, selection)
            await query.columns()
            live = self._lives.get(of_query)  # another client may have been quicker
            if feed.failed:  # meanwhile nobody had it
                return await self.live(wanted, place)
        if live is None or live.ended or live.feed is not feed:
            voice = Voice(entry.name, entry.served_generation, selection.digest)
            live = Live(feed, query, voice, self.budget, place, lambda: self._goes_on(entry))
            self._lives[of_query] = live
        live.members += 1
        return live

    def feed_of(self, wanted: Subscription) -> Feed | None:
        """See Shared."""
        opening = self._feeds.get(_object(wanted.entry))
        if opening is None or not opening.done() or _failed(opening):
            return None
        return opening.result()

    def leave(self, live: Live) -> None:
        """See Shared."""
        live.members -= 1
        live.left_at = time.monotonic()

    def check(self, entry: Entry) -> None:
        """See Shared."""
        now = self._current(entry.name)
        if now is None:
            raise MainstemError("UNKNOWN_RELATION", name=entry.name, suggestion="")
        if now.served_generation != entry.served_generation:
            raise MainstemError("RESUME_TOKEN_INVALID", problem="the object was rebuilt")

    async def ask(self, question: Callable[[], T]) -> T:
        """See Shared."""
        return await asyncio.get_running_loop().run_in_executor(self._asking, question)

    async def read(self, reading: Callable[[], T]) -> T:
        """See Shared."""
        return await asyncio.get_running_loop().run_in_executor(self._reading, reading)

    def _goes_on(self, entry: Entry) -> bool:
        self.check(entry)
        return not self.stopping

    async def _feed(self, key: Hashable, entry: Entry, place: Places) -> Feed:
        """The feed of an object; the first to ask opens it, for a client at that place."""
        opening = self._feeds.get(key)
        if opening is None or _failed(opening):
            opening = self._feeds[key] = asyncio.create_task(self._open_feed(entry, place))
            self._sweep_later()
        # not cancelled with whoever waits for it: others may wait, too
        return await asyncio.shield(opening)

    async def _open_feed(self, entry: Entry, place: Places) -> Feed:
        log = self._sources.log(entry)
        begins, ends = await self.ask(lambda: (log.begins(), log.ends()))
        partitions = sum(map(len, ends.values())) or 1
        reach, margin = _REACH // partitions, _MARGIN // partitions
        start = {
            topic: {
                p: max(
                    begins.get(topic, {}).get(p, 0),
                    max(place.get(topic, {}).get(p, end), end - reach) - margin,
                )
                for p, end in at.items()
            }
            for topic, at in ends.items()
        }
        return Feed(log, start, entry.name)

    def _sweep(self) -> None:
        """End what nobody has needed for a while."""
        long_ago = time.monotonic() - _LINGER_SECONDS + 1
        for key, live in list(self._lives.items()):
            if live.ended or (not live.members and live.left_at < long_ago):
                live.close()
                del self._lives[key]
        for key, opening in list(self._feeds.items()):
            if not opening.done():
                continue
            if not _failed(opening):
                feed = opening.result()
                if feed.followers or feed.left_at > long_ago:
                    continue
                feed.close()
            del self._feeds[key]
        self._sweeping = False
        self._sweep_later()

    def _sweep_later(self) -> None:
        if self._feeds and not self._sweeping:
            self._sweeping = True
            asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._sweep)


def _object(entry: Entry) -> Hashable:
    """What a feed is for: one that was rebuilt, or has grown, is another."""
    return (entry.name, entry.served_generation, entry.definition.columns)


def _failed(opening: asyncio.Task[Feed]) -> bool:
    if not opening.done():
        return False
    return opening.cancelled() or opening.exception() is not None or opening.result().failed
