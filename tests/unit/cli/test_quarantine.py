from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mainstem.cli import quarantine as commands
from mainstem.cli.quarantine_records import since_time

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Run


def listed(id: int, **more: Any) -> dict[str, Any]:
    return {
        "id": id, "object": "orders", "stage": "decode", "code": "RECORD_NOT_DECODED",
        "cause": "not JSON", "at": "2026-11-15T09:00:00+00:00", "origin": f"orders/0/{id}",
        "state": "held", "timestamp": 0, "key": None, "value": "bad\nline", "size": 8, **more,
    }  # fmt: skip


RECORD = {
    "topic": "orders", "partition": 0, "offset": 17, "timestamp": 1_794_733_200_000,
    "key": "k", "value": "bad", "headers": [{"name": "trace", "value": "1"}],
}  # fmt: skip
ONE = {**listed(17), "settled": None, "record": RECORD}


def done(*records: dict[str, Any], word: str = "replayed", **more: Any) -> dict[str, Any]:
    kinds = [record["outcome"] for record in records]
    return {
        "dry_run": False, word: kinds.count(word), "refused": kinds.count("refused"),
        "skipped": kinds.count("skipped"), "records": list(records), "next": None, "until": 99,
        **more,
    }  # fmt: skip


def outcome(id: int, outcome: str, problem: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": id, "outcome": outcome, "problem": problem, "object": "orders",
        "origin": f"orders/0/{id}", **more,
    }  # fmt: skip


def test_list_is_a_table_of_lines_and_a_count(gateway: Gateway, run: Run) -> None:
    gateway.answer(
        "GET",
        "/v1/quarantine",
        {"records": [listed(18), listed(17, cause="x" * 100)], "next": None},
    )
    gateway.answer("GET", "/v1/quarantine/summary", {"counts": [{"held": 4}, {"held": 3}]})
    result = run("quarantine", "list", "--stream", "orders", "--stage", "decode")
    assert result.code == 0
    header, first, second = result.out.splitlines()
    assert header.split() == ["id", "at", "object", "stage", "origin", "cause", "value"]
    assert first.startswith("18 ") and r"bad\nline" in first
    assert second.startswith("17 ") and "x" * 69 + "…" in second
    assert "2 shown; 7 are held in all" in result.err
    [request] = gateway.sent("GET", "/v1/quarantine")
    assert request.query == {
        "stream": "orders", "stage": "decode", "state": "held", "limit": "50",
    }  # fmt: skip


def test_list_takes_as_many_pages_as_the_limit_needs(gateway: Gateway, run: Run) -> None:
    pages = [
        {"records": [listed(n) for n in range(3000, 2000, -1)], "next": 2001},
        {"records": [listed(n) for n in range(2000, 1500, -1)], "next": 1501},
    ]
    gateway.answer("GET", "/v1/quarantine", *pages)
    result = run("quarantine", "list", "--limit", "1500", "-o", "jsonl")
    assert len(result.out.splitlines()) == 1500
    assert json.loads(result.out.splitlines()[0])["id"] == 3000
    asked = [r.query for r in gateway.sent("GET", "/v1/quarantine")]
    assert [(q["limit"], q.get("before")) for q in asked] == [("1000", None), ("500", "2001")]


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv"])
def test_summary(gateway: Gateway, run: Run, form: str) -> None:
    count = {
        "object": "orders", "stage": "decode", "code": "RECORD_NOT_DECODED", "cause": "not JSON",
        "held": 2, "replayed": 1, "discarded": 0,
    }  # fmt: skip
    gateway.answer("GET", "/v1/quarantine/summary", {"counts": [count]})
    result = run("quarantine", "list", "--summary", "--cause", "not", "-o", form)
    assert result.code == 0
    assert "not JSON" in result.out and "orders" in result.out
    assert gateway.requests[0].query == {"cause": "not"}


