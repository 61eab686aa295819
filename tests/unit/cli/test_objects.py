from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mainstem.cli import objects

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Run

STATUS: dict[str, Any] = {
    "engine": {"state": "running"},
    "flows": [
        {"flow": "visits", "state": "running", "lane": "micro-batch", "lag_seconds": 0.4},
        {
            "flow": "sales",
            "state": "failed",
            "error": {"title": "ENGINE_FAILED", "detail": "no luck", "hint": "", "status": 500},
        },
    ],
    "views": [],
    "quarantine": {"records": 3},
    "schemas": {"registry": "/registry", "subjects": 2},
}
OBJECTS = {
    "objects": [
        {"name": "orders", "kind": "stream", "inputs": []},
        {"name": "Big", "kind": "stream", "inputs": ["ORDERS"]},
        {"name": "sales", "kind": "table", "inputs": ["big"]},
        {"name": "visits", "kind": "table", "inputs": ["clicks"]},
    ]
}


def test_status(gateway: Gateway, run: Run) -> None:
    gateway.answer("GET", "/v1/status", STATUS)
    result = run("status")
    assert result.code == 0
    header, visits, sales = result.out.splitlines()
    assert header.split()[:4] == ["flow", "state", "lane", "lag_seconds"]
    assert visits.split() == ["visits", "running", "micro-batch", "0.4"]
    assert sales.split() == ["sales", "failed"]
    assert "engine: running" in result.err
    assert f"registry: {gateway.url}/registry\n" in result.err
    assert "sales: ENGINE_FAILED: no luck" in result.err
    assert "3 records are held in quarantine" in result.err


def test_status_as_data_is_the_whole_document(gateway: Gateway, run: Run) -> None:
    gateway.answer("GET", "/v1/status", STATUS)
    result = run("status", "-o", "json")
    assert json.loads(result.out) == STATUS
    assert result.err == ""


def test_watch_goes_on_until_ctrl_c(gateway: Gateway, run: Run, put_sleep: Any) -> None:
    gateway.answer("GET", "/v1/status", STATUS)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    put_sleep(objects, sleep)
    result = run("status", "--watch", "--interval", "0.5", "-o", "jsonl")
    assert result.code == 130
    assert len(result.out.splitlines()) == 4


@pytest.fixture
def dropping(gateway: Gateway) -> Gateway:
    gateway.answer("GET", "/v1/objects", OBJECTS)
    gateway.answer("GET", "/v1/objects/orders", OBJECTS["objects"][0])
    gateway.answer("DELETE", "/v1/objects/orders", {"kind": "message", "message": "dropped"})
    return gateway


def test_drop_needs_a_yes_without_a_terminal(dropping: Gateway, run: Run) -> None:
    result = run("drop", "orders")
    assert result.code == 1
    assert "CONFIRMATION_NEEDED" in result.err
    assert not dropping.sent("DELETE", "/v1/objects/orders")
    assert run("drop", "orders", "--yes").code == 0
    assert dropping.sent("DELETE", "/v1/objects/orders")[0].query == {"cascade": "false"}


def test_drop_with_cascade_says_what_goes(dropping: Gateway, run: Run) -> None:
    result = run("drop", "orders", "--cascade", "--dry-run")
    assert (result.code, result.err) == (0, "would drop orders, Big, sales\n")
    assert run("drop", "orders", "--cascade", "--yes").code == 0
    assert dropping.sent("DELETE", "/v1/objects/orders")[0].query == {"cascade": "true"}


@pytest.mark.parametrize(("reply", "sent"), [("y\n", 1), ("\n", 0)])
def test_drop_asks_at_a_terminal(
    dropping: Gateway, run: Run, reply: str, sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "interactive", lambda: True)
    result = run("drop", "orders", stdin=reply)
    assert result.code == 1 - sent
    assert len(dropping.sent("DELETE", "/v1/objects/orders")) == sent


def test_drop_of_what_others_read(dropping: Gateway, run: Run) -> None:
    dropping.refuse("DELETE", "/v1/objects/orders", "HAS_DEPENDENTS", 409)
    result = run("drop", "orders", "--yes")
    assert result.code == 3
    assert "HAS_DEPENDENTS" in result.err


def test_drop_of_nothing(gateway: Gateway, run: Run) -> None:
    gateway.refuse("GET", "/v1/objects/nothing", "UNKNOWN_RELATION", 404)
    assert run("drop", "nothing", "--yes").code == 3


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_pause_and_resume(gateway: Gateway, run: Run, verb: str) -> None:
    gateway.answer("POST", f"/v1/objects/visits/{verb}", {"name": "visits"})
    result = run(verb, "visits")
    assert (result.code, result.out) == (0, "")
    assert f"visits {verb}d" in result.err
    assert run(verb, "visits", "--quiet").err == ""
