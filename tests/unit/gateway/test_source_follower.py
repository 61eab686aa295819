"""Columns that come at a source are taken up by themselves, where that loses nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mainstem.catalog.entry import Catalog, Entry
from mainstem.catalog.plan import ChangeInPlace, Plan
from mainstem.connect.brought import definitions_of
from mainstem.connect.capture import Captured
from mainstem.definitions.model import Connection, Definition, Kind
from mainstem.errors import MainstemError
from mainstem.gateway.source_follower import SourceFollower
from mainstem.vocabulary import Column, SourceLocation

CHANGED = {"title": "SOURCE_CHANGED", "detail": 'it has a column "more"'}


class World:
    """A catalog with a source and a table of it, and what its flow says."""

    def __init__(self) -> None:
        place = SourceLocation("shop.sql", 1, 1)
        captures = Connection("postgres-cdc", ())
        source = Definition("shop", Kind.SOURCE, "", place, "", captures=captures)
        table = Captured("public.orders", "shop.public.orders", (Column("id", "int"),), ("id",))
        brought = definitions_of(source, [table])
        entries = {d.name.lower(): Entry(d, 1) for d in (source, *brought)}
        self.catalog = Catalog(entries, revision=5)
        self.error: dict[str, Any] | None = None
        self.generation = 1
        self.answers: list[Plan | MainstemError] = []
        self.asked: list[str] = []
        self.now = 0.0
        self.follower = SourceFollower(
            lambda: self.catalog, self.statuses, self.grow, lambda: self.now
        )

    def statuses(self) -> dict[str, dict[str, Any]]:
        return {"shop_orders": {"generation": self.generation, "error": self.error}}

    def grow(self, source: str) -> Plan:
        self.asked.append(source)
        answer = self.answers.pop(0)
        if isinstance(answer, MainstemError):
            raise answer
        return answer

    def look(self, seconds: float = 1.0, times: int = 1) -> None:
        for _ in range(times):
            self.follower.look()
            self.now += seconds

    def grown(self) -> Plan:
        entry = self.catalog.entries["shop_orders"]
        return Plan(5, (ChangeInPlace(entry, entry, "columns added"),))


@pytest.fixture
def world() -> World:
    return World()


def test_only_a_flow_that_waits_has_its_source_looked_into(world: World) -> None:
    world.look()
    world.error = {"title": "FLOW_FAILED", "detail": "x"}
    world.look()
    world.error, world.generation = CHANGED, 0
    world.look()
    assert world.asked == []
    world.generation, world.answers = 1, [world.grown()]
    world.look(times=5)
    assert world.asked == ["shop"]


def test_another_change_is_taken_up_too(world: World) -> None:
    world.error, world.answers = CHANGED, [world.grown(), world.grown()]
    world.look(times=2)
    world.catalog = replace(world.catalog, revision=6)
    world.look(times=2)
    assert world.asked == ["shop", "shop"]


def test_what_would_begin_anew_waits_for_a_person(world: World) -> None:
    world.error = CHANGED
    world.answers = [MainstemError("COLUMNS_NOT_ADDED", names="shop_orders")]
    world.look(times=30)
    assert world.asked == ["shop"]


def test_a_source_that_does_not_answer_is_asked_again_after_a_while(world: World) -> None:
    away = MainstemError("CONNECTOR_UNREACHABLE", what="x", problem="y")
    world.error, world.answers = CHANGED, [away, Plan(5, ()), world.grown()]
    world.look(times=9)
    assert len(world.asked) == 1
    world.look(times=30)
    assert len(world.asked) == 3
