"""When a table is not corrected: its flow is another one by now, or the log is too short."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse_one
from mainstem.engine import apply_late as module
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin

NONE: Any = None
FIRST = "2026-01-01T00:00:00.000Z"


def made(text: str) -> Definition:
    definition: Definition = parse_one(text).definition  # type: ignore[union-attr]
    return definition


SOURCE = made("CREATE STREAM s (k STRING) WITH (watermark = '1 minute')")
TABLE = made(
    "CREATE TABLE t AS SELECT k, window, count(*) AS n FROM s"
    " GROUP BY k, window(_timestamp, '1 minute')"
)


def test_a_flow_that_is_not_the_tables_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    did: list[str] = []

    class Producer:
        def __init__(self, connection: object, name: str) -> None:
            did.append(name)

        def close(self) -> None:
            did.append("close")

    monkeypatch.setattr(module, "TransactionalProducer", Producer)

    def is_live(flow: str) -> bool:
        did.append(f"look at {flow}")
        return False

    with pytest.raises(MainstemError) as refused:
        module.apply_late(NONE, NONE, NONE, NONE, NONE, "t.5", TABLE, [SOURCE], is_live, 0.0)
    assert refused.value.code == "TABLE_BEGINS_ANEW"
    # a look before the id was taken would say nothing of what happens behind it
    assert did == [module.corrections_of("t"), "look at t.5", "close"]


@pytest.mark.parametrize(("begin", "whole"), [(0, True), (4, True), (7, False), (9, False)])
def test_the_log_must_reach_back_to_the_first_window(begin: int, whole: bool) -> None:
    asked: list[str] = []

    def begin_offsets(topic: str) -> dict[int, int]:
        asked.append("begin")
        return {0: begin}

    def offsets_at(topic: str, since: int) -> dict[int, int]:
        asked.append("at")
        return {0: 7}

    log = SimpleNamespace(
        topics_of=lambda source: ["s"],
        begin_offsets=begin_offsets,
        offsets_at=offsets_at,
        all_end_offsets=lambda topics: {"s": {0: 20}},
    )
    admin = cast(Admin, log)
    if whole:
        assert module._range(admin, SOURCE, FIRST) == ({"s": {0: 7}}, {"s": {0: 20}})
    else:
        with pytest.raises(MainstemError) as refused:
            module._range(admin, SOURCE, FIRST)
        assert refused.value.code == "LATE_LOG_INCOMPLETE"
    assert asked == ["at", "begin"]
