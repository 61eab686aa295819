"""What a plan does when Python functions come, change and go."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from mainstem.catalog.apply import apply_plan
from mainstem.catalog.build import build_plan
from mainstem.catalog.entry import (
    Catalog,
    CatalogRecord,
    Entry,
    Origin,
    record_from_json,
    record_to_json,
)
from mainstem.catalog.explain import explain
from mainstem.catalog.plan import Plan, TopicNeed
from mainstem.definitions.model import Definition, FunctionDefinition
from mainstem.definitions.project import load_definitions
from mainstem.definitions.python_functions import load_functions
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

SQL = """
CREATE STREAM s (id BIGINT, t STRING);
CREATE STREAM short AS SELECT id, slug(t) AS t FROM s;
CREATE TABLE counts AS SELECT slug(t) AS t, count(*) AS n FROM s GROUP BY slug(t);
CREATE STREAM plain AS SELECT id, t FROM s;
CREATE STREAM loud AS SELECT id, shout(t) AS t FROM s;
"""
PYTHON = """
from mainstem import function

@function
def slug(text: str) -> str:
    return text[:3]

@function
def shout(text: str) -> str:
    return text + "!"
"""


@dataclass
class World:
    """A catalog in memory; the executor keeps what a plan writes as the topic would."""

    stored: dict[str, bytes] = field(default_factory=dict)
    revision: int = 0

    @property
    def catalog(self) -> Catalog:
        found = {key: record_from_json(data) for key, data in self.stored.items()}
        return Catalog(
            {k: r for k, r in found.items() if isinstance(r, Entry)},
            self.revision,
            {r.name.lower(): r for r in found.values() if isinstance(r, FunctionDefinition)},
        )

    def plan(self, sql: str, python: str, origin: Origin = Origin.PROJECT) -> Plan:
        files = [("p.sql", sql), ("functions/f.py", python)]
        functions = load_functions(files)
        project = origin is Origin.PROJECT
        return build_plan(
            self.catalog,
            load_definitions(files, functions),
            analyser=self,
            facts=self,
            origin=origin,
            drop_missing=project,
            functions=functions if project else None,
        )

    def apply(self, sql: str, python: str, origin: Origin = Origin.PROJECT) -> Plan:
        plan = self.plan(sql, python, origin)
        apply_plan(plan, self)
        return plan

    # -- what planning and applying ask for

    def analyse(self, definition: Definition, inputs: Sequence[Definition]) -> tuple[Column, ...]:
        names = [*definition.key, "id", "t", "n"]
        return tuple(Column(name, "string") for name in dict.fromkeys(names))

    def records(self, topic: str) -> int | None:
        return 0

    def partitions(self, topic: str) -> int | None:
        return None

    def create_topic(self, topic: TopicNeed) -> None: ...

    def alter_topic(self, topic: TopicNeed) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def write_catalog(self, changes: dict[str, CatalogRecord | None], revision: int) -> None:
        for key, record in changes.items():
            if record is None:
                del self.stored[key]
            else:
                self.stored[key] = record_to_json(record)
        self.revision += 1


def taken(plan: Plan) -> list[str]:
    found = [f"{change.step} {change.function.name}()" for change in plan.functions]
    return found + [f"{step.step} {step.entry.name}" for step in plan.steps]


@pytest.fixture
def world() -> World:
    made = World()
    made.apply(SQL, PYTHON)
    return made


def test_functions_are_objects_of_the_catalog(world: World) -> None:
    assert sorted(world.catalog.functions) == ["shout", "slug"]
    assert [e.name for e in world.catalog.users("SLUG")] == ["counts", "short"]
    assert taken(world.plan(SQL, PYTHON)) == []


def test_comments_are_no_change(world: World) -> None:
    assert taken(world.plan(SQL, PYTHON.replace("@function", "# a comment\n@function"))) == []


def test_only_flows_that_call_a_function_follow_it(world: World) -> None:
    plan = world.apply(SQL, PYTHON.replace("[:3]", "[:4]"))
    assert taken(plan) == ["change slug()", "change short", "rebuild counts"]
    assert "function slug changed; in place" in explain(plan)
    assert "~ function slug" in explain(plan)
    entry = world.catalog.get("short")
    assert entry is not None
    assert entry.definition.query is not None
    assert "[:4]" in entry.definition.query.functions[0].source
    assert taken(world.plan(SQL, PYTHON.replace("[:3]", "[:4]"))) == []


def test_a_plan_with_another_version_is_another_plan(world: World) -> None:
    plans = {world.plan(SQL, PYTHON.replace("[:3]", f"[:{n}]")).digest for n in (4, 5)}
    assert len(plans) == 2


def test_new_and_gone_functions(world: World) -> None:
    more = PYTHON + "\n@function\ndef twice(x: int) -> int:\n    return 2 * x\n"
    assert taken(world.apply(SQL, more)) == ["create twice()"]
    assert taken(world.apply(SQL, PYTHON)) == ["drop twice()"]
    assert sorted(world.catalog.functions) == ["shout", "slug"]


def test_what_a_statement_made_follows_its_function(world: World) -> None:
    world.apply("CREATE STREAM own AS SELECT slug(t) AS t FROM s;", PYTHON, Origin.STATEMENT)
    plan = world.plan(SQL, PYTHON.replace("[:3]", "[:4]"))
    assert "change own" in taken(plan)


def test_a_function_that_a_statement_uses_stays(world: World) -> None:
    more = PYTHON + "\n@function\ndef twice(x: int) -> int:\n    return 2 * x\n"
    world.apply(SQL, more)
    text = "CREATE STREAM own AS SELECT twice(id) AS id FROM s;"
    world.apply(text, more, Origin.STATEMENT)
    with pytest.raises(MainstemError) as caught:
        world.plan(SQL, PYTHON)
    assert (caught.value.code, caught.value.params["name"]) == ("HAS_DEPENDENTS", "twice()")
    with pytest.raises(MainstemError) as caught:
        world.plan(SQL, more.replace("(x: int)", "(x: int, y: int)"))
    assert caught.value.code == "FUNCTION_ARGUMENTS"
