from __future__ import annotations

import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mainstem.cli import pipeline
from mainstem.cli.board import Board
from mainstem.cli.context import Options, Session
from mainstem.cli.stack import psql_command
from mainstem.errors import MainstemError
from mainstem.local import doctor, run_file, stack
from mainstem.local.doctor import Check
from mainstem.local.postgres_place import psql_program
from mainstem.local.run_file import PostgresInfo, RunInfo
from mainstem.local.supervise import Event

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Run

POSTGRES = PostgresInfo(
    host="127.0.0.1", port=5433, database="mainstem", reader="reader", passfile="/a b/pgpass"
)
CREATE = {"step": "create", "entry": {"definition": {"name": "t", "query": {}}, "generation": 1}}


def plan(*steps: dict[str, Any]) -> dict[str, Any]:
    return {
        "plan": {"steps": list(steps)},
        "digest": "d",
        "revision": 1,
        "text": "the plan in words",
        "changes": len(steps),
    }


class StackDouble:
    """Stands for the servers; `end` is what happens while `up` waits."""

    log: list[str]
    end: Any

    def __init__(self, project: Any, *, listener: Any) -> None:
        self.listener = listener

    def __enter__(self) -> StackDouble:
        self.log.append("start")
        self.listener(Event("broker", "starting"))
        self.listener(Event("broker", "ready"))
        return self

    def __exit__(self, *_: object) -> None:
        self.log.append("stop")

    def wait(self) -> None:
        self.listener(Event("broker", "ready"))
        self.listener(Event("broker", "died", "exit code 137"))
        self.listener(Event("broker", "restarting", "restart 1"))
        self.listener(Event("broker", "ready"))
        self.end()


@pytest.fixture
def servers(gateway: Gateway, project: Path, monkeypatch: pytest.MonkeyPatch) -> type[StackDouble]:
    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    StackDouble.log, StackDouble.end = [], staticmethod(interrupt)
    info = RunInfo(
        pid=1,
        bootstrap_servers="127.0.0.1:1",
        gateway_url=gateway.url,
        postgres=POSTGRES,
        started_at="now",
    )
    monkeypatch.setattr(stack, "Stack", StackDouble)
    monkeypatch.setattr(run_file, "running", lambda _: info)
    monkeypatch.setattr(pipeline, "_POLL_SECONDS", 0.01)
    gateway.answer("POST", "/v1/plan", plan(CREATE))
    gateway.answer("POST", "/v1/apply", {"applied": 1, "text": "", "revision": 2})
    gateway.answer(
        "GET", "/v1/status", {"flows": [{"flow": "t", "generation": 1, "state": "running"}]}
    )
    return StackDouble


def test_up_starts_applies_tells_and_stops(
    servers: type[StackDouble], gateway: Gateway, run: Run
) -> None:
    result = run("up")
    assert (result.code, result.out, servers.log) == (0, "", ["start", "stop"])
    lines = result.err.splitlines()
    assert lines[0] == "broker: starting"
    assert lines[1].startswith("broker: ready after ")
    assert lines[2:] == [
        "applied: 1 change",
        f"page: {gateway.url}/",
        f"registry: {gateway.url}/registry",
        f"psql: PGPASSFILE='/a b/pgpass' {psql_program()} -h 127.0.0.1 -p 5433 -U reader mainstem",
        "Ctrl-C ends everything.",
        "broker: died: exit code 137",
        "broker: restarting: restart 1",
        "broker: ready",
        "stopping; Ctrl-C again does not wait for it",
    ]


def test_up_ends_in_order_on_sigterm(servers: type[StackDouble], run: Run) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    servers.end = staticmethod(lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert run("up").code == 0
    assert servers.log == ["start", "stop"]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_bad_definition_does_not_end_the_stack(
    servers: type[StackDouble], gateway: Gateway, run: Run
) -> None:
    gateway.refuse("POST", "/v1/plan", "SQL_SYNTAX")
    result = run("up")
    assert result.code == 0
    assert "SQL_SYNTAX: what happened" in result.err
    assert "run `mainstem apply`" in result.err
    assert "page: " in result.err


def test_up_loses_nothing_by_itself(servers: type[StackDouble], gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", "/v1/plan", plan({**CREATE, "step": "drop"}))
    result = run("up")
    assert "not applied, because it would drop t" in result.err
    assert not gateway.sent("POST", "/v1/apply")


def test_a_start_that_fails(
    servers: type[StackDouble], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any) -> None:
        raise MainstemError("JAVA_MISSING")

    monkeypatch.setattr(StackDouble, "__enter__", fail)
    result = run("up")
    assert result.code == 1
    assert result.err.startswith("JAVA_MISSING")


def test_no_psql_command_for_a_server_elsewhere() -> None:
    info = RunInfo(pid=1, bootstrap_servers="", gateway_url="", postgres=None, started_at="now")
    assert psql_command(info) is None


def test_the_board_on_a_terminal_shows_each_part_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Board(Session(Options())) as board:
        for name in ("broker", "postgres"):
            board.take(Event(name, "starting"))
        for name in ("postgres", "broker"):
            board.take(Event(name, "ready"))
        board.started()
        board.take(Event("broker", "died", "exit code 1"))
    last_frame = terminal.getvalue().rsplit("broker", 2)
    assert "✓" in terminal.getvalue()
    assert "died: exit code 1" in last_frame[-1]


def checks(*failed: str) -> list[Check]:
    return [Check("java", True, "17"), *(Check(n, False, "bad", "mend it") for n in failed)]


def test_doctor_when_all_is_well(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(doctor, "diagnose", lambda project: seen.append(project) or checks())
    result = run("doctor", "-o", "json")
    assert result.code == 0
    assert json.loads(result.out) == [{"result": "ok", "check": "java", "detail": "17", "hint": ""}]
    assert seen[0].folder == project


def test_doctor_ends_with_4_when_a_check_failed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "diagnose", lambda project: checks("disk"))
    result = run("doctor")
    assert result.code == 4
    assert result.out.splitlines()[2].split() == ["FAILED", "disk", "bad", "mend", "it"]
    assert "1 of 2 checks failed" in result.err


def test_doctor_in_a_broken_project(project: Path, run: Run) -> None:
    (project / "mainstem.toml").write_text('nmae = "x"\n')
    result = run("doctor")
    assert result.code == 1
    assert "CONFIG_UNKNOWN_KEY" in result.err or "CONFIG_INVALID" in result.err
