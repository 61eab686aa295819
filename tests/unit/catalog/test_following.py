"""Streams whose columns come from the registry: who gets a new one, and who does not notice."""

from dataclasses import dataclass, field

import pytest

from mainstem.catalog.build import build_plan, follow_plan
from mainstem.catalog.entry import Catalog, Entry, Origin
from mainstem.catalog.plan import ChangeInPlace
from mainstem.definitions.project import load_definitions
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

ID, PAGE, NOTE = Column("id", "int"), Column("page", "string"), Column("note", "string")
SOURCE = "CREATE STREAM s WITH (format = 'avro', key = 'id');"
ALL = "CREATE STREAM everything WITH (deduplicate = 'id') AS SELECT * FROM s;"
BEHIND = "CREATE TABLE latest WITH (key = 'id') AS SELECT * FROM everything;"
COPY = "CREATE TABLE copy AS SELECT * FROM latest;"
IDS = "CREATE STREAM ids AS SELECT id FROM s;"
COUNTS = "CREATE TABLE counts AS SELECT page, count(*) AS n FROM s GROUP BY page;"
PROJECT = SOURCE + ALL + BEHIND + COPY + IDS + COUNTS


@dataclass
class World:
    """A catalog, a log, an engine and a registry in memory, all topics with one subject."""

    subject: tuple[Column, ...] = (ID, PAGE)
    catalog: Catalog = field(default_factory=Catalog)
    topics: dict[str, int] = field(default_factory=dict)
    analysed: list[str] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)

    def analyse(self, definition, inputs):
        self.analysed.append(definition.name)
        if definition.query.aggregates:
            return (Column("page", "string"), Column("n", "bigint"))
        [source] = inputs
        read = definition.query.columns_read
        return tuple(c for c in source.columns if "*" in read or c.name in read)

    def records(self, topic):
        return self.topics.get(topic)

    def partitions(self, topic):
        return 2 if topic in self.topics else None

    def columns(self, definition, known, *, widen):
        if widen:
            known = [next((c for c in self.subject if c.name == k.name), k) for k in known]
        names = {column.name for column in known}
        return (*known, *(c for c in self.subject if c.name not in names))

    def judge(self, definition, before):
        self.judged.append(definition.name)
        return ()

    def ends(self, topic):
        return {0: self.topics[topic], 1: 0}

    def plan(self, sql):
        return build_plan(
            self.catalog,
            load_definitions([("p.sql", sql)]),
            analyser=self,
            facts=self,
            origin=Origin.PROJECT,
            drop_missing=True,
            schemas=self,
        )

    def apply(self, sql):
        self.take(self.plan(sql))

    def take(self, plan):
        changed = {step.entry.name: step.entry for step in plan.steps}
        for entry in changed.values():
            self.topics.setdefault(entry.definition.topic, 100)
        self.catalog = Catalog({**self.catalog.entries, **changed}, self.catalog.revision + 1)
        self.analysed.clear()
        self.judged.clear()

    def follow(self):
        return follow_plan(self.catalog, analyser=self, facts=self, schemas=self)

    def entry(self, name) -> Entry:
        return self.catalog.entries[name]


@pytest.fixture
def world():
    made = World()
    made.apply(PROJECT)
    return made


def steps(plan):
    return [(type(step).__name__, step.entry.name) for step in plan.steps]


def failure(call, *args):
    with pytest.raises(MainstemError) as caught:
        call(*args)
    return caught.value


def names(entry):
    return [column.name for column in entry.definition.columns]


def test_the_columns_are_those_of_the_registry(world):
    assert world.entry("s").definition.columns == (ID, PAGE)
    assert world.entry("s").definition.follows
    assert names(world.entry("copy")) == ["id", "page"]
    assert world.plan(PROJECT).steps == ()
    assert world.follow().steps == ()


def test_a_new_column_goes_to_all_that_take_all_and_to_nobody_else(world):
    world.subject = (ID, PAGE, NOTE)
    plan = world.follow()
    assert steps(plan) == [
        ("ChangeInPlace", name) for name in ("s", "everything", "latest", "copy")
    ]
    assert all(names(step.entry) == ["id", "page", "note"] for step in plan.steps)
    assert plan.steps[0].why == "columns changed (+note)"
    assert not {"ids", "counts"} & set(world.analysed)
    # one who asks for a plan in that moment gets the same, and nothing is left when it is done
    assert world.plan(PROJECT).digest == plan.digest
    world.take(plan)
    assert world.plan(PROJECT).steps == world.follow().steps == ()


def test_a_table_knows_from_where_on_records_may_have_the_column(world):
    world.topics["latest"] = 70
    world.subject = (ID, PAGE, NOTE)
    found = {step.entry.name: step.entry for step in world.follow().steps}
    assert found["latest"].grown == {"note": {0: 70, 1: 0}}
    assert found["everything"].grown == found["s"].grown == {}
    assert Entry.from_json(found["latest"].to_json()) == found["latest"]


def test_other_types_are_not_followed_but_planned(world):
    world.subject = (Column("id", "bigint"), PAGE, NOTE)
    [first, *_] = world.follow().steps
    assert first.entry.definition.columns == (ID, PAGE, NOTE)
    planned = {name: kind for kind, name in steps(world.plan(PROJECT))}
    assert planned["s"] == planned["ids"] == "ChangeInPlace"
    assert planned["everything"] == planned["latest"] == planned["copy"] == "Rebuild"


def test_a_stream_that_gets_its_columns_from_now_on_begins_anew_where_values_were_missed():
    world = World()
    world.apply(PROJECT.replace("s WITH", "s (id INT, page STRING) WITH"))
    world.subject = (ID, PAGE, NOTE)
    planned = {name: kind for kind, name in steps(world.plan(PROJECT))}
    assert planned["latest"] == "Rebuild"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE STREAM d AS SELECT DISTINCT * FROM s;",
        "CREATE STREAM d AS SELECT DISTINCT * FROM everything;",
        "CREATE TABLE d AS SELECT page, count(*) AS n FROM (SELECT * FROM s) GROUP BY page;",
    ],
)
def test_state_cannot_grow(world, sql):
    problem = failure(world.plan, PROJECT + sql)
    assert (problem.code, "Name the columns" in problem.hint) == ("NOT_SUPPORTED", True)


def test_key_and_event_time_must_be_among_the_columns():
    world = World()
    assert failure(world.plan, SOURCE.replace("'id'", "'ID2'")).code == "KEY_NOT_A_COLUMN"
    at = SOURCE.replace("key = 'id'", "event_time = 'page'")
    assert failure(world.plan, at).code == "INVALID_OPTION"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE STREAM s WITH (format = 'json');",
        "CREATE TABLE s WITH (format = 'avro', key = 'a');",
    ],
)
def test_columns_may_be_left_out_for_streams_with_a_schema_only(sql):
    assert failure(World().plan, sql).code == "SQL_SYNTAX"


def test_what_comes_or_changes_is_judged(world):
    world.plan(PROJECT.replace("SELECT id FROM s", "SELECT page FROM s"))
    assert world.judged == ["ids"]


def test_steps_are_changes_in_place_only(world):
    world.subject = (ID, PAGE, NOTE)
    assert {type(step) for step in world.follow().steps} == {ChangeInPlace}
