"""Requests and replies through a real broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mainstem.errors import MainstemError
from mainstem.log import wire
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer
from mainstem.log.requests import Caller, Responder
from mainstem.log.responder import current_request
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import SourceLocation

pytestmark = pytest.mark.kafka

SILENCE = 3.0
"""Who is not heard of for so long is taken for dead: many beats, also on a busy machine."""
PATIENCE = 120


@pytest.fixture
def channel(admin: Admin, prefix: str) -> Iterator[wire.Channel]:
    channel = wire.Channel(f"{prefix}.requests", f"{prefix}.replies")
    yield channel
    for topic in channel.topics():
        admin.delete_topic(topic.name)


@pytest.fixture
def caller(connection: Connection, channel: wire.Channel) -> Iterator[Caller]:
    caller = Caller(connection, channel=channel, silence=SILENCE)
    caller.start()
    yield caller
    caller.close()


Serve = Callable[..., Any]


@pytest.fixture
def serve(connection: Connection, channel: wire.Channel) -> Serve:
    """A context manager: a responder that runs meanwhile."""

    @contextmanager
    def serving(handler: Any, **settings: Any) -> Iterator[Responder]:
        settings = {"channel": channel, "beat": 0.2, **settings}
        responder = Responder(connection, handler, **settings)
        stop = threading.Event()
        thread = threading.Thread(target=responder.run, args=(stop,))
        thread.start()
        try:
            yield responder
        finally:
            stop.set()
            thread.join(PATIENCE)
            assert not thread.is_alive()

    return serving


def echo(kind: str, payload: dict[str, Any]) -> Iterable[dict[str, Any]]:
    yield {"kind": kind, **payload}


def test_call(caller: Caller, serve: Serve) -> None:
    with serve(echo):
        assert caller.call("echo", {"n": 1}, PATIENCE) == {"kind": "echo", "n": 1}
        assert caller.call("echo", {"text": "x" * 3_000_000}, PATIENCE)["text"] == "x" * 3_000_000


def test_a_reply_without_chunks(caller: Caller, serve: Serve) -> None:
    with serve(lambda kind, payload: []):
        assert caller.call("ping", {}, PATIENCE) == {}


def test_chunks_keep_their_order(caller: Caller, serve: Serve) -> None:
    def count(kind: str, payload: dict[str, Any]) -> Iterable[dict[str, Any]]:
        return ({"n": n} for n in range(payload["to"]))

    with serve(count):
        chunks = list(caller.stream("count", {"to": 200}, PATIENCE))
    assert [chunk["n"] for chunk in chunks] == list(range(200))


def test_many_callers_at_once(caller: Caller, serve: Serve) -> None:
    answers: dict[int, Any] = {}

    def ask(n: int) -> None:
        answers[n] = caller.call("echo", {"n": n}, PATIENCE)["n"]

    with serve(echo):
        threads = [threading.Thread(target=ask, args=(n,)) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == {n: n for n in range(20)}


def test_an_error_comes_back_with_its_place(caller: Caller, serve: Serve) -> None:
    place = SourceLocation("a.sql", 2, 5, "SELECT x")

    def fail(kind: str, payload: dict[str, Any]) -> Iterable[dict[str, Any]]:
        yield {"n": 1}
        raise MainstemError("UNKNOWN_COLUMN", location=place, column="x", known="a", suggestion="")

    with serve(fail):
        chunks = []
        with pytest.raises(MainstemError) as caught:
            for chunk in caller.stream("fail", {}, PATIENCE):
                chunks.append(chunk)
    assert chunks == [{"n": 1}]
    assert (caught.value.code, caught.value.location) == ("UNKNOWN_COLUMN", place)


def test_an_unexpected_error_is_one_line(caller: Caller, serve: Serve) -> None:
    def fail(kind: str, payload: dict[str, Any]) -> Iterable[dict[str, Any]]:
        raise ValueError("first line\nsecond line")

    with serve(fail):
        with pytest.raises(MainstemError) as caught:
            caller.call("fail", {}, PATIENCE)
        assert caught.value.code == "ENGINE_FAILED"
        assert "first line" in caught.value.message
        assert "second" not in caught.value.message


def test_nobody_answers(caller: Caller) -> None:
    began = time.monotonic()
    with pytest.raises(MainstemError) as caught:
        caller.call("echo", {}, 2)
    assert caught.value.code == "ENGINE_UNREACHABLE"
    assert time.monotonic() - began > 1.9


def test_slow_is_not_dead(caller: Caller, serve: Serve) -> None:
    """Slower than the silence that means death: the beats tell the difference."""

    def slow(kind: str, payload: dict[str, Any]) -> Iterable[dict[str, Any]]:
        threading.Event().wait(payload["seconds"])
        yield {"done": True}

    with serve(slow):
        assert caller.call("slow", {"seconds": SILENCE + 1}, PATIENCE) == {"done": True}
        with pytest.raises(MainstemError) as caught:
            caller.call("slow", {"seconds": 2.0}, 1.0)
        assert caught.value.code == "QUERY_TOO_LONG"


def test_a_responder_that_dies_is_noticed(
    caller: Caller, connection: Connection, channel: wire.Channel
) -> None:
    """A responder that accepts and is never heard of again."""
    producer = Producer(connection)

    def accept_only() -> None:
        producer.send(channel.replies, wire.to_records("the-id", {"accepted": True}))

    timer = threading.Timer(0.2, accept_only)
    timer.start()
    began = time.monotonic()
    with pytest.raises(MainstemError) as caught:
        list(caller.stream("echo", {}, PATIENCE, id="the-id"))
    assert caught.value.code == "ENGINE_UNREACHABLE"
    assert time.monotonic() - began < 60
    timer.join()
    producer.close()


def test_a_request_waits_for_the_responder_to_start(caller: Caller, serve: Serve) -> None:
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(caller.call("echo", {"n": 1}, PATIENCE))
    )
    asking.start()
    with serve(echo):
        asking.join(PATIENCE)
    assert answers == [{"kind": "echo", "n": 1}]


def test_a_restarted_responder_repeats_nothing(
    caller: Caller, connection: Connection, channel: wire.Channel, serve: Serve
) -> None:
    handled: list[Any] = []

    def note(kind: str, payload: dict[str, Any]) -> Iterable[dict[str, Any]]:
        handled.append(payload["n"])
        yield {}

    with serve(note):
        caller.call("note", {"n": "finished before"}, PATIENCE)
    now = time.time()
    producer = Producer(connection)
    for id, deadline in (
        ("begun", now + PATIENCE),
        ("expired", now - 1),
        ("waiting", now + PATIENCE),
    ):
        request = {"kind": "note", "payload": {"n": id}, "deadline": deadline}
        producer.send(channel.requests, wire.to_records(id, request))
    producer.send(channel.replies, wire.to_records("begun", {"accepted": True}))
    producer.send(channel.requests, [Outgoing(b"foreign", b"not ours")])
    with serve(note):
        caller.call("note", {"n": "new"}, PATIENCE)
        eventually(lambda: "waiting" in handled)
    producer.close()
    assert sorted(handled) == ["finished before", "new", "waiting"]


def test_who_stops_reading_cancels(caller: Caller, serve: Serve) -> None:
    closed = threading.Event()
    cancelled: list[str] = []
    ids: list[str] = []

    def endless(kind: str, payload: dict[str, Any]) -> Iterable[dict[str, Any]]:
        ids.append(current_request.get())
        try:
            while True:
                yield {}
        finally:
            closed.set()

    with serve(endless, on_cancel=cancelled.append):
        stream = caller.stream("endless", {}, PATIENCE)
        next(iter(stream))
        stream.close()  # type: ignore[attr-defined]
        assert closed.wait(PATIENCE)
    assert cancelled == ids


def test_latency(caller: Caller, serve: Serve) -> None:
    with serve(echo):
        caller.call("echo", {}, PATIENCE)
        times = []
        for _ in range(50):
            began = time.perf_counter()
            caller.call("echo", {}, PATIENCE)
            times.append(time.perf_counter() - began)
    median = sorted(times)[25]
    print(f"request and reply: median {median * 1000:.1f} ms, worst {max(times) * 1000:.1f} ms")
    assert min(times) < 0.1, "each waits for somebody who looks from time to time"
