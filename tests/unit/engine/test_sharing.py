"""Which flows may share the scan of their stream."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mainstem.catalog.backfill import beside
from mainstem.catalog.entry import Backfill, BackfillState, Entry
from mainstem.definitions.model import Definition
from mainstem.definitions.parse import parse_one
from mainstem.engine.sharing import Sharing, can_share


def made(text: str) -> Definition:
    definition: Definition = parse_one(text).definition  # type: ignore[union-attr]
    return definition


STREAM = made("CREATE STREAM s (k STRING, n INT, at TIMESTAMP)")
FILTER = Entry(made("CREATE STREAM x AS SELECT k, n FROM s WHERE n > 1"), "f")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM x AS SELECT k, n * 2 AS m FROM s WHERE n > 1",
        "CREATE STREAM x AS SELECT *, _offset AS o FROM s",
        "CREATE STREAM x AS SELECT k, explode(array(n, n + 1)) AS m FROM s",
        "CREATE TABLE x WITH (key = 'k') AS SELECT k, n FROM s",
    ],
)
def test_flows_without_state_share(text: str) -> None:
    assert can_share(Entry(made(text), "f"), [STREAM])


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE x AS SELECT k, count(*) AS n FROM s GROUP BY k",
        "CREATE STREAM x AS SELECT DISTINCT k FROM s",
        "CREATE STREAM x WITH (deduplicate = 'k', within = '1 hour') AS SELECT k FROM s",
        "CREATE STREAM x AS SELECT k FROM s UNION ALL SELECT upper(k) AS k FROM s",
        "CREATE STREAM x WITH (latency = 'realtime') AS SELECT k FROM s",
        "CREATE STREAM x WITH (trigger = '1 second') AS SELECT k FROM s",
    ],
)
def test_others_do_not(text: str) -> None:
    assert not can_share(Entry(made(text), "f"), [STREAM])


def test_a_wildcard_stream_is_not_shared() -> None:
    wild = made("CREATE STREAM s FROM TOPICS '*.s' (k STRING, n INT)")
    assert not can_share(FILTER, [wild])


def test_nor_a_flow_with_tables() -> None:
    table = made("CREATE TABLE t (k STRING PRIMARY KEY)")
    joined = Entry(made("CREATE STREAM x AS SELECT s.k FROM s JOIN t ON s.k = t.k"), "f")
    assert not can_share(joined, [STREAM, table])


def test_a_flow_with_a_backfill_beside_it_is_alone() -> None:
    backfill = Backfill(2, "beginning", "earliest")
    assert not can_share(replace(FILTER, backfill=backfill), [STREAM])
    assert not can_share(beside(replace(FILTER, backfill=backfill), 4), [STREAM])
    done = replace(backfill, state=BackfillState.DONE)
    assert can_share(replace(FILTER, backfill=done), [STREAM])


def test_one_flow_has_nobody_to_share_with() -> None:
    sharing = Sharing()
    sharing.add(FILTER, STREAM)
    sharing.add(FILTER, STREAM)  # started again
    assert not sharing.worthwhile(STREAM)
    other = replace(FILTER, definition=replace(FILTER.definition, name="y"))
    sharing.add(other, replace(STREAM, topic="elsewhere"))
    assert not sharing.worthwhile(STREAM)
    sharing.add(other, STREAM)
    assert sharing.worthwhile(STREAM)
    sharing.remove(other)
    assert not sharing.worthwhile(STREAM)
