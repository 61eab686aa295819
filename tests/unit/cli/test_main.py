from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from typer.main import get_command

from mainstem import __version__
from mainstem.cli.context import Session
from mainstem.cli.main import app

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Run

COMMANDS = list(get_command(app).commands)  # type: ignore[attr-defined]


def test_all_commands_are_there() -> None:
    wanted = (
        "init up doctor plan apply status drop pause resume backfill sql produce consume topics"
        " schema asyncapi quarantine connector sink transform mcp"
    )
    assert sorted(COMMANDS) == sorted(wanted.split())


BACKFILL = [f"backfill {name}" for name in ("start", "list", "pause", "resume", "cancel")]
QUARANTINE = [f"quarantine {name}" for name in ("list", "show", "replay", "discard")]

_SCHEMA = "list show register delete config check diff evolve infer to-sql to-python"
SCHEMA = [f"schema {name}" for name in _SCHEMA.split()]


@pytest.mark.parametrize("command", [*COMMANDS, *BACKFILL, *QUARANTINE, *SCHEMA, ""])
def test_help_begins_with_examples(command: str, run: Run) -> None:
    result = run(*command.split(), "--help")
    usage, _, rest = result.out.partition("\n\n")
    assert result.code == 0
    assert usage.startswith(f"Usage: mainstem {command}".rstrip())
    assert rest.startswith("  Examples:\n    ")
    assert "mainstem " in rest.splitlines()[1]


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; from mainstem.cli.main import main; main(['sql', '--help']);"
        "heavy = ('pyspark', 'confluent_kafka', 'psycopg', 'sqlglot', 'httpx2', 'prompt_toolkit');"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_alone_it_prints_the_help(run: Run) -> None:
    result = run()
    assert (result.code, result.err) == (0, "")
    assert "Commands:" in result.out


def test_version(run: Run) -> None:
    assert run("--version").out == f"mainstem {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["staus"], "'status'"),
        (["plan", "--detailed-exit-code"], "--detailed-exitcode"),
        (["sql", "-o", "xml"], "table"),
        (["drop"], "NAME"),
        (["status", "--interval", "soon"], "interval"),
        (["produce", "clicks", "--raw", "--key", "a"], "--raw"),
        (["consume", "t", "--from", "-3", "--group", "g"], "earliest"),
    ],
)
def test_a_wrong_command_line(arguments: list[str], hint: str, run: Run) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (64, "")
    assert hint in result.err
    assert "--help" in result.err


def test_shared_options_work_before_and_behind_the_command(gateway: Gateway, run: Run) -> None:
    gateway.answer("GET", "/v1/topics", {"topics": []})
    for arguments in (
        ["--url", gateway.url, "topics"],
        ["topics", "--url", gateway.url],
        ["--url", "http://127.0.0.1:1", "topics", "--url", gateway.url],
    ):
        assert run(*arguments).code == 0


def test_no_project_here(run: Run, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MAINSTEM_URL")
    result = run("status")
    assert result.code == 1
    assert "NOT_A_PROJECT" in result.err


def test_a_project_that_is_not_running(
    project: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAINSTEM_URL")
    result = run("status")
    assert result.code == 69
    assert "NOT_RUNNING" in result.err


def test_project_by_option_and_by_environment(
    project: Any, run: Run, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MAINSTEM_URL")
    assert "NOT_RUNNING" in run("status", "--project", str(project)).err
    monkeypatch.setenv("MAINSTEM_PROJECT", str(project))
    assert "NOT_RUNNING" in run("status").err
    assert "NOT_A_PROJECT" in run("status", "--project", str(tmp_path)).err


def test_the_settings_may_name_the_gateway(
    project: Any, gateway: Gateway, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAINSTEM_URL")
    (project / "mainstem.toml").write_text(f'name = "p"\n[gateway]\nurl = "{gateway.url}"\n')
    gateway.answer("GET", "/v1/topics", {"topics": []})
    assert run("topics").code == 0


def test_an_error_has_no_stack_trace_unless_asked_for(
    gateway: Gateway, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.refuse("GET", "/v1/status", "LOG_UNREACHABLE", 503)
    result = run("status")
    assert result.code == 69
    assert result.err == "LOG_UNREACHABLE: what happened\nhint: what to do\n"
    monkeypatch.setenv("MAINSTEM_DEBUG", "1")
    assert "Traceback" in run("status").err


def test_a_bug_is_reported_without_a_stack_trace(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Session) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(Session, "client", property(broken))
    result = run("status")
    assert result.code == 1
    assert "INTERNAL" in result.err
    assert "ZeroDivisionError: oh" in result.err
    assert "Traceback" not in result.err


def test_interrupted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: Session) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "client", property(interrupt))
    result = run("status")
    assert (result.code, result.out, result.err) == (130, "", "")


def test_a_reader_that_leaves_early_is_no_error_text() -> None:
    command = f"{sys.executable} -c 'from mainstem.cli.main import main; raise SystemExit(main())'"
    done = subprocess.run(
        ["bash", "-c", f"{command} --help | head -c 1"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert done.stderr == ""


def test_completion_for_the_shell_is_offered(run: Run) -> None:
    assert "--install-completion" in run("--help").out
