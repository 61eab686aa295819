"""Subscriptions on a real broker and a real PostgreSQL: snapshot, changes, resume, refusals."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import Format, Select
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError
from mainstem.log.admin import TopicSpec
from mainstem.schemas.codec import Codec
from mainstem.schemas.known import KnownSchemas
from mainstem.testing.registry import MemoryRegistry, written_by
from mainstem.views.changes import selection_of
from mainstem.views.events import CHANGES, Event, Piece
from mainstem.views.push import LogAndViews, Push
from mainstem.views.readers import Readers
from mainstem.views.subscriber import Subscription
from mainstem.views.tokens import Token, decode_token

pytestmark = pytest.mark.kafka
Topic = Callable[..., str]
Current = dict[str, Entry]
RECORD = {"type": "record", "fields": [{"name": "n", "type": "long"}]}


async def opened(lab: Any, current: Current) -> tuple[Push, Readers]:
    readers = Readers(lab.postgres.reader_url, 10.0)
    await readers.open()
    sources = LogAndViews(lab.kafka, lab.admin, readers, lab.codec)
    return Push(sources, current.get), readers


def wanted(entry: Entry, sql: str, **more: Any) -> Subscription:
    select = parse_one(sql)
    assert isinstance(select, Select)
    return Subscription(entry, selection_of(select, entry.definition), **more)


async def each(pieces: AsyncGenerator[Piece, None]) -> AsyncGenerator[Event, None]:
    async for piece in pieces:
        for event in piece.events:
            yield event


def collect(
    lab: Any,
    entry: Entry,
    sql: str,
    *,
    until: Callable[[list[Event]], bool],
    current: Current | None = None,
    seconds: float = 120.0,
    **more: Any,
) -> list[Event]:
    """Events of a subscription until a condition holds or the stream ends."""

    async def run() -> list[Event]:
        push, readers = await opened(lab, {entry.name: entry} if current is None else current)
        events: list[Event] = []
        try:
            async with asyncio.timeout(seconds):
                async with aclosing(push.subscribe(wanted(entry, sql, **more))) as stream:
                    async for event in each(stream):
                        events.append(event)
                        if until(events):
                            break
            assert push.open_subscriptions == 0
        finally:
            push.stop()
            push.close()
            await readers.close()
        return events

    return asyncio.run(run())


def rows(events: list[Event], *names: str) -> list[Any]:
    return [json.loads(e.data) for e in events if e.name in (names or CHANGES)]


def served(lab: Any, topic: Topic, name: str) -> tuple[Entry, Any]:
    entry = lab.derived(name, topic(2), {"k": "string", "n": "bigint"}, "k")
    views = lab.serve(entry)
    lab.send(entry.definition.topic, *(({"k": k}, {"k": k, "n": n}) for n, k in enumerate("abcd")))
    lab.settle(views, entry)
    return entry, views


def test_snapshot_then_changes(lab: Any, topic: Topic) -> None:
    entry, views = served(lab, topic, "push_table")

    def more(events: list[Event]) -> bool:
        if len(events) == 7:
            assert [e.name for e in events] == ["columns", "snapshot", *["upsert"] * 4, "progress"]
            lab.send(entry.definition.topic, ({"k": "a"}, {"k": "a", "n": 9}), ({"k": "a"}, None))
        return len(rows(events)) == 6

    events = collect(lab, entry, "SELECT n + 1 AS m, k FROM push_table EMIT CHANGES", until=more)
    assert json.loads(events[0].data) == [
        {"name": "m", "type": "bigint"}, {"name": "k", "type": "string"},
    ]  # fmt: skip
    snapshot = sorted(rows(events[:6]), key=lambda r: r["key"]["k"])
    assert snapshot[0] == {"row": {"m": 1, "k": "a"}, "key": {"k": "a"}}
    change = {"row": {"m": 10, "k": "a"}, "key": {"k": "a"}}
    assert rows(events[7:]) == [change, {"key": {"k": "a"}}]
    assert [e.name for e in events[7:] if e.name in CHANGES] == ["upsert", "delete"]
    lab.settle(views, entry)


def test_changes_of_a_stream_in_another_format(lab: Any, topic: Topic) -> None:
    entry = lab.stream("push_csv", topic(), {"k": "string", "n": "bigint"}, "k")
    entry = replace(entry, definition=replace(entry.definition, format=Format.CSV))

    def more(events: list[Event]) -> bool:
        if events[-1].name == "progress" and len(events) == 2:
            lines = (b'"a,b",1', b"one field", b"c,many", b"d,2")
            lab.send(entry.definition.topic, *((b"k", line) for line in lines))
        return len(rows(events)) == 2

    events = collect(lab, entry, "SELECT n, k FROM push_csv EMIT CHANGES", until=more)
    assert [change["row"] for change in rows(events)] == [{"n": 1, "k": "a,b"}, {"n": 2, "k": "d"}]


def test_changes_of_a_stream_are_those_of_its_name(lab: Any, topic: Topic) -> None:
    entry = lab.stream("push_name", topic(), {"n": "bigint"})
    changed = {"format": Format.AVRO, "record": "shop.A"}
    entry = replace(entry, definition=replace(entry.definition, **changed))
    registry = MemoryRegistry()
    lab.codec = Codec(KnownSchemas(registry))

    def more(events: list[Event]) -> bool:
        if events[-1].name == "progress" and len(events) == 2:
            sent = [
                written_by(registry, json.dumps({**RECORD, "name": name}), {"n": n})
                for n, name in enumerate(("shop.A", "shop.B", "A", "shop.A"))
            ]
            lab.send(entry.definition.topic, *((b"k", v) for v in (sent[0], None, b"x", *sent[1:])))
        return len(rows(events)) == 2

    events = collect(lab, entry, "SELECT n FROM push_name EMIT CHANGES", until=more)
    assert [change["row"] for change in rows(events)] == [{"n": 0}, {"n": 3}]


def test_filter_sends_deletions_of_rows_that_the_client_has(lab: Any, topic: Topic) -> None:
    entry, _ = served(lab, topic, "push_filter")

    def more(events: list[Event]) -> bool:
        if events[-1].name == "progress" and len(rows(events)) == 2:
            lab.send(
                entry.definition.topic,
                ({"k": "a"}, None),  # never matched: the client does not have it
                ({"k": "d"}, {"k": "d", "n": 0}),  # matched, and no longer does
                ({"k": "b"}, {"k": "b", "n": 8}),  # matches now
            )
        return len(rows(events)) == 4

    sql = "SELECT k FROM push_filter WHERE n >= 2 EMIT CHANGES"
    told = collect(lab, entry, sql, until=more)
    changes = [(e.name, json.loads(e.data)["key"]["k"]) for e in told if e.name in CHANGES]
    assert sorted(changes[:2]) == [("upsert", "c"), ("upsert", "d")]
    assert sorted(changes[2:]) == [("delete", "d"), ("upsert", "b")]


def test_stream_begins_now_and_skips_what_it_cannot_read(lab: Any, topic: Topic) -> None:
    entry = lab.stream("push_stream", topic(1), {"user": "string", "n": "int"}, "user")
    lab.send(entry.definition.topic, (b"old", {"user": "old", "n": 0}))

    def more(events: list[Event]) -> bool:
        if events[-1].name == "progress" and len(events) == 2:
            lab.send(
                entry.definition.topic,
                (b"u", {"user": "u", "n": 1}),
                (b"u", b"{broken"),
                (b"u", {"user": "u", "n": "x"}),
                (b"u", b"\xff"),
                (b"v", {"user": "v", "n": 2}),
            )
        return events[-1].name == "progress" and json.loads(events[-1].data)["skipped"] == 3

    sql = "SELECT n, _key, _offset, _partition FROM push_stream WHERE n > 0 EMIT CHANGES"
    events = collect(lab, entry, sql, until=more)
    assert rows(events) == [
        {"row": {"n": 1, "_key": "u", "_offset": 1, "_partition": 0}, "key": {"user": "u"}},
        {"row": {"n": 2, "_key": "v", "_offset": 5, "_partition": 0}, "key": {"user": "v"}},
    ]
    assert json.loads(events[-1].data)["skipped"] == 3


def test_limit_ends_it(lab: Any, topic: Topic) -> None:
    entry, _ = served(lab, topic, "push_limit")
    sql = "SELECT * FROM push_limit EMIT CHANGES"
    events = collect(lab, entry, sql, until=lambda _: False, limit=3)
    assert len(rows(events)) == 3
    events = collect(lab, entry, sql, until=lambda _: False, limit=4)
    assert len(rows(events)) == 4


class Busy:
    """Writes numbered records to 20 keys until told to stop; knows what it wrote."""

    def __init__(self, lab: Any, topic: str) -> None:
        self.last: dict[str, int] = {}
        self.written = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(lab, topic))

    def __enter__(self) -> Busy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self, lab: Any, topic: str) -> None:
        while not self._stop.is_set():
            batch = []
            for _ in range(20):
                k = f"k{self.written % 20}"
                self.last[k] = self.last.get(k, -1) + 1
                batch.append(({"k": k}, {"k": k, "n": self.last[k]}))
                self.written += 1
            lab.send(topic, *batch)
            time.sleep(0.005)


@pytest.mark.parametrize("kind", ["stream", "table"])
def test_resume_without_gap_or_duplicate(lab: Any, topic: Topic, kind: str) -> None:
    """A client that is cut off at random places sees each change of a key once and in order."""
    columns = {"k": "string", "n": "bigint"}
    name = f"resumed_{kind}"
    table = kind == "table"
    make = lab.derived if table else lab.stream
    entry = make(name, topic(3), columns, "k")
    if table:
        lab.settle(lab.serve(entry), entry)
    chance = random.Random(7)
    seen: dict[str, int] = {}
    after: str | None = None
    cuts = 0

    async def run() -> None:
        nonlocal after, cuts
        push, readers = await opened(lab, {name: entry})
        stopped = False
        try:
            while True:
                token = decode_token(after) if after else None
                request = wanted(entry, f"SELECT * FROM {name} EMIT CHANGES", after=token)
                take = chance.randrange(1, 300)
                async with aclosing(push.subscribe(request)) as stream:
                    async for event in each(stream):
                        if event.name == "snapshot":
                            seen.clear()
                        after = event.id
                        if event.name in CHANGES:
                            row = json.loads(event.data)["row"]
                            before = seen.get(row["k"])
                            first = before is None and (table or not cuts)
                            assert first or row["n"] == (-1 if before is None else before) + 1
                            seen[row["k"]] = row["n"]
                            take -= 1
                        if cuts >= 12 and not stopped:
                            await asyncio.to_thread(busy.stop)
                            stopped = True
                        if stopped and seen == busy.last:
                            return
                        if take <= 0 and not stopped:
                            break
                cuts += 1
        finally:
            push.stop()
            push.close()
            await readers.close()

    async def limited() -> None:
        async with asyncio.timeout(240):
            await run()

    with Busy(lab, entry.definition.topic) as busy:
        asyncio.run(limited())
    assert cuts >= 12
    assert seen == busy.last
    assert busy.written > 200


@pytest.mark.parametrize("case", ["aged out", "ahead", "rebuilt", "another"])
def test_token_that_cannot_be_used(lab: Any, topic: Topic, case: str) -> None:
    policy = {"cleanup.policy": "compact,delete"}
    entry = lab.stream("tokens", topic(1, **policy), {"n": "int"})
    lab.send(entry.definition.topic, *((b"k", {"n": n}) for n in range(5)))
    sql = "SELECT * FROM tokens EMIT CHANGES"
    query = wanted(entry, sql).selection.digest
    token = Token("tokens", 1, query, int(time.time()), {entry.definition.topic: {0: 2}})
    match case:
        case "aged out":
            lab.admin.truncate(entry.definition.topic)
        case "ahead":
            token = replace(token, offsets={entry.definition.topic: {0: 99}})
        case "rebuilt":
            token = replace(token, generation=7)
        case "another":
            token = replace(token, query="0" * 16)
    with pytest.raises(MainstemError) as caught:
        collect(lab, entry, sql, until=lambda _: True, after=token)
    assert caught.value.code == "RESUME_TOKEN_INVALID"


def test_rebuild_ends_a_subscription(lab: Any, topic: Topic) -> None:
    entry = lab.stream("rebuilt", topic(1), {"n": "int"})
    current = {"rebuilt": entry}

    def more(events: list[Event]) -> bool:
        if events[-1].name == "progress":
            current["rebuilt"] = replace(entry, generation=2)
        return False

    events = collect(lab, entry, "SELECT * FROM rebuilt EMIT CHANGES", until=more, current=current)
    assert events[-1].name == "error"
    assert json.loads(events[-1].data)["title"] == "RESUME_TOKEN_INVALID"


def test_topics_join_and_leave_a_wildcard_subscription(lab: Any) -> None:
    root = f"push-{uuid.uuid4().hex[:8]}"
    columns = {"city": "string", "text": "string"}
    entry = lab.stream("push_wild", f"{root}.{{city}}.chat", columns)
    made: list[str] = []

    def send(city: str, text: str) -> None:
        topic = f"{root}.{city}.chat"
        lab.admin.ensure_topic(TopicSpec(topic, 2, 1))
        made.append(topic)
        lab.send(topic, (b"k", {"text": text}))

    sql = "SELECT *, _topic AS t FROM push_wild WHERE city <> 'rome' EMIT CHANGES"
    steps = iter(
        [
            lambda: send("nyc", "first of a new topic"),
            lambda: (lab.admin.delete_topic(f"{root}.nyc.chat"), send("oslo", "another")),
            lambda: (send("rome", "filtered"), send("oslo", "more")),
        ]
    )

    def more(events: list[Event]) -> bool:
        if events[-1].name == "progress" and not rows(events) and not made:
            next(steps)()
        elif events[-1].name == "append":
            step = next(steps, None)
            if step is None:
                return True
            step()
        return False

    try:
        events = collect(lab, entry, sql, until=more)
        texts = ["first of a new topic", "another", "more"]
        found = [row["row"] for row in rows(events)]
        assert [row["text"] for row in found] == texts
        assert found[0] == {"city": "nyc", "text": texts[0], "t": f"{root}.nyc.chat"}
        # behind the first event: the topic that it was in is gone, all of the others comes
        token = decode_token(next(e.id for e in events if e.name == "append"))
        again = collect(lab, entry, sql, until=lambda e: len(rows(e)) == 2, after=token)
        assert [row["row"]["text"] for row in rows(again)] == texts[1:]
    finally:
        for topic in made:
            lab.admin.delete_topic(topic)