def test_show_a_text(gateway: Gateway, run: Run) -> None:
    settled = {"at": "2026-11-15T10:00:00+00:00", "changed": True}
    document = {**ONE, "state": "replayed", "settled": settled}
    gateway.answer("GET", "/v1/quarantine/17", document)
    lines = dict(line.split(None, 1) for line in run("quarantine", "show", "17").out.splitlines())
    assert lines["value"] == "bad"
    assert lines["time"] == "2026-11-15T09:00:00.000Z"
    assert lines["replayed"].endswith(", changed")
    assert lines["headers"] == '{"trace": "1"}'
    assert json.loads(run("quarantine", "show", "17", "-o", "json").out) == document


def test_show_bytes_as_base64_and_hex(gateway: Gateway, run: Run) -> None:
    record = {**{k: v for k, v in RECORD.items() if k != "value"}, "value_base64": "//4A"}
    gateway.answer("GET", "/v1/quarantine/17", {**ONE, "record": record})
    out = run("quarantine", "show", "17").out
    assert "value (base64)  //4A" in out
    assert "value (hex)     ff fe 00" in out


def test_show_what_is_not_there(gateway: Gateway, run: Run) -> None:
    gateway.refuse("GET", "/v1/quarantine/9", "UNKNOWN_QUARANTINED", 404)
    result = run("quarantine", "show", "9")
    assert result.code == 1 and "UNKNOWN_QUARANTINED" in result.err


def test_replay_by_filter_goes_on_until_all_is_done(gateway: Gateway, run: Run) -> None:
    gateway.answer(
        "POST", "/v1/quarantine/replay",
        done(outcome(1, "replayed"), next=1, until=5), done(outcome(3, "replayed")),
    )  # fmt: skip
    sql = "SELECT value FROM quarantine"
    result = run("quarantine", "replay", "--stream", "orders", "--sql", sql)
    assert result.code == 0
    assert "2 replayed, 0 refused, 0 skipped" in result.err
    bodies = [r.json() for r in gateway.sent("POST", "/v1/quarantine/replay")]
    first = {"stream": "orders", "sql": sql, "force": False, "dry_run": False}
    assert bodies == [first, {**first, "after": 1, "until": 5}]


def test_refused_records_make_the_command_fail(gateway: Gateway, run: Run) -> None:
    answer = done(outcome(1, "replayed"), outcome(2, "refused", "not JSON"))
    gateway.answer("POST", "/v1/quarantine/replay", answer)
    result = run("quarantine", "replay", "1", "2", "-o", "jsonl")
    assert result.code == 1
    assert "REPLAY_REFUSED: 1 of 2 records" in result.err
    assert [json.loads(line)["problem"] for line in result.out.splitlines()] == [None, "not JSON"]


