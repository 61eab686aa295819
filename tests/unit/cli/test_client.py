from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

import mainstem
from mainstem.client import Client, RemoteError, calling, records
from mainstem.errors import MainstemError
from mainstem.testing.ports import free_port

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
    error = code_of(Client(f"http://127.0.0.1:{free_port()}").status)
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
    monkeypatch.setattr(calling, "FIRST_PAUSE", 0.01)
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


@pytest.mark.parametrize("code", ["LOG_UNREACHABLE", "VIEW_NOT_READY"])
def test_subscribe_waits_for_a_gateway_that_begins(
    gateway: Gateway, stream: Any, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "FIRST_PAUSE", 0.01)
    problem = {"title": code, "status": 503, "detail": "d", "hint": ""}
    answers = [
        stream([ROW]),
        stream([("error", problem, "")]),
        stream([("append", {"row": {"a": 2}}, "0:2")]),
    ]
    gateway.on("GET", "/v1/subscribe", lambda _: answers.pop(0))
    retries: list[MainstemError] = []
    events = Client(gateway.url).subscribe("S", limit=2, on_retry=retries.append)
    assert [e.data["row"]["a"] for e in events] == [1, 2]
    assert [e.code for e in retries] == ["GATEWAY_UNREACHABLE", code]


def test_subscribe_gives_up_after_the_time_out(
    gateway: Gateway, stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "FIRST_PAUSE", 0.01)
    answers = [stream([ROW])]
    gateway.on("GET", "/v1/subscribe", lambda _: answers.pop(0) if answers else stream([]))
    events = Client(gateway.url, timeout=1.0).subscribe("S")
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


def test_rows_keep_their_digits_and_go_in_requests(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "BATCH_ROWS", 2)
    gateway.answer("POST", "/v1/streams/o%2Fs/records", {"written": 2}, {"written": 1})

    class Model(BaseModel):
        x: int = Field(alias="class")

    rows = [
        {
            "p": Decimal("12.30"), "at": datetime(2026, 1, 1, tzinfo=UTC), "d": date(2026, 1, 1),
            "raw": b"\0\xff", "u": UUID(int=0), "f": [math.nan, -math.inf, 0.1], "s": {"ä": None},
        },
        {"p": Decimal("NaN"), "t": (True, 1)},
        Model.model_validate({"class": 7}),
    ]  # fmt: skip
    with mainstem.Client(gateway.url) as client:
        assert client.produce("o/s", iter(rows)) == 3
    first, second = (json.loads(r.body, parse_float=str) for r in gateway.requests)
    assert first["records"][0]["value"] == {
        "p": "12.30", "at": "2026-01-01T00:00:00+00:00", "d": "2026-01-01", "raw": "AP8=",
        "u": str(UUID(int=0)), "f": ["NaN", "-Infinity", "0.1"], "s": {"ä": None},
    }  # fmt: skip
    assert first["records"][1]["value"] == {"p": "NaN", "t": [True, 1]}
    assert second == {"records": [{"value": {"class": 7}}]}


def test_a_row_that_is_refused_is_counted_from_the_first(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "BATCH_ROWS", 2)
    refused = MainstemError("INVALID_RECORD", index=1, path="value.n", name="s", problem="no")

    def answer(request: Any) -> Any:
        if len(gateway.requests) == 1:
            return SimpleNamespace(document={"written": 2}, status=200, kind="application/json")
        kind = "application/problem+json"
        return SimpleNamespace(document=refused.problem(), status=422, kind=kind)

    gateway.on("POST", "/v1/streams/s/records", answer)
    with pytest.raises(MainstemError) as error, Client(gateway.url) as client:
        client.produce("s", [{"n": n} for n in range(9)])
    assert (error.value.code, error.value.params["index"]) == ("INVALID_RECORD", 3)
    assert "the 2 rows before this request are written" in error.value.message
    assert len(gateway.requests) == 2


def test_the_package_is_light() -> None:
    code = "import mainstem, sys; print('httpx2' in sys.modules); mainstem.Client; mainstem.nothing"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "False\n"
    assert "no attribute 'nothing'" in done.stderr
