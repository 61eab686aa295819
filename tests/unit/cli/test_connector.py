"""`mainstem connector` against a gateway that says what the test wants."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Run

PATH = "/v1/connectors/shop"
ERROR = {"title": "CONNECTOR_FAILED", "detail": "it broke", "hint": "wait", "status": 502}


def told(state: str = "running", **more: Any) -> dict[str, Any]:
    return {
        "name": "shop", "connector": "postgres-cdc", "state": state, "tables": ["public.orders"],
        "tasks": [{"id": 0, "state": state, "worker": "w", "trace": None}], "restarts": 2,
        "position": "0/1", "held_bytes": 5600, "error": None, "last_error": None,
        "last_error_at": None, **more,
    }  # fmt: skip


def test_list(gateway: Gateway, run: Run) -> None:
    worker = {"state": "starting", "url": "u", "problem": "not yet"}
    failed = told("failed", error=ERROR)
    gateway.answer("GET", "/v1/connectors", {"worker": worker, "connectors": [failed]})
    result = run("connector", "list")
    assert result.code == 0
    assert result.out.splitlines()[1].split()[:4] == ["shop", "postgres-cdc", "failed", "failed"]
    assert "connect: starting (not yet)" in result.err
    assert "shop: CONNECTOR_FAILED: it broke" in result.err
    assert json.loads(run("connector", "list", "-o", "json").out) == [failed]


def test_show(gateway: Gateway, run: Run) -> None:
    tasks = [{"id": 0, "state": "failed", "worker": "w", "trace": "no disk"}]
    document = told(tasks=tasks, last_error=ERROR, last_error_at="2026-01-01T00:00:00Z")
    gateway.answer("GET", PATH, document)
    lines = dict(
        line.split(maxsplit=1) for line in run("connector", "show", "shop").out.split("\n")[:-1]
    )
    assert lines["last_error"].strip() == "it broke (2026-01-01T00:00:00Z)"
    assert lines["task"].split(maxsplit=1)[1].strip() == "no disk"
    assert json.loads(run("connector", "show", "shop", "-o", "json").out) == document


def test_restart_pause_and_resume(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", f"{PATH}/restart", told())
    assert run("connector", "restart", "shop", "--only-failed").code == 0
    assert gateway.requests[-1].query == {"only_failed": "true"}
    for verb in ("pause", "resume"):
        gateway.answer("POST", f"{PATH}/{verb}", {"message": f"source shop {verb}d"})
        assert f"source shop {verb}d" in run("connector", verb, "shop").err
    gateway.refuse("POST", f"{PATH}/pause", "CONNECTOR_UNKNOWN", 404)
    assert "CONNECTOR_UNKNOWN" in run("connector", "pause", "shop").err


def test_offsets_are_shown_and_reset_only_when_asked_for(gateway: Gateway, run: Run) -> None:
    found = [{"partition": {"server": "shop"}, "offset": {"lsn": 7}}]
    gateway.answer("GET", f"{PATH}/offsets", {"offsets": found})
    assert json.loads(run("connector", "offsets", "shop", "-o", "json").out) == found
    gateway.answer("DELETE", f"{PATH}/offsets", {"message": "from the beginning"})
    refused = run("connector", "offsets", "shop", "--reset")
    assert "CONFIRMATION_NEEDED" in refused.err
    assert gateway.sent("DELETE", f"{PATH}/offsets") == []
    assert "from the beginning" in run("connector", "offsets", "shop", "--reset", "--yes").err


def test_forget_asks_first(gateway: Gateway, run: Run) -> None:
    gateway.answer("DELETE", PATH, {"message": "shop is removed"})
    assert "CONFIRMATION_NEEDED" in run("connector", "forget", "shop").err
    assert "shop is removed" in run("connector", "forget", "shop", "-y").err
    assert len(gateway.sent("DELETE", PATH)) == 1


def test_status_tells_of_connectors(gateway: Gateway, run: Run) -> None:
    status = {
        "engine": {"state": "running"}, "flows": [], "connectors": [told(error=ERROR)],
        "connect": {"state": "failed", "url": "u", "problem": "no jars"},
    }  # fmt: skip
    gateway.answer("GET", "/v1/status", status)
    said = run("status").err
    assert "connect: failed (no jars)" in said
    assert "connector shop: running, its source holds 5,600 bytes" in said
    assert "shop: CONNECTOR_FAILED: it broke" in said
