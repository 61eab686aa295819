"""One query over one feed: evaluated once, put into bytes once, for all who asked it.

What it tells is kept as numbered pieces, of which each client takes the next when it has room for
it. So a client has no queue of its own; one that falls behind what is kept reads the log by itself
until it is near again. Nothing waits for the slowest.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mainstem.errors import MainstemError
from mainstem.views.changes import Change, Evaluated
from mainstem.views.events import Event, Piece, Places, cut
from mainstem.views.feed import Feed, Stretch, between
from mainstem.views.served import PushQuery
from mainstem.views.source import furthest, merged, reached
from mainstem.views.times import iso_utc
from mainstem.views.tokens import Token
from mainstem.vocabulary import Record

_LOG = logging.getLogger(__name__)
HEARTBEAT_SECONDS = 5.0
_LOOK_SECONDS = 0.5
_MOST_RECORDS = 2_000
_MOST_BYTES = 1024 * 1024
_LEAST_PIECES = 2
"""Pieces that are kept, however large they are."""
_SECONDS_PER_MEMBER = 0.0001
"""Between two pieces, so that at most 10,000 go out in a second: many clients, larger pieces."""
_MOST_KEYS = 100_000


@dataclass
class KeyBudget:
    """How many keys all queries together may remember."""

    left: int = 1_000_000


class Known:
    """The keys of the rows that match, while they are few; None: not known.

    What the rows of a filter are is decided by a place in the log, so all clients that are at the
    same place share this.
    """

    def __init__(self, budget: KeyBudget, keys: set[str] | None) -> None:
        self._budget = budget
        self.keys: set[str] | None = set()
        if keys is None:
            self.forget()
        for key in keys or ():
            self.add(key)

    def add(self, key: str) -> None:
        """A row matches."""
        if self.keys is None or key in self.keys:
            return
        self.keys.add(key)
        self._budget.left -= 1
        if len(self.keys) > _MOST_KEYS or self._budget.left < 0:
            self.forget()

    def concerns(self, kind: str, key: str | None) -> bool:
        """False for the deletion of a row that nobody has."""
        if self.keys is None or key is None:
            return True
        if kind != "delete":
            self.add(key)
            return True
        if key not in self.keys:
            return False
        self.keys.discard(key)
        self._budget.left += 1
        return True

    def forget(self) -> None:
        """Give back what it holds: every deletion concerns somebody from now on."""
        if self.keys is not None:
            self._budget.left += len(self.keys)
            self.keys = None

    def handed_on(self) -> set[str] | None:
        """The keys, which are another's from now on."""
        keys = self.keys
        self.forget()
        return keys


@dataclass(frozen=True, slots=True)
class Voice:
    """Makes the events of one query."""

    name: str
    generation: int
    query: str

    def token(self, place: Places | None, at: float) -> str:
        """The token of a place."""
        return Token(self.name, self.generation, self.query, int(at), place).encode()

    def told(
        self, evaluated: Evaluated, place: Places, at: float, known: Known
    ) -> list[tuple[Event, Places | None]]:
        """The events of some records, each with where it leads, beginning at a place."""
        told: list[tuple[Event, Places | None]] = []
        for record, change in evaluated.changes:
            place = merged(place, {record.topic: {record.partition: record.offset + 1}})
            if known.concerns(change.kind, change.key):
                told.append((self.change(change, place, at), place))
        return told

    def change(self, change: Change, place: Places | None, at: float) -> Event:
        """The event of a change."""
        return Event(change.kind, change.data, self.token(place, at), change.key)

    def progress(self, place: Places | None, at: float, unreadable: int) -> Event:
        """How far a client is that has all before."""
        data = {
            "snapshot_complete": place is not None,
            "at": iso_utc(at),
            "offsets": place,
            "skipped": unreadable,
        }
        return Event("progress", json.dumps(data), self.token(place, at))


