from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from mainstem.cli import shell as module
from mainstem.cli.context import Options, Session
from mainstem.cli.shell import Shell
from mainstem.cli.shell_completion import SqlCompleter

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway

ROWS = {
    "kind": "rows",
    "columns": [{"name": "n", "type": "bigint"}],
    "rows": [[42]],
    "truncated": False,
}
OBJECT = {
    "name": "orders",
    "kind": "stream",
    "topic": "shop.orders",
    "key": ["order_id"],
    "columns": [{"name": "order_id", "type": "string"}, {"name": "amount", "type": "double"}],
    "status": None,
    "sql": "CREATE STREAM orders ...",
}

Type = Callable[[str], tuple[str, str]]


@pytest.fixture
def type_in(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> Type:
    """Type a text into the shell and leave it; what it printed."""

    def run(text: str) -> tuple[str, str]:
        with create_pipe_input() as keys:
            keys.send_text(text.replace("\n", "\r") + "\\q\r")
            Shell(Session(Options(url=gateway.url)), input=keys, output=DummyOutput()).run()
        captured = capsys.readouterr()
        return captured.out, captured.err

    return run


def test_a_statement_over_several_lines(gateway: Gateway, type_in: Type) -> None:
    gateway.answer("POST", "/v1/sql", ROWS)
    out, _ = type_in("SELECT n\nFROM t;\n")
    assert out == "n\n42\n"
    assert gateway.requests[0].json()["sql"] == "SELECT n\nFROM t"


def test_an_error_does_not_end_the_shell(gateway: Gateway, type_in: Type) -> None:
    gateway.answer("POST", "/v1/sql", ROWS)
    out, err = type_in("SELEC 1;\nSELECT 1;\n")
    assert "<shell>:1:1: SQL_SYNTAX" in err
    assert out == "n\n42\n"


def test_expanded_and_timing(gateway: Gateway, type_in: Type) -> None:
    gateway.answer("POST", "/v1/sql", ROWS)
    out, err = type_in("\\x\n\\timing\nSELECT 1;\n")
    assert out == "property  value\nn         42\n"
    assert " ms\n" in err


def test_describe(gateway: Gateway, type_in: Type) -> None:
    gateway.answer("GET", "/v1/objects", {"objects": [OBJECT]})
    gateway.answer("GET", "/v1/objects/orders", OBJECT)
    out, _ = type_in("\\d\n\\d orders\n")
    assert out.splitlines() == [
        "name    kind    topic        state",
        "orders  stream  shop.orders",
        "column    type    key  pii",
        "order_id  string  key",
        "amount    double",
        "CREATE STREAM orders ...",
    ]


def test_unknown_command_and_help(type_in: Type) -> None:
    out, err = type_in("\\timming\n\\?\n")
    assert '"\\timing"' in err
    assert "\\watch" in out


def test_watch_repeats_until_ctrl_c(gateway: Gateway, type_in: Type, put_sleep: Any) -> None:
    gateway.answer("POST", "/v1/sql", ROWS)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    put_sleep(module, sleep)
    out, err = type_in("SELECT 1;\n\\watch 0.5\n")
    assert out.count("42") == 4
    assert pauses == [0.5] * 3
    assert "stopped" in err


def test_watch_needs_a_query(type_in: Type) -> None:
    assert "run one first" in type_in("\\watch\n")[1]


def test_ctrl_c_stops_a_push_query_and_keeps_the_shell(
    gateway: Gateway, type_in: Type, stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    columns = ("columns", [{"name": "n", "type": "bigint"}], "0:0")
    row = ("append", {"row": {"n": 1}, "key": None}, "0:1")
    gateway.on("GET", "/v1/subscribe", lambda _: stream([columns, row], hold=release))
    gateway.answer("POST", "/v1/sql", ROWS)

    from mainstem.cli import answers

    taken = answers.Changes._take

    def take(self: Any, event: Any) -> None:
        taken(self, event)
        if event.kind == "append":
            raise KeyboardInterrupt

    monkeypatch.setattr(answers.Changes, "_take", take)
    out, err = type_in("SELECT * FROM s EMIT CHANGES;\nSELECT 1;\n")
    release.set()
    assert out == "n\n1\nn\n42\n"
    assert "stopped" in err


def test_history_is_kept_for_its_owner_alone(
    gateway: Gateway, type_in: Type, tmp_path: Path
) -> None:
    gateway.answer("POST", "/v1/sql", ROWS)
    type_in("SELECT 1;\n")
    file = tmp_path / "state" / "mainstem" / "sql_history"
    assert "SELECT 1;" in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


def completions(gateway: Gateway, text: str) -> list[str]:
    completer = SqlCompleter(Session(Options(url=gateway.url)))
    found = completer.get_completions(Document(text), CompleteEvent(completion_requested=True))
    return [completion.text for completion in found]


def test_completion_of_objects_columns_and_keywords(gateway: Gateway) -> None:
    gateway.answer("GET", "/v1/objects", {"objects": [OBJECT]})
    assert completions(gateway, "SELECT * FROM or") == ["orders", "order_id", "OR", "ORDER BY"]
    assert completions(gateway, "SELECT am") == ["amount"]
    assert completions(gateway, "sel") == ["SELECT"]
    assert completions(gateway, "\\w") == ["\\watch"]


def test_completion_without_a_gateway_still_knows_keywords(gateway: Gateway) -> None:
    gateway.refuse("GET", "/v1/objects", "LOG_UNREACHABLE", 503)
    assert completions(gateway, "SEL") == ["SELECT"]