def test_dry_run_says_what_would_be(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", "/v1/quarantine/replay", done(outcome(1, "replayed"), dry_run=True))
    result = run("quarantine", "replay", "--all", "--dry-run")
    assert "1 would be replayed" in result.err
    assert gateway.requests[0].json() == {"all": True, "force": False, "dry_run": True}


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An editor that adds what stands in a file, and a line end."""
    script, text = tmp_path / "edit.py", tmp_path / "text"
    script.write_text(
        "import pathlib, sys\n"
        "file = pathlib.Path(sys.argv[1])\n"
        f"file.write_bytes(file.read_bytes() + pathlib.Path({str(text)!r}).read_bytes() + b'\\n')\n"
    )
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    return text


def test_edit(gateway: Gateway, run: Run, editor: Path) -> None:
    editor.write_text(" no more")
    gateway.answer("GET", "/v1/quarantine/17", ONE)
    gateway.answer("POST", "/v1/quarantine/replay", done(outcome(17, "replayed", value="x")))
    assert run("quarantine", "replay", "17", "--edit").code == 0
    [request] = gateway.sent("POST", "/v1/quarantine/replay")
    assert request.json() == {
        "ids": [17], "value": "bad no more", "force": False, "dry_run": False,
    }  # fmt: skip


def test_edited_bytes_stay_bytes(gateway: Gateway, run: Run, editor: Path) -> None:
    editor.write_bytes(b"\xff")
    gateway.answer("GET", "/v1/quarantine/17", ONE)
    gateway.answer("POST", "/v1/quarantine/replay", done(outcome(17, "replayed")))
    assert run("quarantine", "replay", "17", "--edit", "--force").code == 0
    [request] = gateway.sent("POST", "/v1/quarantine/replay")
    assert request.json()["value_base64"] == "YmFk/w=="


def test_an_edit_that_changes_nothing_replays_nothing(
    gateway: Gateway, run: Run, editor: Path
) -> None:
    editor.write_text("")
    gateway.answer("GET", "/v1/quarantine/17", ONE)
    result = run("quarantine", "replay", "17", "--edit")
    assert result.code == 1 and "NOT_EDITED" in result.err
    assert gateway.sent("POST", "/v1/quarantine/replay") == []


@pytest.mark.parametrize("program", ["false", "no-such-editor", "'unbalanced"])
def test_an_editor_that_fails(
    gateway: Gateway, run: Run, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setenv("VISUAL", program)
    gateway.answer("GET", "/v1/quarantine/17", ONE)
    result = run("quarantine", "replay", "17", "--edit")
    assert result.code == 1 and "EDITOR_FAILED" in result.err


def test_a_person_may_edit_again(
    gateway: Gateway, run: Run, editor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor.write_text("!")
    monkeypatch.setattr(commands, "interactive", lambda: True)
    monkeypatch.setattr(commands.typer, "confirm", lambda *_, **__: True)
    gateway.answer("GET", "/v1/quarantine/17", ONE)
    gateway.answer(
        "POST", "/v1/quarantine/replay",
        done(outcome(17, "refused", "not JSON")), done(outcome(17, "replayed")),
    )  # fmt: skip
    assert run("quarantine", "replay", "17", "--edit").code == 0
    sent = gateway.sent("POST", "/v1/quarantine/replay")
    assert [request.json()["value"] for request in sent] == ["bad!", "bad!!"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay",),
        ("replay", "1", "--all"),
        ("replay", "1", "--stream", "orders"),
        ("replay", "1", "2", "--edit"),
        ("replay", "--stream", "orders", "--edit"),
        ("replay", "1", "--edit", "--value", "x"),
        ("discard",),
    ],
)
def test_wrong_choices(gateway: Gateway, run: Run, arguments: tuple[str, ...]) -> None:
    result = run("quarantine", *arguments)
    assert result.code != 0 and "BAD_REQUEST" in result.err
    assert gateway.requests == []


def test_discard_asks_first(gateway: Gateway, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = done(outcome(1, "discarded"), word="discarded")
    gateway.answer("POST", "/v1/quarantine/discard", answer)
    result = run("quarantine", "discard", "1")
    assert "CONFIRMATION_NEEDED" in result.err and "discard 1 record" in result.err
    monkeypatch.setattr(commands, "interactive", lambda: True)
    asked: list[str] = []

    def no(text: str, **_: object) -> bool:
        asked.append(text)
        return False

    monkeypatch.setattr(commands.typer, "confirm", no)
    assert "NOT_CONFIRMED" in run("quarantine", "discard", "--stream", "orders").err
    assert asked == ["Discard all held records with stream orders?"]
    assert gateway.requests == []
    assert run("quarantine", "discard", "1", "1", "--yes").code == 0
    assert run("quarantine", "discard", "--cause", "x", "--dry-run").code == 0
    assert [r.json() for r in gateway.requests] == [
        {"ids": [1], "dry_run": False},
        {"cause": "x", "dry_run": True},
    ]


def test_times_ago() -> None:
    ago = datetime.now(UTC) - datetime.fromisoformat(since_time("2h"))
    assert abs(ago - timedelta(hours=2)) < timedelta(seconds=5)
    assert since_time("2026-11-15T09:00:00Z") == "2026-11-15T09:00:00Z"
