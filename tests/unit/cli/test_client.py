from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mainstem.cli import client as module
from mainstem.cli.client import Client, RemoteError
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway

ROW = ("append", {"row": {"a": 1}, "key": None}, "0:1")


def code_of(call: Any, *arguments: Any) -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        call(*arguments)
    return caught.value


def test_a_problem_becomes_the_same_error_again(gateway: Gateway) -> None:
    place = {"file": "a.sql", "line": 2, "column": 5, "snippet": "FROM nowhere"}
    gateway.refuse("POST", "/v1/sql", "UNKNOWN_RELATION", 404, location=place)
    error = code_of(Client(gateway.url).sql, "SELECT 1")
    assert (error.code, error.exit_code, error.status) == ("UNKNOWN_RELATION", 3, 404)
    assert str(error.location) == "a.sql:2:5"
    assert "what happened" in error.render()
    assert "what to do" in error.render()


def test_a_code_that_only_the_gateway_knows_is_kept_whole(gateway: Gateway) -> None:
    gateway.refuse("POST", "/v1/sql", "NEW_IN_LATER_VERSION", 418, detail="a {brace} {0}")
    error = code_of(Client(gateway.url).sql, "SELECT 1")
    assert (error.code, error.exit_code, error.message) == (
        "NEW_IN_LATER_VERSION",
        1,
        "a {brace} {0}",
    )
    assert error.problem()["status"] == 418


def test_an_unknown_code_with_503_means_unreachable() -> None:
    assert RemoteError({"title": "X", "status": 503, "detail": "d"}).exit_code == 69


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    error = code_of(Client(url).status)
    assert (error.code, error.exit_code) == ("GATEWAY_UNREACHABLE", 69)


def test_a_password_in_the_url_is_used_but_not_shown(gateway: Gateway) -> None:
    gateway.answer("GET", "/v1/status", {"flows": []})
    client = Client(gateway.url.replace("http://", "http://me:secret@"))
    client.status()
    assert gateway.requests[0].headers["authorization"].startswith("Basic ")
    assert "secret" not in client.url
    assert "secret" not in code_of(Client("http://me:secret@127.0.0.1:9").status).render()


def test_somebody_else_there(gateway: Gateway) -> None:
    gateway.answer("GET", "/v1/objects", "<html>hello</html>")
    assert code_of(Client(gateway.url).objects).code == "NOT_A_GATEWAY"
    assert code_of(Client(gateway.url).topics).code == "NOT_A_GATEWAY"


@pytest.mark.parametrize("url", ["nonsense", "ftp://127.0.0.1:1", "http://[", "file:///etc/passwd"])
def test_not_a_url(url: str) -> None:
    assert code_of(lambda: Client(url).status()).exit_code == 69


def test_too_slow(gateway: Gateway, answer: Any) -> None:
    release = threading.Event()

    def late(_: Any) -> Any:
        release.wait(5)
        return answer({})

    gateway.on("GET", "/v1/status", late)
    error = code_of(Client(gateway.url, timeout=0.1).status)
    release.set()
    assert (error.code, error.exit_code) == ("GATEWAY_SLOW", 69)


def test_names_are_escaped_in_paths(gateway: Gateway) -> None:
    gateway.answer("GET", "/v1/objects/a%2Fb%3Fc", {"name": "a/b?c"})
    assert Client(gateway.url).object("a/b?c")["name"] == "a/b?c"


def test_subscribe_gives_events_with_positions(gateway: Gateway, stream: Any) -> None:
    gateway.on("GET", "/v1/subscribe", lambda _: stream([("columns", [], "0:0"), ROW]))
    events = list(Client(gateway.url).subscribe("SELECT 1 EMIT CHANGES", limit=1, snapshot=False))
    assert [(e.kind, e.id) for e in events] == [("columns", "0:0"), ("append", "0:1")]
    query = gateway.requests[0].query
    assert query == {"sql": "SELECT 1 EMIT CHANGES", "snapshot": "false", "limit": "1"}


@pytest.mark.parametrize("cut", [True, False])
def test_subscribe_goes_on_behind_the_last_event(
    gateway: Gateway, stream: Any, cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)
    answers = [
        stream([("columns", [], "0:0"), ROW], cut=cut),
        stream([("append", {"row": {"a": 2}}, "0:2")]),
    ]
    gateway.on("GET", "/v1/subscribe", lambda _: answers.pop(0))
    retries: list[MainstemError] = []
    events = list(Client(gateway.url).subscribe("S", limit=2, on_retry=retries.append))
    assert [e.data["row"]["a"] for e in events if e.kind == "append"] == [1, 2]
    first, second = gateway.requests
    assert "last-event-id" not in first.headers
    assert (second.headers["last-event-id"], second.query["limit"]) == ("0:1", "1")
    assert [e.code for e in retries] == ["GATEWAY_UNREACHABLE"]


def test_subscribe_gives_up_after_the_time_out(
    gateway: Gateway, stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)
    answers = [stream([ROW])]
    gateway.on("GET", "/v1/subscribe", lambda _: answers.pop(0) if answers else stream([]))
    events = Client(gateway.url, timeout=0.2).subscribe("S")
    assert next(events).kind == "append"
    assert code_of(next, events).code == "GATEWAY_UNREACHABLE"


def test_a_refused_subscription_is_not_tried_again(gateway: Gateway) -> None:
    gateway.refuse("GET", "/v1/subscribe", "UNKNOWN_RELATION", 404)
    assert code_of(next, Client(gateway.url).subscribe("S", after="0:7")).code == "UNKNOWN_RELATION"
    assert len(gateway.requests) == 1


def test_an_error_event_ends_the_subscription(gateway: Gateway, stream: Any) -> None:
    problem = {"title": "ENGINE_FAILED", "status": 500, "detail": "d", "hint": ""}
    gateway.on("GET", "/v1/subscribe", lambda _: stream([("error", problem, "")]))
    assert code_of(next, Client(gateway.url).subscribe("S")).code == "ENGINE_FAILED"
