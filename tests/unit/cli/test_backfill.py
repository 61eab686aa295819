"""`mainstem backfill` against a gateway that says what the test wants."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mainstem.cli import backfill as commands

if TYPE_CHECKING:
    import pytest
    from tests.unit.cli.conftest import Gateway, Run

STARTED = {
    "name": "visits", "since": "beginning", "rate": None, "records": 4200, "whole": True,
    "appends": False, "dry_run": False,
}  # fmt: skip
PATH = "/v1/backfills/visits"


def told(state: str, **more: Any) -> dict[str, Any]:
    return {
        "name": "visits", "state": state, "since": "beginning", "rate": 100, "records_done": 10,
        "records_total": 40, "records_per_second": 9.5, "eta_seconds": 3, "error": None,
        "appends": False, **more,
    }  # fmt: skip


def test_start_looks_first_and_then_begins(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", PATH, STARTED)
    result = run("backfill", "start", "visits", "--rate", "100")
    assert result.code == 0
    assert "visits: reads 4,200 records, from beginning" in result.err
    asked = [request.json() for request in gateway.requests]
    assert asked == [
        {"since": "beginning", "rate": 100, "dry_run": True},
        {"since": "beginning", "rate": 100},
    ]


def test_rows_of_older_records_are_not_given_up_without_a_word(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", PATH, {**STARTED, "whole": False})
    refused = run("backfill", "start", "visits", "--from", "2026-01-01T00:00:00Z")
    assert refused.code != 0
    assert "CONFIRMATION_NEEDED" in refused.err
    assert len(gateway.requests) == 1
    assert run("backfill", "start", "visits", "--from", "2026-01-01", "--yes").code == 0
    assert gateway.requests[-1].json()["since"] == "2026-01-01"


def test_offsets_are_json(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", PATH, STARTED)
    assert run("backfill", "start", "visits", "--from", '{"clicks": {"0": 5}}', "--yes").code == 0
    assert gateway.requests[0].json()["since"] == {"clicks": {"0": 5}}
    assert "BAD_REQUEST" in run("backfill", "start", "visits", "--from", "{0}").err


def test_list_shows_how_far_it_is_and_what_is_wrong(gateway: Gateway, run: Run) -> None:
    error = {"title": "FLOW_FAILED", "detail": "it broke"}
    gateway.answer("GET", "/v1/backfills", {"backfills": [told("failed", error=error)]})
    result = run("backfill", "list")
    assert result.code == 0
    header, line = result.out.splitlines()
    assert header.split()[:2] == ["name", "state"]
    assert line.split()[:2] == ["visits", "failed"]
    assert "visits: it broke" in result.err
    gateway.answer("GET", PATH, told("running"))
    assert json.loads(run("backfill", "list", "visits", "-o", "json").out) == [told("running")]


def test_wait_ends_when_it_is_handed_over(
    gateway: Gateway, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_POLL_SECONDS", 0.0)
    gateway.answer("POST", PATH, STARTED)
    states = iter(["running", "handing over", "done"])
    from tests.unit.cli.conftest import Answer

    gateway.on("GET", PATH, lambda _: Answer(told(next(states))))
    result = run("backfill", "start", "visits", "--wait")
    assert result.code == 0
    assert "visits has the new result" in result.err
    assert next(states, None) is None
    gateway.answer("GET", PATH, told("cancelled"))
    assert "BACKFILL_ENDED" in run("backfill", "start", "visits", "--wait").err


def test_pause_resume_cancel(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", f"{PATH}/pause", told("paused"))
    gateway.answer("POST", f"{PATH}/resume", told("running"))
    gateway.answer("GET", PATH, told("running"))
    gateway.answer("DELETE", PATH, told("cancelled"))
    for verb, word in (("pause", "paused"), ("resume", "goes on"), ("cancel", "cancelled")):
        result = run("backfill", verb, "visits")
        assert result.code == 0, result.err
        assert f"backfill of visits {word}" in result.err
    run("backfill", "resume", "visits", "--rate", "7")
    assert gateway.requests[-1].json() == {"rate": 7}


def test_a_stream_loses_nothing_by_a_start_but_by_a_cancel(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", PATH, {**STARTED, "whole": False, "appends": True})
    started = run("backfill", "start", "visits", "--from", "2026-01-01")
    assert started.code == 0
    assert "reads 4,200 older records" in started.err
    gateway.answer("GET", PATH, told("running", appends=True))
    gateway.answer("DELETE", PATH, told("cancelled", appends=True))
    assert "CONFIRMATION_NEEDED" in run("backfill", "cancel", "visits").err
    assert gateway.requests[-1].method == "GET"
    assert run("backfill", "cancel", "visits", "--yes").code == 0
