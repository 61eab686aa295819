"""Rows that break rules: what a task writes, where, and what it says of it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from mainstem.definitions.parse import parse_one
from mainstem.engine.judged import Judge
from mainstem.engine.plain_task import PlainTask
from mainstem.errors import MainstemError
from mainstem.log.task_writer import Rows, TaskResult

SQL = """CREATE STREAM good (CONSTRAINT few EXPECT (n < 9) ON VIOLATION DROP, CHECK (n > 0),
    CONSTRAINT sane CHECK (n < 99) ON VIOLATION fail) AS SELECT n FROM s"""


def batch(*broken: list[str] | None) -> pa.RecordBatch:
    count = len(broken)
    columns = {
        "key": pa.array([None] * count, pa.binary()),
        "value": pa.array([b"%d" % n for n in range(count)], pa.binary()),
        "broken": pa.array(broken, pa.list_(pa.string())),
    }
    return pa.RecordBatch.from_pydict(columns)


def written(task: PlainTask, *batches: pa.RecordBatch) -> list[Rows]:
    return [rows for rows in task.rows(iter(batches)) if rows.values]


@pytest.fixture
def task() -> PlainTask:
    definition: Any = parse_one(SQL).definition  # type: ignore[union-attr]
    return PlainTask(Judge(definition, "good.1", 5.0))


def test_kept_dropped_and_counted(task: PlainTask) -> None:
    good, aside, more = written(
        task, batch(None, ["few"], ["check"], ["few", "check"], None), batch(None)
    )
    assert (good.topics, good.values) == (None, [b"0", b"4"])
    assert (more.topics, more.values) == (None, [b"0"])
    assert (aside.topics, aside.values) == ("_mainstem.quarantine", [b"2", b"3"])
    assert aside.headers is not None
    facts = [dict(headers or ()) for headers in aside.headers]
    assert [f["cause"] for f in facts] == [
        b'a record of "good" breaks the rule "check" (n > 0)',
        b'a record of "good" breaks the rule "few" (n < 9), the rule "check" (n > 0)',
    ]
    assert {(f["object"], f["stage"], f["flow"]) for f in facts} == {(b"good", b"rule", b"good.1")}
    note = task.done(TaskResult(5, skipped=False, reused=False))
    assert json.loads(note or "") == [{"few": 2, "check": 2}, 2]
    assert task.made == 3


def test_a_task_that_had_committed_says_what_it_said_then(task: PlainTask) -> None:
    written(task, batch(["check"], None))
    result = TaskResult(0, skipped=True, reused=False, note='[{"check": 1}, 1]')
    assert task.done(result) == '[{"check": 1}, 1]'
    assert task.made == 0


def test_nothing_to_say(task: PlainTask) -> None:
    assert [rows.values for rows in written(task, batch(None, None))] == [[b"0", b"1"]]
    assert task.note() is None


def test_a_rule_that_says_fail_fails_the_task(task: PlainTask) -> None:
    with pytest.raises(MainstemError) as caught:
        written(task, batch(None, ["few", "sane"]))
    assert caught.value.code == "RULE_STOPS_ROW"
