"""One subscription from its first event to its last.

1. place    a token says where to go on; else the end of the log, or a snapshot
2. snapshot the rows of one PostgreSQL snapshot, and the place in the log that belongs to them
3. past     from there to where the shared query is: from what the feed still has, or else with a
            reader of its own, a round at a time
4. live     the pieces of the shared query, as fast as the client takes them

Step 3 ends at exactly the place where a piece of step 4 begins, so nothing is missing between
them and nothing comes twice. A client that falls behind the pieces that are kept is in step 3
again, from the last piece that it has; one that asked for a sample is told the latest instead.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Protocol, TypeVar

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Kind
from mainstem.errors import MainstemError
from mainstem.views.changes import Evaluated, Selection
from mainstem.views.events import Event, Piece, Places, cut, latest
from mainstem.views.feed import Feed, between
from mainstem.views.live import HEARTBEAT_SECONDS, KeyBudget, Known, Live, Voice
from mainstem.views.past import read_round
from mainstem.views.served import PushQuery
from mainstem.views.source import ObjectLog, merged
from mainstem.views.tokens import Token
from mainstem.vocabulary import Record

T = TypeVar("T")

_WAIT_SECONDS = 1.0
_MOST_RECORDS = 2_000
_SAMPLE = 100
"""Events of a stream that a sample has of those that wait."""


class OnSlow(StrEnum):
    """What becomes of changes that a client is too slow for."""

    BLOCK = "block"
    """They wait in the log, and all come."""
    SAMPLE = "sample"
    """The latest come: of a table the last change of each key, of a stream the last ones."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a client asked for."""

    entry: Entry
    selection: Selection
    snapshot: bool = True
    after: Token | None = None
    limit: int | None = None
    """Ends after so many rows and deletions."""
    on_slow: OnSlow = OnSlow.BLOCK


class Shared(Protocol):
    """What subscriptions of one process have in common."""

    budget: KeyBudget

    @property
    def stopping(self) -> bool:
        """True when all subscriptions are to end."""
        ...

    def live(self, wanted: Subscription, place: Places) -> Awaitable[Live]:
        """The shared query of a subscription that is at this place, which it is a member of."""
        ...

    def feed_of(self, wanted: Subscription) -> Feed | None:
        """The feed of the object, if there is one already."""
        ...

    def leave(self, live: Live) -> None:
        """The subscription has ended."""
        ...

    def check(self, entry: Entry) -> None:
        """Raise when the object was dropped or rebuilt: its changes are no longer these."""
        ...

    def ask(self, question: Callable[[], T]) -> Awaitable[T]:
        """Ask the log, in a thread."""
        ...

    def read(self, reading: Callable[[], T]) -> Awaitable[T]:
        """Read the log, in a thread, when it is this client's turn."""
        ...


