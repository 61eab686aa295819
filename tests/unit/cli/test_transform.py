"""`mainstem transform test` asks the gateway, and shows what became of each record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Run

PATH = "/v1/transforms/trial"
PASSED = {"record": 1, "result": "passed", "before": {"n": 1}, "after": {"m": 1}, "cause": None}
LEFT = {"record": 2, "result": "left out", "before": {"n": 0}, "after": None, "cause": None}
BAD = {"record": 3, "result": "bad", "before": None, "after": None, "cause": "no JSON"}


def test_records_of_a_file_go_as_they_are(gateway: Gateway, run: Run, tmp_path: Path) -> None:
    gateway.answer("POST", PATH, {"columns": [], "records": [PASSED, LEFT]})
    file = tmp_path / "some.jsonl"
    file.write_text('{"n": 1.10}\n\n{"n": 0}\n')
    done = run("transform", "test", "rename(n, m)", "--columns", "n INT", "--file", str(file))
    assert done.code == 0, done.err
    assert done.out.splitlines()[0].split() == ["record", "result", "before", "after", "cause"]
    assert '{"m": 1}' in done.out
    [request] = gateway.sent("POST", PATH)
    assert request.json() == {
        "records": ['{"n": 1.10}', '{"n": 0}'],
        "transforms": "rename(n, m)",
        "sink": None,
        "object": None,
        "columns": "n INT",
    }


def test_a_record_that_would_not_get_there_is_told_by_the_exit_code(
    gateway: Gateway, run: Run, tmp_path: Path
) -> None:
    answer = {"columns": [], "records": [PASSED, BAD]}
    gateway.answer("POST", PATH, answer)
    file = tmp_path / "some.jsonl"
    file.write_text("{}\n")
    done = run("transform", "test", "--sink", "out", "--file", str(file), "-o", "json")
    assert done.code == 4
    assert json.loads(done.out) == answer
    assert "1 record would not reach the target" in done.err


def test_a_question_without_columns_is_not_asked(gateway: Gateway, run: Run) -> None:
    assert run("transform", "test", "drop(x)").code == 64
    assert run("transform", "test").code == 64
    both = ("--from", "a", "--columns", "b INT")
    assert run("transform", "test", "drop(x)", *both).code == 64
    assert gateway.requests == []
