from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mainstem.cli.statements import complete, split

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Run

ROWS = {
    "kind": "rows",
    "columns": [{"name": "page", "type": "string"}, {"name": "n", "type": "bigint"}],
    "rows": [["/home", 2], ["/cart", 1]],
    "truncated": False,
    "freshness": {"lag_records": 0},
}
MESSAGE = {"kind": "message", "message": "stream s created", "detail": {}}
COLUMNS = ("columns", [{"name": "page", "type": "string"}, {"name": "n", "type": "bigint"}], "0:0")
PUSH = "SELECT * FROM t EMIT CHANGES"


def statements(gateway: Gateway) -> list[str]:
    return [r.json()["sql"] for r in gateway.sent("POST", "/v1/sql")]


def test_rows_go_to_stdout_and_messages_to_stderr(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", "/v1/sql", MESSAGE, ROWS)
    result = run("sql", "-e", "CREATE STREAM s (a INT)", "-e", "SELECT page, n FROM t")
    assert result.code == 0
    assert result.out == "page   n\n/home  2\n/cart  1\n"
    assert result.err == "stream s created\n2 rows\n"


@pytest.mark.parametrize(
    ("form", "out"),
    [
        ("csv", "page,n\n/home,2\n/cart,1\n"),
        ("jsonl", '{"page": "/home", "n": 2}\n{"page": "/cart", "n": 1}\n'),
    ],
)
def test_formats(gateway: Gateway, run: Run, form: str, out: str) -> None:
    gateway.answer("POST", "/v1/sql", ROWS)
    result = run("sql", "-e", "SELECT 1", "-o", form)
    assert (result.code, result.out, result.err) == (0, out, "")
    assert json.loads(run("sql", "-e", "SELECT 1", "-o", "json").out)[1]["page"] == "/cart"


def test_what_explain_says_is_data(gateway: Gateway, run: Run) -> None:
    told = {"kind": "message", "message": "flow t: stateless", "detail": {"lane": "realtime"}}
    gateway.answer("POST", "/v1/sql", told)
    result = run("sql", "-e", "EXPLAIN t")
    assert (result.out, result.err) == ("flow t: stateless\n", "")
    assert json.loads(run("sql", "-e", "EXPLAIN t", "-o", "json").out) == {"lane": "realtime"}
    assert run("sql", "-e", "EXPLAIN t", "-o", "csv").out == "message\nflow t: stateless\n"


def test_a_truncated_answer_is_said_even_when_quiet(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", "/v1/sql", {**ROWS, "truncated": True})
    assert "only the first 2 rows" in run("sql", "-q", "-e", "SELECT 1", "-o", "csv").err


def test_statements_are_sent_one_by_one_from_all_places(
    gateway: Gateway, run: Run, tmp_path: Path
) -> None:
    gateway.answer("POST", "/v1/sql", MESSAGE)
    file = tmp_path / "a.sql"
    file.write_text("-- first\nSHOW STREAMS;\n\n/* ; */ SELECT ';' AS x FROM t -- end\n;")
    assert run("sql", "-f", str(file), "-e", "SHOW TOPICS; SHOW TABLES;").code == 0
    assert statements(gateway) == [
        "SHOW TOPICS",
        "SHOW TABLES",
        "SHOW STREAMS",
        "SELECT ';' AS x FROM t",
    ]


def test_stdin(gateway: Gateway, run: Run) -> None:
    gateway.answer("POST", "/v1/sql", MESSAGE)
    assert run("sql", stdin="SHOW TABLES;").code == 0
    assert run("sql", "-f", "-", stdin="SHOW TOPICS").code == 0
    assert statements(gateway) == ["SHOW TABLES", "SHOW TOPICS"]


def test_a_syntax_error_stops_before_anything_runs(
    gateway: Gateway, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "bad.sql"
    file.write_text("SHOW TABLES;\n  SELEC 1;\n")
    result = run("sql", "-f", str(file))
    assert (result.code, result.out) == (3, "")
    assert f"{file}:2:3: SQL_SYNTAX" in result.err
    assert not gateway.requests


def test_the_first_error_of_the_gateway_stops_and_is_placed_in_the_file(
    gateway: Gateway, run: Run, tmp_path: Path
) -> None:
    place = {"file": "<sql>", "line": 1, "column": 15, "snippet": "SELECT * FROM nowhere"}
    gateway.refuse("POST", "/v1/sql", "UNKNOWN_RELATION", 404, location=place)
    file = tmp_path / "q.sql"
    file.write_text("\n   SELECT * FROM nowhere;\nSHOW TABLES;\n")
    result = run("sql", "-f", str(file))
    assert result.code == 3
    assert result.err.splitlines()[:3] == [
        f"{file}:2:18: UNKNOWN_RELATION: what happened",
        "     SELECT * FROM nowhere;",
        "                   ^",
    ]
    assert len(gateway.requests) == 1


@pytest.mark.parametrize(
    ("code", "status", "snippet", "shown"),
    [
        ("CONNECTOR_UNREACHABLE", 502, "CREATE SOURCE", True),
        ("SECRET_IN_PLAIN", 400, "", False),
    ],
)
def test_a_line_is_shown_unless_it_has_a_secret(
    gateway: Gateway, run: Run, code: str, status: int, snippet: str, shown: bool
) -> None:
    place = {"file": "<sql>", "line": 1, "column": 1, "snippet": snippet}
    gateway.refuse("POST", "/v1/sql", code, status, location=place)
    result = run("sql", "-e", "CREATE SOURCE s WITH (connector = 'c', password = 'hunter2')")
    assert result.err.startswith(f"<-e>:1:1: {code}")
    assert ("hunter2" in result.err) is shown


def test_a_file_that_is_not_there(run: Run) -> None:
    result = run("sql", "-f", "nowhere.sql")
    assert result.code == 1
    assert "FILE_UNREADABLE: nowhere.sql" in result.err


def test_a_gateway_that_is_down(run: Run) -> None:
    result = run("sql", "-e", "SHOW TABLES", "--url", "http://127.0.0.1:9")
    assert result.code == 69
    assert result.err.startswith("GATEWAY_UNREACHABLE")


def test_push_ends_at_the_limit(gateway: Gateway, run: Run, stream: Any) -> None:
    events = [
        COLUMNS,
        ("upsert", {"row": {"page": "/home", "n": 2}, "key": {"page": "/home"}}, "0:1"),
        ("progress", {"snapshot_complete": True, "at": "now"}, "0:1"),
        ("delete", {"row": None, "key": {"page": "/home"}}, "0:2"),
    ]
    gateway.on("GET", "/v1/subscribe", lambda _: stream(events))
    result = run("sql", "-e", PUSH, "--limit", "2", "-o", "jsonl")
    assert result.code == 0
    assert [json.loads(line) for line in result.out.splitlines()] == [
        {"_change": "upsert", "page": "/home", "n": 2},
        {"_change": "delete", "page": "/home", "n": None},
    ]
    assert result.err == "stopped after 2 changes, position 0:2\n"
    assert gateway.requests[0].query["limit"] == "2"


def test_push_over_a_stream_has_no_change_column(gateway: Gateway, run: Run, stream: Any) -> None:
    events = [COLUMNS, ("append", {"row": {"page": "/home", "n": 2}, "key": None}, "0:1")]
    gateway.on("GET", "/v1/subscribe", lambda _: stream(events))
    result = run("sql", "-e", PUSH, "--limit", "1", "-o", "csv")
    assert result.out == "page,n\n/home,2\n"


def test_push_goes_on_after_a_position(gateway: Gateway, run: Run, stream: Any) -> None:
    events = [("append", {"row": {}, "key": None}, "0:9")]
    gateway.on("GET", "/v1/subscribe", lambda _: stream(events))
    assert run("sql", "-e", PUSH, "--limit", "1", "--after", "0:8", "--no-snapshot").code == 0
    assert gateway.requests[0].headers["last-event-id"] == "0:8"
    assert gateway.requests[0].query["snapshot"] == "false"


def test_ctrl_c_ends_a_push_query_with_130_and_the_position(gateway: Gateway, stream: Any) -> None:
    release = threading.Event()
    events = [
        COLUMNS,
        ("progress", {"snapshot_complete": True, "at": "now"}, "0:0"),
        ("append", {"row": {"page": "/home", "n": 2}, "key": None}, "0:1"),
    ]
    gateway.on("GET", "/v1/subscribe", lambda _: stream(events, hold=release))
    process = subprocess.Popen(
        [sys.executable, "-m", "mainstem.cli", "sql", "-e", PUSH, "-o", "json"],
        env={**os.environ, "MAINSTEM_URL": gateway.url, "PYTHONUNBUFFERED": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=60)
    release.set()
    assert process.returncode == 130
    assert json.loads(first + rest) == [{"page": "/home", "n": 2}]
    assert errors == "stopped after 1 changes, position 0:1\n"


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("SELECT 1;", True),
        ("SELECT 1; -- why", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT ';'", False),
        ("/* ; */", False),
        ("", False),
        (";", True),
        ("SELECT 1; SELECT", False),
    ],
)
def test_a_statement_is_complete_at_its_semicolon(text: str, done: bool) -> None:
    assert complete(text) is done


def test_split_tells_push_queries() -> None:
    assert [piece.push for piece in split(f"{PUSH}; SHOW TABLES; SELECT 1", "f")] == [
        True,
        False,
        False,
    ]