class Run:
    """One subscription."""

    def __init__(
        self, shared: Shared, wanted: Subscription, log: ObjectLog, query: PushQuery
    ) -> None:
        self._shared = shared
        self._wanted = wanted
        self._log = log
        self._query = query
        entry = wanted.entry
        self._voice = Voice(entry.name, entry.served_generation, wanted.selection.digest)
        self._place: Places | None = None  # None: the snapshot has yet to say it
        self._at = time.time()  # for tokens, see there
        self._known = Known(shared.budget, None)
        self._unreadable = 0
        self._sent = 0
        self._spoke_at = time.monotonic()
        self._live: Live | None = None
        self._number = 0  # the last piece of the shared query that the client has
        self._counted = 0  # and how many changes it had told with it

    async def pieces(self) -> AsyncGenerator[Piece, None]:
        """All that the client is to be told; the caller closes it when the client leaves.

        What is wrong from the beginning is raised before the first piece; what goes wrong later
        is an event `error` with the problem, and the end.
        """
        await self._begin()
        columns = await self._query.columns()
        described = json.dumps([{"name": c.name, "type": c.type} for c in columns])
        yield self._piece(Event("columns", described, self._token()))
        try:
            async with aclosing(self._all()) as told:
                async for piece in told:
                    if (limit := self._wanted.limit) is not None:
                        left = limit - self._sent
                        if piece.changes >= left:
                            yield piece.first(left)
                            return
                    self._sent += piece.changes
                    self._spoke_at = time.monotonic()
                    yield piece
        except MainstemError as error:
            yield self._piece(Event("error", json.dumps(error.problem()), self._token()))
        finally:
            self._known.forget()
            if self._live is not None:
                self._shared.leave(self._live)

    async def _all(self) -> AsyncGenerator[Piece, None]:
        if self._place is None:
            async with aclosing(self._snapshot()) as rows:
                async for piece in rows:
                    yield piece
        yield self._progress()
        live = self._live = await self._shared.live(self._wanted, self._here)
        while not self._shared.stopping and not live.ended:
            async with aclosing(self._past(live)) as past:
                async for piece in past:
                    yield piece
            async with aclosing(self._follow(live)) as changes:
                async for piece in changes:
                    yield piece
        if live.error is not None:
            raise live.error

    # -- 1. place

    async def _begin(self) -> None:
        """Set the place to go on from, unless a snapshot has to say it."""
        token, entry = self._wanted.after, self._wanted.entry
        if token is not None:
            if token.name != entry.name or token.query != self._wanted.selection.digest:
                raise _useless("it belongs to another query")
            if token.generation != entry.served_generation:
                raise _useless("what it belongs to was rebuilt")
            if token.offsets is not None:
                self._at = min(self._at, token.at)
                await self._resume(token.offsets)
                return
        if self._is_stream or not self._wanted.snapshot:
            self._place = await self._shared.ask(self._log.ends)

    async def _resume(self, offsets: Places) -> None:
        feed = self._shared.feed_of(self._wanted)
        if feed is not None and feed.holds(offsets):
            self._place = offsets  # a moment ago, and what lies behind it is in memory
            return
        log = self._log
        begins, ends, kept = await self._shared.ask(
            lambda: (log.begins(), log.ends(), log.deletions_kept())
        )
        if kept is not None and time.time() - self._at > kept:
            raise _useless("rows may have been deleted since then that the log no longer tells of")
        # topics of a pattern that were deleted since are left behind
        places = [(t, p, o) for t, at in offsets.items() if t in begins for p, o in at.items()]
        if any(offset < begins[t].get(p, 0) for t, p, offset in places):
            raise _useless("the log no longer has the records behind it")
        if any(offset > ends.get(t, {}).get(p, 0) for t, p, offset in places):
            raise _useless("it lies behind the log's end")
        # what was added since the token was made, partition or topic, is read from its beginning
        self._place = {
            topic: {p: offsets.get(topic, {}).get(p, first) for p, first in at.items()}
            for topic, at in begins.items()
        }

    # -- 2. snapshot

    async def _snapshot(self) -> AsyncGenerator[Piece, None]:
        """Rows, and the place behind them; whatever the client has of an earlier one is void."""
        yield self._piece(Event("snapshot", "{}", self._token()))
        if self._wanted.selection.filtered:
            self._known = Known(self._shared.budget, set())
        place: Places | None = None
        async with aclosing(self._query.snapshot()) as pages:
            async for place, changes in pages:  # noqa: B007 - the same for all of them
                for change in changes:
                    self._known.add(change.key)
                told = ((self._voice.change(c, None, self._at), None) for c in changes)
                for piece in cut(told):
                    yield piece
                self._shared.check(self._wanted.entry)
        self._place = place

    # -- 3. past

    async def _past(self, live: Live) -> AsyncGenerator[Piece, None]:
        """What the shared query has told before this client came; then the client goes with it."""
        while not self._shared.stopping and not live.ended:
            if time.monotonic() - self._spoke_at > HEARTBEAT_SECONDS:
                yield self._progress()
            self._shared.check(self._wanted.entry)
            await self._align(live.feed.end)
            start, goal = _missing(self._here, live.feed.start)
            if start:
                reading = asyncio.ensure_future(
                    self._shared.read(partial(read_round, self._log, start, goal))
                )
                try:
                    while not (await asyncio.wait((reading,), timeout=HEARTBEAT_SECONDS))[0]:
                        yield self._progress()
                finally:
                    reading.cancel()
                read = reading.result()
                self._unreadable += read.unreadable
                end = merged(self._here, read.end)
                for piece in await self._told(read.records, end):
                    yield piece
            elif live.meets(self._here):
                number, changes, goal = live.number, live.changes, live.place
                records = list(between(live.feed.after(0), self._here, goal))
                for first in range(0, len(records), _MOST_RECORDS):
                    part = records[first : first + _MOST_RECORDS]
                    for piece in await self._told(part, _behind_all(self._here, part)):
                        yield piece
                self._place = goal
                live.adopt(self._known.handed_on(), number, self._shared.budget)
                self._number, self._counted = number, changes
                return
            else:
                await live.moved(_WAIT_SECONDS)

    async def _told(self, records: Sequence[Record], end: Places) -> list[Piece]:
        """The pieces of some records; the client is at `end` behind them."""
        evaluated = Evaluated((), 0)
        if records:
            evaluated = await self._query.changes(records)
        self._unreadable += evaluated.skipped
        pieces = list(cut(self._voice.told(evaluated, self._here, self._at, self._known)))
        self._place = end
        if self._samples and not self._is_stream and len(pieces) > 1:
            return [self._sampled(pieces, sum(piece.changes for piece in pieces))]
        return pieces

    async def _align(self, there: Places) -> None:
        """Bring the topics and partitions of this client's place in line with what is read."""
        here = self._here
        unknown = here.keys() - there.keys()
        if unknown:
            # deleted, or so new that the feed has yet to find them
            left = set(await self._shared.ask(self._log.topics))
            here = {topic: at for topic, at in here.items() if topic not in unknown - left}
        new = [topic for topic, at in there.items() if at.keys() - here.get(topic, {}).keys()]
        if new:
            begins = await self._shared.ask(lambda: self._log.begins(new))
            here = {**here, **{t: {**at, **here.get(t, {})} for t, at in begins.items()}}
        self._place = here

    # -- 4. live

    async def _follow(self, live: Live) -> AsyncGenerator[Piece, None]:
        """The pieces of the shared query, until the client is too far behind them."""
        number = self._number
        while not self._shared.stopping:
            if not await live.more(number):
                return
            waiting = live.after(number)
            if waiting is None and self._samples and self._is_stream:
                waiting = live.kept()
            if waiting is None:
                return
            if len(waiting) > 1 and self._samples:
                number = live.number
                yield self._sample(waiting)
            else:
                number += 1
                self._now_at(waiting[0])
                yield waiting[0]

    def _sample(self, waiting: Sequence[Piece]) -> Piece:
        """The latest of what waits, and how many changes were left out for it."""
        before = self._counted
        self._now_at(waiting[-1])
        return self._sampled(waiting, self._counted - before)

    def _sampled(self, waiting: Sequence[Piece], changes: int) -> Piece:
        """The latest of so many changes; the client's place is behind all of them."""
        piece = latest(waiting, _SAMPLE)
        left_out = changes - piece.changes
        if not left_out:
            return piece if piece.changes else waiting[-1]
        told = Event("sampled", json.dumps({"left_out": left_out}), self._token())
        return Piece((*piece.events, told), self._place)

    def _now_at(self, piece: Piece) -> None:
        self._place, self._at = piece.end, piece.at
        self._counted = piece.before + piece.changes

    # -- events

    @property
    def _here(self) -> Places:
        assert self._place is not None, "a snapshot says the place"
        return self._place

    @property
    def _samples(self) -> bool:
        return self._wanted.on_slow is OnSlow.SAMPLE

    @property
    def _is_stream(self) -> bool:
        return self._wanted.entry.definition.kind is Kind.STREAM

    def _token(self) -> str:
        return self._voice.token(self._place, self._at)

    def _piece(self, event: Event) -> Piece:
        return Piece((event,), self._place)

    def _progress(self) -> Piece:
        return self._piece(self._voice.progress(self._place, self._at, self._unreadable))


def _useless(problem: str) -> MainstemError:
    return MainstemError("RESUME_TOKEN_INVALID", problem=problem)


def _missing(here: Places, kept: Places) -> tuple[Places, Places]:
    """From where to where a client has to read by itself what the feed no longer has."""
    start, goal = {}, {}
    for topic, at in here.items():
        first = kept.get(topic, {})
        if gone := {p: offset for p, offset in at.items() if offset < first.get(p, 0)}:
            start[topic] = gone
            goal[topic] = {p: first[p] for p in gone}
    return start, goal


def _behind_all(place: Places, records: Sequence[Record]) -> Places:
    """The place behind some records."""
    for record in records:
        place = merged(place, {record.topic: {record.partition: record.offset + 1}})
    return place
