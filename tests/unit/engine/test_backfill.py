"""How fast a backfill reads, and how that of a stream knows that it is at its end."""

from __future__ import annotations

import json
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mainstem.catalog.backfill import begun
from mainstem.catalog.entry import Entry
from mainstem.config import SparkSettings
from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse_one
from mainstem.engine.backfill import BackfillFlow, pace, place_now
from mainstem.engine.flow import FlowServices
from mainstem.engine.quarantine import Report
from mainstem.testing.clock import ManualClock


@pytest.mark.parametrize(
    ("rate", "streams", "partitions", "expected"),
    [
        (None, 1, 4, (10_000, "0 seconds")),
        (5_000, 1, 4, (5_000, "1000 milliseconds")),
        (5_000, 2, 8, (2_500, "1000 milliseconds")),
        (50_000, 1, 4, (10_000, "200 milliseconds")),
        (2, 1, 8, (8, "4000 milliseconds")),
        (1, 2, 2, (1, "2000 milliseconds")),
    ],
)
def test_pace(rate: int | None, streams: int, partitions: int, expected: tuple[int, str]) -> None:
    assert pace(rate, 10_000, streams, partitions) == expected


@pytest.mark.parametrize("rate", [1, 3, 7, 100, 9_999, 10_001, 123_456])
@pytest.mark.parametrize("streams", [1, 2, 3])
def test_never_faster_than_asked_for(rate: int, streams: int) -> None:
    partitions = 4 * streams
    each, trigger = pace(rate, 10_000, streams, partitions)
    seconds = int(trigger.split()[0]) / 1000
    # each partition may give a record more than its share
    assert max(each * streams, partitions) <= rate * seconds * 1.01


def test_a_place_that_is_gone_or_new() -> None:
    begins = {"s": {0: 4, 1: 0, 2: 0}}
    assert place_now("earliest", begins) == "earliest"
    assert json.loads(place_now('{"s": {"0": 2, "1": 5}}', begins)) == {
        "s": {"0": 4, "1": 5, "2": 0}
    }


def made(text: str) -> Definition:
    definition: Definition = parse_one(text).definition  # type: ignore[union-attr]
    return definition


SOURCE = made("CREATE STREAM s (k STRING)")
COPY = Entry(made("CREATE STREAM copy AS SELECT k FROM s"), "f")


class RunningFlow(BackfillFlow):
    """One whose query is said to run."""

    running = True


@pytest.fixture
def reports() -> list[Report]:
    return []


@pytest.fixture
def flow(reports: list[Report]) -> BackfillFlow:
    """From 2 to 10, and 5 to 5; the checkpoint is behind a batch that went on to 9 and 30."""
    start, end = '{"s": {"0": 2, "1": 5}}', '{"s": {"0": 10, "1": 5}}'
    admin = SimpleNamespace(
        topics_of=lambda source: [source.topic],
        all_end_offsets=lambda topics: {"s": {0: 50, 1: 60}},
        all_begin_offsets=lambda topics: {"s": {0: 0, 1: 0}},
        topic=lambda name: SimpleNamespace(partitions=2),
        group_offsets=lambda group, topic: {0: 4, 1: 6},
    )
    checkpoints = SimpleNamespace(
        begin=lambda folder: {"s": {0: 2, 1: 5}},
        end=lambda folder: {"s": {0: 9, 1: 30}},
        folder=lambda entry: entry.flow_id,
    )
    given: dict[str, Any] = {
        "admin": admin,
        "checkpoints": checkpoints,
        "settings": SparkSettings(),
        "clock": ManualClock(0.0),
        "keeper": SimpleNamespace(report=reports.append),
    }
    parts = {field.name: given.get(field.name) for field in fields(FlowServices)}
    services = FlowServices(**cast(dict[str, Any], parts))
    return RunningFlow(begun(COPY, [SOURCE], start=start, end=end), (SOURCE,), services)


def test_the_backfill_of_a_stream_is_done_when_it_is_past_its_end_everywhere(
    flow: BackfillFlow,
) -> None:
    assert not flow.finished
    flow._take_up_position()
    told = flow.progress()
    assert (told["records_done"], told["records_total"], flow.finished) == (7, 8, False)
    flow.status.positions["s"] = {"0": 12, "1": 30}
    assert (flow.progress()["records_done"], flow.finished) == (8, True)


def test_what_it_left_out_may_be_bad(flow: BackfillFlow, reports: list[Report]) -> None:
    flow._report(SOURCE, {"s": {0: 9}}, {"s": {0: 12}}, 0)
    assert [report.bad for report in reports] == [None]
