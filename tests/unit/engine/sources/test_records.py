"""The task that writes what a source brings: good records there, all else aside."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from mainstem.engine.sources.records import SourceTask, SourceWork
from mainstem.log.task_writer import Rows, TaskResult, TaskWrite
from mainstem.vocabulary import QUARANTINE_TOPIC

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "place": pa.string(),
        "cause": pa.string(),
        "at": pa.int64(),
        "headers": HEADERS,
    }
)
TASK = TaskWrite("in.1", "state-0", 0, "in_events", "tokens", None, recovering=False)


def task(largest: int = 1_000_000) -> SourceTask:
    work = SourceWork("in", "in_events", 1_700_000_000.0, largest, lambda line: f"bad: {line!r}")
    return SourceTask(work, TASK)


def written(of: SourceTask, *rows: dict[str, Any]) -> list[Rows]:
    return list(of.rows([pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)]))


def test_records_keep_key_time_and_headers():
    made = task()
    headers = [{"key": "trace", "value": b"1"}, {"key": "none", "value": None}]
    row = {"key": b"k", "value": b"v", "at": 5, "headers": headers}
    [rows] = written(made, row, {"value": None})
    assert rows == Rows(
        None,
        [b"k", None],
        [b"v", None],
        [5, None],
        headers=[[("trace", b"1"), ("none", None)], None],
    )
    assert made.done(TaskResult(2, skipped=False, reused=False)) == '{"aside": 0}'
    assert made.made == 2


def test_what_is_no_record_goes_aside_with_its_place():
    made = task()
    bad = {"value": b"{x", "place": "a.jsonl, line 2", "cause": ""}
    whole = {"value": b"a.csv", "place": "a.csv", "cause": "it cannot be read"}
    good, aside = written(made, {"value": b"{}"}, bad, whole)
    assert (good.values, aside.topics, aside.values) == (
        [b"{}"],
        QUARANTINE_TOPIC,
        [b"{x", b"a.csv"],
    )
    assert aside.headers is not None
    facts = dict(aside.headers[0] or [])
    assert facts["code"] == b"NOT_A_RECORD"
    assert facts["stage"] == b"source"
    assert facts["cause"] == b"a.jsonl, line 2 is no record of source \"in\": bad: b'{x'"
    assert made.done(TaskResult(3, skipped=False, reused=False)) == '{"aside": 2}'
    assert made.made == 1


def test_a_value_that_is_too_large_goes_aside_cut():
    [good, aside] = written(task(100_000), {"value": b"x" * 200_000, "place": "row 1"})
    assert good.values == []
    assert len(aside.values[0] or b"") == 65_536
    assert aside.headers is not None
    assert b"of 200000 bytes the first 65536 are kept" in (
        dict(aside.headers[0] or [])["cause"] or b""
    )


def test_a_batch_that_was_there_before_counts_for_nothing():
    made = task()
    assert made.done(TaskResult(0, skipped=True, reused=False)) is None
    assert made.made == 0
