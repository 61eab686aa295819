"""Plans over definitions in SQL and in Python together."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from mainstem.catalog.build import build_plan, drop_plan
from mainstem.catalog.entry import Catalog, Entry, Origin
from mainstem.catalog.explain import explain
from mainstem.catalog.plan import Plan
from mainstem.definitions.model import Definition, Query
from mainstem.definitions.patterns import TopicPattern
from mainstem.definitions.project import load_definitions
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

SQL = """
CREATE STREAM orders (id INT, n INT);
CREATE STREAM large AS SELECT id, n FROM big;
"""
PYTHON = """
from mainstem import stream, table
from pyspark.sql import DataFrame

@stream
def big(orders: DataFrame) -> DataFrame:
    return orders.where("n > 10")

@table(primary_key="id")
def sums(large: DataFrame) -> DataFrame:
    return large.groupBy("id").sum("n").toDF("id", "n")
"""


@dataclass
class World:
    """A catalog in memory, and an engine that finds what it is told to find."""

    catalog: Catalog = field(default_factory=Catalog)
    inspected: list[str] = field(default_factory=list)

    def plan(self, python: str = PYTHON, sql: str = SQL) -> Plan:
        files = [("p.sql", sql), ("pipeline/p.py", python)]
        return build_plan(
            self.catalog,
            load_definitions(files),
            analyser=self,
            facts=self,
            origin=Origin.PROJECT,
            drop_missing=True,
        )

    def apply(self, python: str = PYTHON, sql: str = SQL) -> list[str]:
        plan = self.plan(python, sql)
        for step in plan.steps:
            entry = Entry.from_json(step.entry.to_json())
            self.catalog = replace(self.catalog.with_entry(entry), revision=1)
        self.inspected.clear()
        return [f"{step.step} {step.entry.name}" for step in plan.steps]

    # -- what planning asks for

    def inspect(self, definition: Definition, inputs: Sequence[Definition]) -> Query:
        self.inspected.append(definition.name)
        assert definition.query is not None
        grouped = "groupBy" in definition.query.text
        return replace(
            definition.query, aggregates=grouped, mentioned=tuple(i.name for i in inputs)
        )

    def analyse(self, definition: Definition, inputs: Sequence[Definition]) -> tuple[Column, ...]:
        return (Column("id", "int"), Column("n", "int"))

    def records(self, topic: str) -> int | None:
        return 0

    def partitions(self, topic: str) -> int | None:
        return None

    def matching(self, pattern: TopicPattern) -> Sequence[str]:
        return []


def test_sql_and_python_are_one_graph() -> None:
    world = World()
    assert world.apply() == ["create orders", "create big", "create large", "create sums"]
    assert [e.name for e in world.catalog.dependents("big")] == ["large"]
    assert world.apply() == []
    query = world.catalog.entries["sums"].definition.query
    assert query is not None and query.aggregates and query.mentioned == ("large",)


def test_a_changed_stateless_function_goes_on_and_an_aggregate_begins_anew() -> None:
    world = World()
    world.apply()
    assert world.apply(PYTHON.replace("n > 10", "n > 11")) == ["change big"]
    assert world.apply(PYTHON.replace("n > 10", "n > 11").replace('"n")', '"n").na.drop()')) == [
        "rebuild sums"
    ]


def test_layout_is_no_change_and_options_are_taken_over() -> None:
    world = World()
    world.apply()
    assert world.apply(PYTHON.replace("def big", "# comment\ndef big")) == []
    retention = PYTHON.replace('primary_key="id"', 'primary_key="id", retention="1 d"')
    assert world.apply(retention) == ["change sums"]
    assert world.inspected == []
    query = world.catalog.entries["sums"].definition.query
    assert query is not None and query.aggregates and query.mentioned == ("large",)


def test_a_plan_shows_what_changes_in_the_function() -> None:
    world = World()
    world.apply()
    text = explain(world.plan(PYTHON.replace("n > 10", "n > 11")))
    assert '-    return orders.where("n > 10")' in text
    assert '+    return orders.where("n > 11")' in text


def test_what_is_read_cannot_go() -> None:
    world = World()
    world.apply()
    with pytest.raises(MainstemError) as caught:
        drop_plan(world.catalog, "big", facts=world)
    assert caught.value.code == "HAS_DEPENDENTS"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("def big(orders:", "def big(ordes:", "UNKNOWN_RELATION"),
        ("def big(orders: DataFrame)", "def big(orders: DataFrame, large: DataFrame)", "CYCLE"),
        ("@stream\ndef big(orders", "@stream\ndef big(sums", "NOT_SUPPORTED"),
        ("@stream\n", '@stream(key="x")\n', "KEY_NOT_A_COLUMN"),
        ("@stream\n", "@stream(final=True)\n", "NOT_SUPPORTED"),
        ('@table(primary_key="id")', "@table", "MISSING_PRIMARY_KEY"),
    ],
)
def test_errors_stand_at_the_function(old: str, new: str, code: str) -> None:
    sql = SQL if code == "CYCLE" else SQL.replace("FROM big", "FROM orders")
    with pytest.raises(MainstemError) as caught:
        World().plan(PYTHON.replace(old, new), sql)
    assert caught.value.code == code
    location = caught.value.location
    assert location is not None and (location.file.endswith(".py") or code == "CYCLE")
    if code == "UNKNOWN_RELATION":
        assert '"orders"' in caught.value.hint
