"""Which plans leave the rows of each input partition together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mainstem.engine.narrow import keeps_partitions

INPUT = ("RDDScanExec",)
TABLE = ("BroadcastExchangeExec", ("ShuffleExchangeExec", INPUT))


def plan(name: str, *children: Any) -> Any:
    nodes = [plan(*child) for child in children]
    return SimpleNamespace(
        getClass=lambda: SimpleNamespace(getSimpleName=lambda: name),
        children=lambda: SimpleNamespace(size=lambda: len(nodes), apply=nodes.__getitem__),
    )


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        (("ProjectExec", ("BroadcastHashJoinExec", INPUT, TABLE)), True),
        (("BroadcastHashJoinExec", TABLE, ("FilterExec", INPUT)), True),
        (("ProjectExec", ("SortMergeJoinExec", INPUT, TABLE)), False),
        (("BroadcastHashJoinExec", ("ShuffleExchangeExec", INPUT), TABLE), False),
        (("BroadcastNestedLoopJoinExec", INPUT, TABLE), False),
        (("UnionExec", INPUT, INPUT), False),
        (("BroadcastHashJoinExec", INPUT, INPUT), False),
        (("ProjectExec", ("BroadcastHashJoinExec", TABLE, TABLE)), False),
    ],
)
def test_rows_stay_where_they_are(steps: tuple[Any, ...], kept: bool) -> None:
    execution = SimpleNamespace(executedPlan=lambda: plan(*steps))
    result: Any = SimpleNamespace(_jdf=SimpleNamespace(queryExecution=lambda: execution))
    assert keeps_partitions(result) is kept
