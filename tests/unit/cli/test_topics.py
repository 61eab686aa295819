from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Run

TOPICS = {
    "topics": [
        {"name": "clicks", "partitions": 4, "replication_factor": 1, "config": {}},
        {
            "name": "orders",
            "partitions": 2,
            "replication_factor": 1,
            "config": {"cleanup.policy": "compact"},
        },
    ]
}


def test_all_topics(gateway: Gateway, run: Run) -> None:
    gateway.answer("GET", "/v1/topics", TOPICS)
    assert run("topics", "-o", "csv").out == (
        "name,partitions,replication_factor,cleanup.policy,retention.ms\n"
        "clicks,4,1,,\norders,2,1,compact,\n"
    )
    assert json.loads(run("topics", "-o", "json").out) == TOPICS["topics"]


def test_one_topic(gateway: Gateway, run: Run) -> None:
    gateway.answer("GET", "/v1/topics", TOPICS)
    out = run("topics", "orders").out
    assert "cleanup.policy" in out
    assert "clicks" not in out
    assert json.loads(run("topics", "orders", "-o", "json").out) == TOPICS["topics"][1]


def test_no_such_topic(gateway: Gateway, run: Run) -> None:
    gateway.answer("GET", "/v1/topics", TOPICS)
    result = run("topics", "clikcs")
    assert result.code == 1
    assert 'Did you mean "clicks"?' in result.err
