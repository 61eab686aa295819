"""What a task of a sink does with its rows, and what EXPLAIN says of the sink."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from mainstem.connect.targets.target import OFFSET, PARTITION, TOPIC, Part, Poison, Shape
from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse
from mainstem.engine import target_task
from mainstem.engine.target import explained_target
from mainstem.engine.target_task import TargetTask, TargetWork
from mainstem.errors import MainstemError
from mainstem.log.task_writer import Rows, TaskResult, TaskWrite
from mainstem.vocabulary import QUARANTINE_TOPIC, Column

TASK = TaskWrite("out.1", "all", 7, "out", "tokens", None, recovering=True, epoch="e")


class Target:
    """Takes rows, but not that of offset 2; fails when it is told to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.calls: list[Any] = []
        self._failure = failure

    def open(self, part: Part) -> None:
        self.calls.append(("open", part.batch, part.recovering))

    def write(self, rows: pa.Table) -> Sequence[Poison]:
        offsets = rows[OFFSET].to_pylist()
        self.calls.append(offsets)
        return [Poison("t", 0, 2, "no twos")] if 2 in offsets else []

    def finish(self) -> Sequence[Poison]:
        if self._failure is not None:
            raise self._failure
        self.calls.append("finish")
        return []

    def close(self) -> None:
        self.calls.append("close")


def batch(*offsets: int) -> pa.RecordBatch:
    columns = {TOPIC: ["t"] * len(offsets), PARTITION: [0] * len(offsets), OFFSET: offsets}
    return pa.RecordBatch.from_pydict({n: list(v) for n, v in columns.items()})


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    (tmp_path / "url").write_text("http://user:geheim@hook")
    work = TargetWork(
        connection={"servers": "nowhere", "options": {}},
        sink="out",
        connector="http",
        options=(("url", "${file:url}"),),
        project=str(tmp_path),
        shape=Shape("s", (Column("id", "int"),)),
        topics={"t": "id"},
        now=0.0,
    )

    def aside(connection: Any, problems: dict[Any, str], **facts: Any) -> Rows:
        return Rows(
            QUARANTINE_TOPIC, [None] * len(problems), [p.encode() for p in problems.values()]
        )

    def take(target: Target, batches: Iterator[pa.RecordBatch]) -> tuple[TargetTask, list[Rows]]:
        module = SimpleNamespace(open_target=lambda options, shape: target)
        monkeypatch.setattr(target_task, "module_of", lambda name: module)
        monkeypatch.setattr(target_task, "put_aside", aside)
        task = TargetTask(work, TASK)
        return task, list(task.rows(batches))

    return take


def test_rows_are_handed_over_before_anything_is_written(run: Any) -> None:
    target = Target()
    task, [receipt, aside] = run(target, iter([batch(), batch(1, 2), batch(3)]))
    assert target.calls == [("open", 7, True), [1, 2], [3], "finish", "close"]
    assert json.loads(receipt.values[0]) == {"batch": 7, "records": 2}
    assert (aside.topics, aside.values) == (QUARANTINE_TOPIC, [b"no twos"])
    assert (task.made, task.aside) == (2, 1)


class Stages(Target):
    """Has its parts made visible by the driver."""

    def staged(self) -> str:
        assert self.calls[-1] == "finish"
        return "there"


def test_the_token_says_what_was_staged_and_so_does_a_batch_that_comes_again(run: Any) -> None:
    task, _ = run(Stages(), iter([batch(1, 2)]))
    assert task.note() == "there"
    wrote, skipped = TaskResult(2, False, False), TaskResult(0, True, False, "there")
    assert json.loads(task.done(wrote)) == {"aside": 1, "staged": "there"}
    again, _ = run(Stages(), iter([]))
    assert json.loads(again.done(skipped)) == {"aside": 0, "staged": "there"}
    plain, _ = run(Target(), iter([batch(1)]))
    assert plain.note() is None
    assert plain.done(TaskResult(0, True, False)) is None


def test_a_part_without_rows_asks_nobody(run: Any) -> None:
    target = Target()
    assert run(target, iter([batch()]))[1] == []
    assert target.calls == []


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (
            MainstemError("CONNECTOR_UNREACHABLE", what="x", problem="geheim"),
            "CONNECTOR_UNREACHABLE",
        ),
        (OSError("cannot reach http://user:geheim@hook"), "TARGET_REFUSED"),
    ],
)
def test_what_a_target_raises_has_no_secrets(run: Any, failure: Exception, code: str) -> None:
    target = Target(failure)
    with pytest.raises(MainstemError) as caught:
        run(target, iter([batch(1)]))
    assert caught.value.code == code
    assert "***" in caught.value.message
    assert "geheim" not in caught.value.message
    assert target.calls[-1] == "close"


def test_input_that_ends_too_early_is_no_whole_part(run: Any) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield batch(1)
        raise EOFError("cut")

    target = Target()
    with pytest.raises(EOFError):
        run(target, broken())
    assert target.calls == [("open", 7, True), [1], "close"]


def test_explain_says_how_rows_are_written() -> None:
    texts = """
    CREATE TABLE t (id INT PRIMARY KEY);
    CREATE SINK filed FROM t WITH (connector = 'files', folder = '/data');
    CREATE SINK copied FROM t WITH (connector = 'postgres', url = 'postgresql://db');
    """
    table, filed, copied = (s.definition for s in parse(texts) if isinstance(s, Create))
    said = explained_target(filed, table)
    assert said["kind"] == "sink to files"
    assert said["reasons"][0].startswith("exactly once")
    assert said["reasons"][1] == "each upsert and each delete is one more row"
    assert explained_target(copied, table)["reasons"][1] == "rows are upserted by id, and deleted"
