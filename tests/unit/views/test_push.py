"""Subscriptions over a log in memory: one reader for all, nothing missing, nothing twice."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.views.memory_log import MemoryLog, MemorySources, entry_of, selection

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Kind
from mainstem.errors import MainstemError
from mainstem.views import feed, live, past, push
from mainstem.views.events import CHANGES, Event, Piece, cut, latest
from mainstem.views.push import Push
from mainstem.views.subscriber import OnSlow, Subscription
from mainstem.views.tokens import decode_token

SECONDS = 30.0


class World:
    """A log, an object over it and what serves it."""

    def __init__(self, kind: Kind = Kind.STREAM, **log: Any) -> None:
        self.log = MemoryLog("t", **log)
        self.sources = MemorySources(self.log)
        self.entry = entry_of(kind)
        self.current: dict[str, Entry] = {"t": self.entry}
        self.push = Push(self.sources, self.current.get)

    async def restart(self) -> None:
        """As after a gateway's death: all that was shared is gone."""
        before, self.push = self.push, Push(self.sources, self.current.get)
        before.stop()
        while before.open_subscriptions:
            await asyncio.sleep(0.01)
        before.close()

    def subscribe(
        self, every: int = 1, after: str | None = None, **more: Any
    ) -> AsyncGenerator[Piece, None]:
        token = decode_token(after) if after else None
        wanted = Subscription(self.entry, selection(self.entry, every), after=token, **more)
        return self.push.subscribe(wanted)


