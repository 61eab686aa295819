"""Rows that break rules: what a task writes, where, and what it says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from mainstem.catalog.entry import Entry
from mainstem.definitions.parse import parse_one
from mainstem.engine import judged
from mainstem.engine.judged import Judge
from mainstem.engine.plain_task import PlainTask
from mainstem.errors import MainstemError
from mainstem.log.producer import Outgoing
from mainstem.log.rule_counts import RuleCounts, read_counted
from mainstem.log.task_writer import Rows, TaskResult
from mainstem.vocabulary import Record

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


def test_a_table_that_says_what_is_true_now_has_no_row_then(task: PlainTask) -> None:
    definition: Any = parse_one(
        "CREATE TABLE t (CHECK (n > 0)) AS SELECT id, count(*) AS n FROM s GROUP BY id"
    ).definition  # type: ignore[union-attr]
    task = PlainTask(Judge(definition, "t.1", 5.0, takes_back=True))
    rows, aside = written(task, batch(None, ["check"], None))
    assert (rows.topics, rows.values) == (None, [b"0", None, b"2"])
    assert (aside.topics, aside.values) == ("_mainstem.quarantine", [b"1"])


class Counts:
    """A topic of counts in memory, in the place of the log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written: dict[str, RuleCounts] = {}
        monkeypatch.setattr(judged, "TransactionalProducer", lambda *_: self)
        monkeypatch.setattr(judged, "read_rule_counts", self.read)

    def read(self, _: Any, __: Any, writer: str) -> RuleCounts:
        return self.written.get(writer, RuleCounts())

    @contextmanager
    def transaction(self) -> Iterator[Counts]:
        yield self

    def send(self, _: str, records: list[Outgoing]) -> None:
        for record in records:
            found = read_counted(Record("", 0, 0, record.key, record.value, 0))
            assert found is not None
            self.written[found[0]] = found[1]

    def close(self) -> None:
        pass


def test_a_batch_is_counted_once_however_often_it_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counts(monkeypatch)
    definition = parse_one(SQL).definition  # type: ignore[union-attr]

    def started() -> judged.BrokenRows:
        nothing: Any = None
        return judged.BrokenRows(Entry(definition, "f"), (), nothing, nothing, nothing)

    rows = started()
    rows.count(['[{"few": 2}, 0]', '[{"few": 1, "check": 1}, 1]'], 0, "epoch")
    rows.count([], 1, "epoch")
    rows.count(['[{"check": 4}, 4]'], 2, "epoch")
    assert rows.kept == 5
    again = started()  # after a crash, the last batch comes again
    again.count(['[{"check": 4}, 4]'], 2, "epoch")
    again.count(['[{"check": 1}, 1]'], 3, "epoch")
    assert counts.written == {"good|good.1": RuleCounts({"few": 3, "check": 6}, {"epoch": {0: 3}})}
    again.count(['[{"few": 1}, 0]'], 0, "another checkpoint")
    assert counts.written["good|good.1"].records == {"few": 4, "check": 6}
