"""One reader of an object's log for everybody who wants its changes, and the last of what it read.

A thread reads and makes text of the records; what it has is handed to the event loop as stretches
of the log, in order. The last ones are kept, so that a client that comes a little later, or comes
back, finds its place among them and needs no reader of its own.

How much is kept is bounded. The reader does not go on while the queries that it reads for are
behind what is kept: nothing they have to see is ever dropped.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from mainstem.errors import MainstemError
from mainstem.views.events import Places
from mainstem.views.source import LogReader, ObjectLog, check_hole, reached
from mainstem.vocabulary import Record

_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.5
_BATCH = 1000
_MOST_RECORDS = 20_000
_MOST_BYTES = 16 * 1024 * 1024
_LOOK_FOR_TOPICS_SECONDS = 1.0
_LOOK_FOR_PARTITIONS_SECONDS = 30.0
_AHEAD = 4
"""Stretches that may wait for the event loop."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """What one reading has brought."""

    number: int
    start: Places
    end: Places
    records: tuple[Record, ...]
    """With keys and values as JSON text."""
    unreadable: int
    size: int


class Follower(Protocol):
    """A query that a feed reads for."""

    @property
    def taken(self) -> int:
        """The number of the last stretch that it is done with."""
        ...


class Feed:
    """Reads from `start` on until it is closed. For the event loop that it is made in."""

    def __init__(self, log: ObjectLog, start: Places, name: str = "") -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._start = start
        self._kept: deque[Stretch] = deque()
        self._records = 0
        self._bytes = 0
        self._last = 0
        self._end: Places = start
        self._arrived = asyncio.Event()
        self.followers: set[Follower] = set()
        self.left_at = time.monotonic()
        """When the last follower has left it."""
        self.error: MainstemError | None = None
        self._closing = threading.Event()
        self._room = threading.Event()
        self._room.set()
        self._waiting = threading.Semaphore(_AHEAD)
        self._looked_at = self._topics_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"feed-{name}", daemon=True)
        self._thread.start()

    # -- for the event loop

    @property
    def last(self) -> int:
        """The number of the last stretch; 0 when none has come."""
        return self._last

    @property
    def end(self) -> Places:
        """Up to where it has read."""
        return self._end

    @property
    def start(self) -> Places:
        """From where on it still has what it read."""
        return self._kept[0].start if self._kept else self._end

    @property
    def failed(self) -> bool:
        """True when nothing more will come."""
        return self.error is not None or self._closing.is_set()

    def holds(self, place: Places) -> bool:
        """True for a place from which on it has everything."""
        whole = place.keys() == self._end.keys()
        return whole and reached(self._end, place) and reached(place, self.start)

    def after(self, number: int) -> Iterator[Stretch]:
        """The stretches behind that number, oldest first."""
        return (stretch for stretch in self._kept if stretch.number > number)

    async def more(self, number: int, seconds: float) -> None:
        """Return when there is a stretch behind that number, or the time is over."""
        if self._last > number or self.error is not None:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            pass

    def done(self) -> None:
        """A follower has gone on: there may be room for more."""
        behind = min((follower.taken for follower in self.followers), default=self._last)
        while self._full and self._kept[0].number <= behind:
            gone = self._kept.popleft()
            self._records -= len(gone.records)
            self._bytes -= gone.size
        if self._full:
            self._room.clear()
        else:
            self._room.set()

    def leave(self, follower: Follower) -> None:
        """A follower ends."""
        self.followers.discard(follower)
        self.left_at = time.monotonic()
        self.done()

    def close(self) -> None:
        """End the thread, soon."""
        self._closing.set()
        self._room.set()

    @property
    def _full(self) -> bool:
        # a single stretch is kept, however large
        many = self._records > _MOST_RECORDS or self._bytes > _MOST_BYTES
        return many and len(self._kept) > 1

    def _take(self, stretch: Stretch) -> None:
        self._waiting.release()
        self._kept.append(stretch)
        self._records += len(stretch.records)
        self._bytes += stretch.size
        self._last = stretch.number
        self._end = stretch.end
        self.done()
        self._wake()

    def _fail(self, error: MainstemError) -> None:
        self.error = error
        self._wake()

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = asyncio.Event()

    # -- the thread

    def _run(self) -> None:
        reader: LogReader | None = None
        try:
            reader = self._log.open(self._start)
            place, number = self._start, 0
            while not self._closing.is_set():
                if not self._room.wait(_POLL_SECONDS):
                    continue
                if self._look(reader):
                    place = reader.positions()
                try:
                    records = reader.step(_BATCH, _POLL_SECONDS)
                except MainstemError as error:
                    if error.code != "UNKNOWN_TOPIC" or not self._log.grows:
                        raise
                    # a topic was deleted; what came together with that news is read once more
                    reader.close()
                    there = set(self._log.topics())
                    place = {topic: at for topic, at in place.items() if topic in there}
                    reader = self._log.open(place)
                    continue
                end = reader.positions()
                if records or end != place:
                    check_hole(self._log, place, records)
                    number += 1
                    self._hand(number, place, end, records)
                    place = end
        except MainstemError as error:
            self._tell(self._fail, error)
        except Exception:  # noqa: BLE001 - whoever waits must hear of it, the log has it whole
            _LOG.exception("a feed failed")
            self._tell(self._fail, MainstemError("INTERNAL", problem="a subscription failed"))
        finally:
            if reader is not None:
                reader.close()

    def _hand(self, number: int, place: Places, end: Places, records: list[Record]) -> None:
        texts, bad = self._log.texts(records)
        size = sum(len(r.value or b"") + len(r.key or b"") for r in texts)
        while not self._waiting.acquire(timeout=_POLL_SECONDS):
            if self._closing.is_set():
                return
        self._tell(self._take, Stretch(number, place, end, tuple(texts), bad, size))

    def _tell(self, what: object, argument: object) -> None:
        try:
            self._loop.call_soon_threadsafe(what, argument)  # type: ignore[arg-type]
        except RuntimeError:  # the loop has ended, and all that would have listened
            self._closing.set()

    def _look(self, reader: LogReader) -> bool:
        """Take up what was made, from its beginning, and leave what was deleted; True if it was.

        Topics of a pattern come and go; any topic may get partitions.
        """
        now = time.monotonic()
        whole = now - self._looked_at > _LOOK_FOR_PARTITIONS_SECONDS
        if not whole and (not self._log.grows or now - self._topics_at < _LOOK_FOR_TOPICS_SECONDS):
            return False
        self._topics_at = now
        known = reader.positions()
        there = self._log.topics()
        new = [topic for topic in there if topic not in known]
        if whole:
            self._looked_at, new = now, there
        gone = known.keys() - set(there)
        for topic in gone:
            reader.remove(topic)
        changed = bool(gone)
        for topic, offsets in self._log.begins(new).items() if new else ():
            before = known.get(topic, {})
            if added := {p: offset for p, offset in offsets.items() if p not in before}:
                reader.add(topic, added)
                changed = True
        return changed


def between(stretches: Iterator[Stretch], start: Places, end: Places) -> Iterator[Record]:
    """The records of the stretches from one place up to another."""
    for stretch in stretches:
        for record in stretch.records:
            first = start.get(record.topic, {}).get(record.partition, 0)
            last = end.get(record.topic, {}).get(record.partition, 0)
            if first <= record.offset < last:
                yield record