def run(work: Callable[[], Any]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(SECONDS):
            await work()

    asyncio.run(limited())


@asynccontextmanager
async def world(kind: Kind = Kind.STREAM, **log: Any) -> AsyncIterator[World]:
    made = World(kind, **log)
    try:
        yield made
    finally:
        made.push.stop()
        made.push.close()


async def take(
    pieces: AsyncGenerator[Piece, None], until: Callable[[list[Event]], bool]
) -> list[Event]:
    """Events until a condition holds; the subscription is closed then."""
    events: list[Event] = []
    async with aclosing(pieces):
        async for piece in pieces:
            for event in piece.events:
                events.append(event)
                if until(events):
                    return events
    return events


def numbers(events: list[Event]) -> list[int]:
    return [json.loads(e.data)["row"]["n"] for e in events if e.name in ("append", "upsert")]


def changes(count: int) -> Callable[[list[Event]], bool]:
    return lambda events: sum(e.name in CHANGES for e in events) >= count


class Writer:
    """Writes numbered rows of a few keys in bursts, and deletes some; knows what it wrote."""

    def __init__(self, log: MemoryLog, deletes: bool) -> None:
        self.written: list[tuple[str, int | None]] = []
        self._log = log
        self._deletes = deletes
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident:
            self._thread.join()

    def rows(self, every: int) -> dict[str, int]:
        """What a table has in the end."""
        last = dict(self.written)
        return {key: n for key, n in last.items() if n is not None and n % every == 0}

    def _run(self) -> None:
        chance = random.Random(5)
        while not self._stop.is_set():
            for _ in range(chance.randrange(1, 40)):
                key, n = f"k{chance.randrange(9)}", len(self.written)
                gone = self._deletes and chance.random() < 0.1
                self.written.append((key, None if gone else n))
                self._log.append("t", key, None if gone else {"k": key, "n": n})
            time.sleep(chance.random() * 0.004)  # the pace of the world, not of the test


class Client:
    """Subscribes, is cut off, and goes on; holds what it was told against what may be."""

    def __init__(self, at: World, every: int, seed: int) -> None:
        self.at = at
        self.seen: list[int] = []
        self.rows: dict[str, int] = {}
        self.after: str | None = None
        self.cuts = 0
        self.begun = asyncio.Event()
        self._every = every
        self._chance = random.Random(seed)

    async def come_and_go(self, cuts: int) -> None:
        """So many times; each change that it takes counts towards the next cut."""
        while self.cuts < cuts:
            left = self._chance.randrange(1, 150)
            await self._listen(lambda told, most=left: told >= most)
            self.cuts += 1
            if self._chance.random() < 0.2:
                await asyncio.sleep(0.03)  # what it needs is no longer kept

    async def finish(self) -> None:
        """Up to the end of the log."""
        ends = self.at.log.ends()
        while not self.after or decode_token(self.after).offsets != ends:
            await self._listen(lambda _: decode_token(str(self.after)).offsets == ends)

    async def _listen(self, enough: Callable[[int], bool]) -> None:
        told = 0
        async with aclosing(self.at.subscribe(self._every, self.after)) as pieces:
            async for piece in pieces:
                for event in piece.events:
                    told += self._take(event)
                if enough(told):
                    return

    def _take(self, event: Event) -> bool:
        assert event.name != "error", event.data
        self.after = event.id
        if event.name == "snapshot":
            self.rows.clear()
            self.seen.clear()
        elif event.name == "progress":
            self.begun.set()
        if event.name not in CHANGES:
            return False
        data = json.loads(event.data)
        if event.name == "delete":
            self.rows.pop(data["key"]["k"], None)
        else:
            self.rows[data["key"]["k"]] = data["row"]["n"]
            self.seen.append(data["row"]["n"])
        return True


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("kind", [Kind.STREAM, Kind.TABLE])
def test_clients_that_come_and_go_see_each_change_once(
    kind: Kind, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several clients, cut off at random, over a busy log, with restarts of what they share."""
    # little is kept, so that every way into the live end is taken
    monkeypatch.setattr(feed, "_MOST_RECORDS", 200)
    monkeypatch.setattr(live, "_MOST_BYTES", 4_000)
    monkeypatch.setattr(live, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(past, "_MOST_RECORDS", 50)
    monkeypatch.setattr(push, "_MARGIN", 30)
    monkeypatch.setattr(push, "_REACH", 60)

    async def work() -> None:
        async with world(kind) as at:
            writer = Writer(at.log, deletes=kind is Kind.TABLE)
            clients = [Client(at, every, seed) for seed in range(4)]
            coming = [asyncio.create_task(client.come_and_go(50)) for client in clients]
            try:
                await asyncio.gather(*(client.begun.wait() for client in clients))
                writer.start()
                for goal in (15, 30, 45):
                    while min(client.cuts for client in clients) < goal:
                        await asyncio.sleep(0.01)
                    await at.restart()
                await asyncio.gather(*coming)
            finally:
                writer.stop()
            await asyncio.gather(*(client.finish() for client in clients))
            for client in clients:
                assert len(client.seen) == len(set(client.seen))
                if kind is Kind.TABLE:
                    assert client.rows == writer.rows(every)
                else:
                    matching = [n for _, n in writer.written if n is not None and n % every == 0]
                    assert sorted(client.seen) == matching
            assert at.log.opened > 10  # some had to read by themselves
            assert at.push.open_subscriptions == 0

    run(work)


def test_many_clients_share_one_reader_and_one_evaluation() -> None:
    async def work() -> None:
        async with world() as at:
            started: set[int] = set()

            def until(number: int) -> Callable[[list[Event]], bool]:
                def enough(events: list[Event]) -> bool:
                    if events[-1].name == "progress":
                        started.add(number)
                    return changes(100)(events)

                return enough

            clients = [asyncio.create_task(take(at.subscribe(), until(n))) for n in range(200)]
            while len(started) < 200 or at.push.open_queries != 1:
                await asyncio.sleep(0.01)
            for n in range(100):
                at.log.append("t", f"k{n}", {"k": f"k{n}", "n": n})
            told = await asyncio.gather(*clients)
            assert all(sorted(numbers(events)) == list(range(100)) for events in told)
            assert len({tuple(e.id for e in events if e.name == "append") for events in told}) == 1
            assert (at.log.opened, at.log.decoded, at.push.open_feeds) == (1, 100, 1)
            assert sum(at.sources.evaluated) == 100

    run(work)


def test_each_query_is_evaluated_by_itself() -> None:
    async def work() -> None:
        async with world() as at:
            both = [asyncio.create_task(take(at.subscribe(every), changes(4))) for every in (1, 2)]
            while at.push.open_queries < 2:
                await asyncio.sleep(0.01)
            for n in range(8):
                at.log.append("t", "k", {"k": "k", "n": n})
            all_, even = await asyncio.gather(*both)
            assert (numbers(all_), numbers(even)) == ([0, 1, 2, 3], [0, 2, 4, 6])
            assert at.log.opened == 1

    run(work)


def test_rows_that_stop_matching_are_deletions_and_others_are_not_told() -> None:
    async def work() -> None:
        async with world(Kind.TABLE) as at:
            for key, n in (("a", 2), ("b", 3), ("c", 4)):
                at.log.append("t", key, {"k": key, "n": n})

            def write(events: list[Event]) -> bool:
                if events[-1].name == "progress" and len(events) == 5:
                    at.log.append("t", "b", {"k": "b", "n": 5})  # never matched
                    at.log.append("t", "b", None)
                    at.log.append("t", "a", {"k": "a", "n": 7})  # matched, and no longer does
                    at.log.append("t", "b", {"k": "b", "n": 8})
                return changes(4)(events)

            events = await take(at.subscribe(2), write)
            names = [e.name for e in events]
            assert names[:5] == ["columns", "snapshot", "upsert", "upsert", "progress"]
            told = [(e.name, json.loads(e.data)["key"]["k"]) for e in events[5:]]
            assert sorted(t for t in told if t) == [("delete", "a"), ("upsert", "b")]

    run(work)


def test_progress_is_told_when_nothing_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "HEARTBEAT_SECONDS", 0.1)

    async def work() -> None:
        async with world() as at:

            def enough(events: list[Event]) -> bool:
                if len(events) == 3:
                    at.log.append("t", "k", {"k": "k", "n": 1})
                    at.log.append("t", "k", "unreadable")
                return json.loads(events[-1].data).get("skipped") == 1 if len(events) > 1 else False

            events = await take(at.subscribe(2), enough)
            assert {e.name for e in events[1:]} == {"progress"}
            told = json.loads(events[-1].data)
            assert sum(told["offsets"]["t"].values()) == 2
            assert decode_token(events[-1].id).offsets == at.log.ends()

    run(work)


async def fall_behind(at: World, first: int, rows: int, keys: int = 1) -> None:
    """Write more than is kept for a client that does not take it."""
    for n in range(first, first + rows):
        key = f"k{n % keys}"
        at.log.append("t", key, {"k": key, "n": n})
    ends = at.log.ends()
    (running,) = at.push._lives.values()
    while running.place != ends:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", [Kind.STREAM, Kind.TABLE])
@pytest.mark.parametrize("on_slow", list(OnSlow))
def test_a_slow_client_gets_what_it_asked_for(
    kind: Kind, on_slow: OnSlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_MOST_BYTES", 4_000)

    async def work() -> None:
        async with world(kind, partitions=1) as at:
            events: list[Event] = []
            async with aclosing(at.subscribe(on_slow=on_slow)) as pieces:
                async for piece in pieces:
                    events += piece.events
                    first = numbers(events)
                    if piece.events[-1].name == "progress" and not first:
                        at.log.append("t", "k0", {"k": "k0", "n": 0})
                    if first == [0]:
                        for burst in range(20):
                            await fall_behind(at, 1 + burst * 50, 50, keys=5)
                    if first and first[-1] == 1000:
                        break
            told = numbers(events)
            if on_slow is OnSlow.BLOCK:
                assert told == list(range(1001))
                assert "sampled" not in {e.name for e in events}
            else:
                left_out = sum(
                    json.loads(e.data)["left_out"] for e in events if e.name == "sampled"
                )
                assert 5 < len(told) < 500
                assert told == sorted(told)
                if kind is Kind.STREAM:
                    assert left_out == 1001 - len(told)

    run(work)


def test_latest_keeps_the_last_change_of_each_key() -> None:
    told = [Event(name, "{}", str(n), key) for n, (name, key) in enumerate(
        [("upsert", "a"), ("upsert", "b"), ("delete", "a"), ("progress", None), ("upsert", "c")]
    )]  # fmt: skip
    pieces = [Piece(told[:3], None), Piece(told[3:], {"t": {0: 5}})]
    kept = latest(pieces, 1)
    assert [(e.name, e.key) for e in kept.events] == [
        ("upsert", "b"), ("delete", "a"), ("upsert", "c"),
    ]  # fmt: skip
    assert kept.end == {"t": {0: 5}}


def test_pieces_are_of_a_size_that_may_wait() -> None:
    events = [(Event("append", "x" * 40_000, str(n)), {"t": {0: n + 1}}) for n in range(5)]
    pieces = list(cut(events, 10))
    assert [(len(p.events), p.before, p.end) for p in pieces] == [
        (2, 10, {"t": {0: 2}}), (2, 12, {"t": {0: 4}}), (1, 14, {"t": {0: 5}}),
    ]  # fmt: skip


def test_a_limit_ends_within_a_piece() -> None:
    async def work() -> None:
        async with world(Kind.TABLE) as at:
            for n in range(6):
                at.log.append("t", f"k{n}", {"k": f"k{n}", "n": n})
            events = await take(at.subscribe(limit=4), lambda _: False)
            assert len(numbers(events)) == 4

    run(work)


@pytest.mark.parametrize(
    "case", ["another query", "another object", "rebuilt", "ahead", "aged out", "deletions gone"]
)
def test_tokens_that_cannot_be_used(case: str) -> None:
    async def work() -> None:
        async with world(Kind.TABLE) as at:
            for n in range(5):
                at.log.append("t", "k", {"k": "k", "n": n})
            partition = next(p for p, records in enumerate(at.log.data["t"]) if records)
            events = await take(at.subscribe(), lambda e: e[-1].name == "progress")
            token, every = decode_token(events[-1].id), 1
            match case:
                case "another query":
                    every = 2
                case "another object":
                    token = replace(token, name="others")
                case "rebuilt":
                    token = replace(token, generation=7)
                case "ahead":
                    token = replace(token, offsets={"t": {partition: 6}})
                case "aged out":
                    at.log.first["t"][partition] = 3
                    token = replace(token, offsets={"t": {partition: 2}})
                case "deletions gone":
                    at.log.kept = 60.0
                    token = replace(token, at=token.at - 61)
            with pytest.raises(MainstemError) as caught:
                await take(at.subscribe(every, token.encode()), lambda _: True)
            assert caught.value.code == "RESUME_TOKEN_INVALID"

    run(work)


def test_what_fails_is_told_and_can_be_resumed() -> None:
    async def work() -> None:
        async with world() as at:

            def write(events: list[Event]) -> bool:
                if len(events) == 2:
                    at.log.away = 1
                    at.log.append("t", "k", {"k": "k", "n": 1})
                return changes(1)(events)

            events = await take(at.subscribe(), write)
            assert json.loads(events[-1].data)["title"] == "VIEW_STORE_UNREACHABLE"
            again = await take(at.subscribe(after=events[-1].id), changes(1))
            assert numbers(again) == [1]

    run(work)


def test_too_many() -> None:
    async def work() -> None:
        async with world() as at:
            at.push = Push(at.sources, at.current.get, most=1)
            async with aclosing(at.subscribe()) as one:
                await anext(one)
                with pytest.raises(MainstemError) as caught:
                    await anext(at.subscribe())
                assert caught.value.code == "TOO_MANY_SUBSCRIPTIONS"
            await take(at.subscribe(), lambda e: e[-1].name == "progress")

    run(work)


def test_what_the_log_has_dropped_ends_a_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "_MOST_RECORDS", 10)
    monkeypatch.setattr(push, "_MARGIN", 0)
    monkeypatch.setattr(push, "_REACH", 3)

    async def work() -> None:
        async with world(partitions=1) as at:
            begun = await take(at.subscribe(), lambda e: e[-1].name == "progress")
            for n in range(100):
                at.log.append("t", "k", {"k": "k", "n": n})
            events: list[Event] = []
            async with aclosing(at.subscribe(after=begun[-1].id)) as pieces:
                async for piece in pieces:
                    events += piece.events
                    if numbers(events):
                        at.log.first["t"][0] = 60
            assert numbers(events) == list(range(10))
            assert events[-1].name == "error"
            assert json.loads(events[-1].data)["title"] == "RESUME_TOKEN_INVALID"

    run(work)


def test_a_topic_that_joins_is_read_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_LOOK_FOR_TOPICS_SECONDS", 0.01)
    monkeypatch.setattr(feed, "_POLL_SECONDS", 0.05)

    async def work() -> None:
        async with world(grows=True) as at:

            def enough(events: list[Event]) -> bool:
                if len(events) == 2:
                    at.log.make("u")
                    at.log.append("u", "k", {"k": "k", "n": 1})
                if numbers(events) == [1]:
                    at.log.append("t", "k", {"k": "k", "n": 2})
                return numbers(events) == [1, 2]

            events = await take(at.subscribe(), enough)
            at.log.append("u", "k", {"k": "k", "n": 3})
            again = await take(at.subscribe(after=events[-1].id), changes(1))
            assert numbers(again) == [3]
            del at.log.data["t"], at.log.first["t"]
            at.log.append("u", "k", {"k": "k", "n": 4})
            rest = await take(at.subscribe(after=again[-1].id), changes(1))
            assert numbers(rest) == [4]

    run(work)
