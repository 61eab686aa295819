"""Spark's document about a batch, read."""

from __future__ import annotations

import json
from typing import Any

from mainstem.engine.progress import Progress, SourceProgress, range_of

DOCUMENT: dict[str, Any] = {
    "id": "1b8ab0ad-3b1e-4c3e-8d3f-2f0f7c2d9d11",
    "runId": "c4d8a3f2-6c1e-4e77-8a55-0d5b1f6f9a10",
    "name": "out.1",
    "timestamp": "2026-11-15T19:00:00.000Z",
    "batchId": 7,
    "batchDuration": 1250,
    "numInputRows": 3,
    "inputRowsPerSecond": 12.345,
    "durationMs": {"triggerExecution": 1250, "latestOffset": 20, "getBatch": 5, "addBatch": 1000},
    "eventTime": {"max": "2026-11-15T19:00:00.000Z", "watermark": "2026-11-15T18:00:00.000Z"},
    "stateOperators": [{"operatorName": "stateStoreSave", "numRowsTotal": 2}],
    "sources": [
        {"description": "kafka", "startOffset": None, "endOffset": {"a": {"0": 5, "1": 7}}},
        {"description": "kafka", "startOffset": {"b": {"0": 1}}, "endOffset": {"b": {"0": 2}}},
    ],
    "sink": {"description": "ForeachBatchSink", "numOutputRows": -1},
    "observedMetrics": {"intake of s": {"bad": 0, "newest": 1700000000000, "event_time": None}},
}


def test_a_batch() -> None:
    progress = Progress.of(json.dumps(DOCUMENT))
    assert (progress.batch_id, progress.seconds, progress.input_rows) == (7, 1.25, 3)
    assert progress.input_rate == 12.3
    assert progress.split == {"look": 0.025, "plan": 0.0, "run": 1.0, "note": 0.0}
    assert progress.watermark == "2026-11-15T18:00:00.000Z"
    assert [(s.start, s.end) for s in progress.sources] == [
        ({}, {"a": {0: 5, 1: 7}}),
        ({"b": {0: 1}}, {"b": {0: 2}}),
    ]
    assert progress.observed == {"intake of s": {"bad": 0, "newest": 1700000000000}}
    assert progress.operators[0]["numRowsTotal"] == 2


def test_what_spark_leaves_out() -> None:
    """Rates that are no number, times and observations of a flow that has none."""
    short = {
        field: value
        for field, value in DOCUMENT.items()
        if field not in ("inputRowsPerSecond", "eventTime", "observedMetrics")
    }
    progress = Progress.of(json.dumps(short))
    assert (progress.input_rate, progress.watermark, progress.event_time) == (0.0, None, None)
    assert progress.observed == {}


def test_what_all_sources_of_a_topic_have_read() -> None:
    one = SourceProgress({"a": {0: 1, 1: 5}}, {"a": {0: 3, 1: 5}})
    two = SourceProgress({"a": {0: 1, 1: 4}, "b": {0: 0}}, {"a": {0: 2, 1: 6}, "b": {0: 9}})
    both = range_of([one, two], "a".__eq__)
    assert (both.start, both.end) == ({"a": {0: 1, 1: 4}}, {"a": {0: 3, 1: 6}})
    assert not both.alike
    assert range_of([one, one], "a".__eq__).alike
    alone = range_of([one, two], "b".__eq__)
    assert (alone.start, alone.end, alone.alike) == ({"b": {0: 0}}, {"b": {0: 9}}, True)