class Live:
    """A query at the live end of the log: from where the feed is, or from `start` if it is ahead.

    Everything is done in the event loop. Between two awaits `number` and `place` belong together:
    a client that has all before `place` goes on with the pieces behind `number`.
    """

    def __init__(
        self,
        feed: Feed,
        query: PushQuery,
        voice: Voice,
        budget: KeyBudget,
        start: Places,
        check: Callable[[], bool],
    ) -> None:
        """`check` raises when the object is another one now; False when all is to end."""
        self.feed = feed
        self.query = query
        self.voice = voice
        self.members = 0
        self.left_at = time.monotonic()
        """When the last member has left it."""
        self.taken = feed.last
        # what the first client has need not be evaluated once more
        self.place: Places = furthest(feed.end, start)
        self._ahead = self.place != feed.end
        self.number = 0
        self.unreadable = 0
        self.changes = 0
        """How many changes it has told."""
        self.known = Known(budget, None)
        self.error: MainstemError | None = None
        self.ended = False
        self._check = check
        self._pieces: deque[Piece] = deque()
        self._size = 0
        self._arrived = asyncio.Event()
        self._moved = asyncio.Event()
        self._spoke_at = time.monotonic()
        feed.followers.add(self)
        self._task = asyncio.create_task(self._run())

    def meets(self, place: Places) -> bool:
        """True when a client at that place can go on from here with what the feed still has."""
        if place == self.place:
            return True
        return reached(self.place, place) and reached(self.feed.end, self.place)

    def kept(self) -> list[Piece]:
        """The last pieces."""
        return list(self._pieces)

    def after(self, number: int) -> list[Piece] | None:
        """The pieces behind that number; None when some of them are no longer kept."""
        first = self.number - len(self._pieces)
        if number < first:
            return None
        return list(self._pieces)[number - first :]

    async def more(self, number: int) -> bool:
        """True when there is something behind that number; False when it has ended before.

        Raises what has ended it. It speaks every few seconds, so nobody waits for long.
        """
        if self.number <= number and not self.ended:
            await self._arrived.wait()
        if self.error is not None and self.number <= number:
            raise self.error
        return self.number > number

    async def moved(self, seconds: float) -> None:
        """Return when `place` is another, or the time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._moved.wait()
        except TimeoutError:
            pass

    def adopt(self, keys: set[str] | None, number: int, budget: KeyBudget) -> None:
        """Take over what a client knows of the keys at the place of a number, if it is not known.

        Without it every deletion was told, so what came since then says the rest.
        """
        pieces = self.after(number)
        if keys is None or self.known.keys is not None or pieces is None:
            return
        known = Known(budget, keys)
        for piece in pieces:
            for event in piece.events:
                known.concerns(event.name, event.key)
        self.known = known

    def close(self) -> None:
        """End it; nobody may be waiting for it any more."""
        self._task.cancel()
        self._leave()

    def _leave(self) -> None:
        self.ended = True
        self.known.forget()
        self.feed.leave(self)
        self._wake()

    async def _run(self) -> None:
        try:
            while self._check():
                await self.feed.more(self.taken, _LOOK_SECONDS)
                if self.feed.error is not None:
                    raise self.feed.error
                began = time.monotonic()
                if self.feed.last > self.taken:
                    await self._advance()
                if time.monotonic() - self._spoke_at >= HEARTBEAT_SECONDS:
                    now = time.time()
                    event = self.voice.progress(self.place, now, self.unreadable)
                    self._tell([Piece([event], self.place, self.changes, now)])
                pause = self.members * _SECONDS_PER_MEMBER - (time.monotonic() - began)
                if pause > 0:
                    await asyncio.sleep(pause)
        except MainstemError as error:
            self.error = error
        except Exception:  # noqa: BLE001 - its clients must hear of it, the log has it whole
            _LOG.exception("a shared query failed", extra={"object": self.voice.name})
            self.error = MainstemError("INTERNAL", problem="a subscription failed")
        finally:
            self._leave()

    async def _advance(self) -> None:
        """Evaluate what has come, and tell it."""
        stretches: list[Stretch] = []
        records: list[Record] = []
        unreadable = 0
        for stretch in self.feed.after(self.taken):
            if records and len(records) + len(stretch.records) > _MOST_RECORDS:
                break
            stretches.append(stretch)
            records += stretch.records
            unreadable += stretch.unreadable
        end = stretches[-1].end
        if self._ahead:
            records = list(between(iter(stretches), self.place, end))
            end = furthest(end, self.place)
            self._ahead = end != stretches[-1].end
        evaluated = Evaluated((), 0)
        if not self.members:
            self.known.forget()  # nobody listens: what matches is not followed
        elif records:
            evaluated = await self.query.changes(records)
        self.unreadable += unreadable + evaluated.skipped
        now = time.time()
        told = self.voice.told(evaluated, self.place, now, self.known)
        self.taken, self.place = stretches[-1].number, end
        self._moved.set()
        self._moved = asyncio.Event()
        self.feed.done()
        pieces = list(cut(told, self.changes, now))
        if pieces:
            pieces[-1].end = self.place
        self._tell(pieces)

    def _tell(self, pieces: Sequence[Piece]) -> None:
        if not pieces:
            return
        for piece in pieces:
            self._pieces.append(piece)
            self._size += piece.size
            self.changes += piece.changes
        self.number += len(pieces)
        while len(self._pieces) > _LEAST_PIECES and self._size > _MOST_BYTES:
            self._size -= self._pieces.popleft().size
        self._spoke_at = time.monotonic()
        self._wake()

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = asyncio.Event()
