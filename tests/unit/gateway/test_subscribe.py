"""Subscriptions over HTTP and WebSockets: three ways to write the same events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import Message
from starlette.websockets import WebSocketDisconnect
from tests.unit.gateway.world import ENTRIES, Stub
from tests.unit.views.memory_log import MemoryLog, MemorySources

from mainstem.gateway import events
from mainstem.gateway.events import EventStream
from mainstem.testing.waiting import eventually
from mainstem.views.changes import Selection
from mainstem.views.events import Event, Piece
from mainstem.views.push import Push

SQL = "SELECT * FROM users EMIT CHANGES"
SOCKET = "ws://127.0.0.1:8080/v1/subscribe"


class Sources(MemorySources):
    def query(self, entry: Any, selection: Selection) -> Any:
        return super().query(entry, replace(selection, where="1"))


@pytest.fixture
def served(stub: Stub, client: TestClient) -> Iterator[TestClient]:
    """A table with three rows."""
    log = MemoryLog("users")
    for n in range(3):
        log.append("users", f"k{n}", {"k": f"k{n}", "n": n})
    by_name = {e.name: e for e in ENTRIES}
    push = Push(Sources(log), by_name.get, most=2)
    stub.push = push  # type: ignore[attr-defined]
    yield client
    push.stop()


def sse(text: str) -> list[tuple[str, str, Any]]:
    told = []
    for block in text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        told.append((lines["event"], lines["id"], json.loads(lines["data"])))
    return told


def objects(lines: list[str]) -> list[tuple[str, str, Any]]:
    return [(o["event"], o["id"], o["data"]) for o in map(json.loads, lines)]


def test_three_ways_to_say_the_same(served: TestClient) -> None:
    asked = {"sql": SQL, "limit": "3"}
    first = served.get("/v1/subscribe", params=asked)
    assert first.headers["content-type"].startswith("text/event-stream")
    lines = served.get("/v1/subscribe", params=asked, headers={"Accept": "application/x-ndjson"})
    assert lines.headers["content-type"].startswith("application/x-ndjson")
    messages = []
    with (
        served.websocket_connect(f"{SOCKET}?sql={SQL}&limit=3") as socket,
        pytest.raises(WebSocketDisconnect) as closed,
    ):
        while True:
            messages.append(socket.receive_text())
    assert closed.value.code == 1000
    told = sse(first.text)
    assert [name for name, _, _ in told] == ["columns", "snapshot", *["upsert"] * 3]
    assert sorted(data["row"]["n"] for _, _, data in told[2:]) == [0, 1, 2]
    for others in (objects(lines.text.splitlines()), objects(messages)):
        assert [(name, data) for name, _, data in others] == [(n, d) for n, _, d in told]
        assert all(id for _, id, _ in others)


@pytest.mark.parametrize(
    ("query", "code", "closed"),
    [
        ("sql=SELECT * FROM users", "BAD_REQUEST", 1008),
        ("", "ONE_STATEMENT_EXPECTED", 1008),
        ("sql=SELECT * FROM nothing EMIT CHANGES", "UNKNOWN_RELATION", 1008),
        (f"sql={SQL}&after=abc", "RESUME_TOKEN_INVALID", 1008),
    ],
)
def test_a_websocket_that_is_refused_says_why(
    served: TestClient, query: str, code: str, closed: int
) -> None:
    with served.websocket_connect(f"{SOCKET}?{query}") as socket:
        told = json.loads(socket.receive_text())
        assert (told["event"], told["data"]["title"]) == ("error", code)
        with pytest.raises(WebSocketDisconnect) as caught:
            socket.receive_text()
        assert (caught.value.code, caught.value.reason) == (closed, code)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Host": "evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_websocket_of_another_site_is_refused(
    served: TestClient, headers: dict[str, str]
) -> None:
    with (
        pytest.raises(WebSocketDisconnect) as caught,
        served.websocket_connect(f"{SOCKET}?sql={SQL}", headers=headers),
    ):
        pass
    assert caught.value.reason == "FOREIGN_REQUEST"


def test_beyond_the_limit(served: TestClient, stub: Any) -> None:
    path, socket = f"/v1/subscribe?sql={SQL}", f"{SOCKET}?sql={SQL}"
    with served.websocket_connect(socket) as one, served.websocket_connect(socket) as other:
        assert one.receive_json()["event"] == other.receive_json()["event"] == "columns"
        answer = served.get(path)
        assert (answer.status_code, answer.json()["title"]) == (503, "TOO_MANY_SUBSCRIPTIONS")
        assert answer.headers["retry-after"]
        with served.websocket_connect(socket) as third:
            assert third.receive_json()["data"]["title"] == "TOO_MANY_SUBSCRIPTIONS"
            with pytest.raises(WebSocketDisconnect) as caught:
                third.receive_text()
            assert caught.value.code == 1013
        one.close()
        other.close()
        eventually(lambda: stub.push.open_subscriptions == 0)


def test_what_is_sampled_is_asked_for_in_known_words(served: TestClient) -> None:
    asked = {"sql": SQL, "limit": 3}
    assert served.get("/v1/subscribe", params={**asked, "on_slow": "sample"}).status_code == 200
    wrong = served.get("/v1/subscribe", params={**asked, "on_slow": "drop"})
    assert (wrong.status_code, wrong.json()["title"]) == (400, "BAD_REQUEST")


def test_a_client_that_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "STALLED_SECONDS", 0.05)
    ended: list[str] = []

    async def pieces() -> AsyncGenerator[Piece, None]:
        try:
            while True:
                yield Piece([Event("append", "{}", "x")], None)
        finally:
            ended.append("pieces")

    async def work() -> None:
        sent = 0

        async def send(message: Message) -> None:
            nonlocal sent
            sent += 1
            if sent > 3:
                await asyncio.Event().wait()  # its socket is full

        async def receive() -> Message:
            await asyncio.Event().wait()
            raise AssertionError

        scope = {"type": "http", "path": "/", "mainstem.abort": lambda: ended.append("socket")}
        await EventStream(pieces())(scope, receive, send)

    asyncio.run(asyncio.wait_for(work(), 30))
    assert ended == ["socket", "pieces"]
