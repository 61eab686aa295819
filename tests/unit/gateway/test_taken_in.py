"""Waiting for the records of a receipt, hop by hop, over a log that answers as it is told."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from tests.unit.gateway.world import entry

from mainstem.catalog.entry import Catalog
from mainstem.errors import MainstemError
from mainstem.gateway.taken_in import TakenIn

ENTRIES = [
    entry("CREATE STREAM clicks (user STRING, n INT)"),
    entry("CREATE STREAM good AS SELECT * FROM clicks WHERE n > 0"),
    entry("CREATE TABLE visits AS SELECT user, count(*) AS n FROM good GROUP BY user"),
    entry("CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id))"),
    entry(
        "CREATE TABLE fast WITH (latency = 'realtime') AS SELECT user, count(*) AS n FROM clicks"
        " GROUP BY user"
    ),
]


class World:
    """Offsets of groups and views; each question is noted, and may move something."""

    def __init__(self) -> None:
        self.catalog = Catalog({e.name: e for e in ENTRIES}, 1)
        self.groups: dict[str, dict[int, int]] = {}
        self.ends: dict[str, dict[int, int]] = {}
        self.views: dict[str, dict[int, int]] = {}
        self.log: list[str] = []

    def group_offsets(self, group: str, topic: str) -> dict[int, int]:
        self.log.append(f"{group} of {topic}")
        found = self.groups.get(group, {})
        self.groups[group] = {p: o + 1 for p, o in found.items()}
        return found

    def end_offsets(self, topic: str) -> dict[int, int]:
        self.log.append(f"end of {topic}")
        return self.ends[topic]

    async def positions(self, tables: Any) -> Any:
        self.log.append(f"view {tables[0]}")
        found = self.views.get(tables[0], {})
        self.views[tables[0]] = {p: o + 1 for p, o in found.items()}
        return {tables[0]: found}

    def wait(self, tables: list[str], receipt: str, seconds: float = 5.0) -> None:
        waits = TakenIn(lambda: self.catalog, cast(Any, self), self.positions, 30.0)
        asyncio.run(waits.wait(tables, receipt, seconds))


@pytest.fixture
def world() -> World:
    return World()


def test_a_declared_table(world: World) -> None:
    world.views["users"] = {0: 40}
    world.wait(["users"], "users:0=41")
    assert world.log == ["view users"] * 3  # 40, 41, and 42 is behind 41


def test_through_two_flows(world: World) -> None:
    world.groups = {"mainstem.good": {0: 9}, "mainstem.visits": {0: 6}}
    world.ends = {"good": {0: 8}, "visits": {0: 5}}
    world.views["visits"] = {0: 4}
    world.wait(["visits"], "clicks:0=9")
    assert world.log == [
        *["mainstem.good of clicks"] * 2,
        "end of good",
        *["mainstem.visits of good"] * 3,
        "end of visits",
        *["view visits"] * 2,
    ]


def test_tables_that_do_not_come_from_it(world: World) -> None:
    with pytest.raises(MainstemError) as caught:
        world.wait(["users"], "clicks:0=9")
    assert caught.value.code == "BAD_REQUEST"
    world.views["users"] = {0: 5}
    world.groups = {"mainstem.good": {0: 10}, "mainstem.visits": {0: 8}}
    world.ends = {"good": {0: 8}, "visits": {0: 0}}
    world.wait(["visits", "users"], "users:0=4")  # visits has nothing to do with users
    assert world.log == ["view users"]


def test_it_says_what_it_waits_for(world: World) -> None:
    world.groups["mainstem.good"] = {}
    with pytest.raises(MainstemError) as caught:
        world.wait(["visits"], "clicks:3=9", 0.05)
    assert caught.value.code == "NOT_TAKEN_IN"
    assert caught.value.params["what"] == "flow good"
    assert caught.value.params["records"] == "clicks, partition 3, offset 9"


@pytest.mark.parametrize(
    ("table", "receipt", "code"),
    [
        ("visits", "", "BAD_REQUEST"),
        ("visits", "nonsense", "BAD_REQUEST"),
        ("fast", "clicks:0=1", "NOT_SUPPORTED"),
    ],
)
def test_refusals(world: World, table: str, receipt: str, code: str) -> None:
    with pytest.raises(MainstemError) as caught:
        world.wait([table], receipt)
    assert caught.value.code == code
