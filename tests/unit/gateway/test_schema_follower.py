"""When the gateway takes up new columns, and when it lets them be."""

from __future__ import annotations

import json

import pytest

from mainstem.catalog.entry import Catalog, Entry
from mainstem.catalog.plan import Plan
from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError
from mainstem.gateway.schema_follower import SchemaFollower
from mainstem.schemas.model import Schema, SchemaType
from mainstem.testing.registry import MemoryRegistry


class World:
    """A catalog with one stream, and a registry."""

    def __init__(self, sql: str = "CREATE STREAM s WITH (format = 'avro')") -> None:
        statement = parse_one(sql)
        assert isinstance(statement, Create)
        self.catalog = Catalog({"s": Entry(statement.definition, "a.b.c")}, 1)
        self.registry = MemoryRegistry()
        self.register("id")
        self.followed = 0
        self.problem: MainstemError | None = None
        self.follower = SchemaFollower(lambda: self.catalog, self.registry, self.follow)

    def register(self, *names: str) -> None:
        fields = [{"name": name, "type": "int"} for name in names]
        text = json.dumps({"type": "record", "name": "r", "fields": fields})
        self.registry.register("s-value", Schema(SchemaType.AVRO, text))

    def follow(self) -> Plan:
        self.followed += 1
        if self.problem is not None:
            raise self.problem
        return Plan(1, ())

    def looks(self) -> int:
        """How often it follows in two looks."""
        before = self.followed
        self.follower.look()
        self.follower.look()
        return self.followed - before


def test_a_version_is_taken_up_once() -> None:
    world = World()
    assert world.looks() == 1
    assert world.looks() == 0
    world.register("id", "note")
    assert world.looks() == 1
    world.catalog = Catalog(world.catalog.entries, 2)
    assert world.looks() == 1


def test_without_such_streams_nobody_is_asked() -> None:
    assert World("CREATE STREAM s (id INT) WITH (format = 'avro')").looks() == 0


@pytest.mark.parametrize(
    ("problem", "tries"),
    [
        (MainstemError("STALE_PLAN", planned=1, actual=2), 2),
        (MainstemError("ENGINE_UNREACHABLE", seconds=1), 2),
        (MainstemError("REGISTRY_UNREACHABLE", url="u", problem="x"), 2),
        (MainstemError("DUPLICATE_COLUMN", column="a", name="b"), 1),
    ],
)
def test_what_may_pass_is_tried_again(problem: MainstemError, tries: int) -> None:
    world = World()
    world.problem = problem
    assert world.looks() == tries
    world.problem = None
    world.register("id", "note")
    assert world.looks() == 1
