"""What a plan does for each kind of change."""

from dataclasses import replace

import pytest
from tests.unit.catalog.world import (
    ALL,
    CLICKS,
    HOME,
    LATEST,
    PEOPLE,
    VISITS,
    World,
    failure,
    filled,
    steps,
)

from mainstem.catalog.build import drop_plan
from mainstem.catalog.entry import Backfill, Origin
from mainstem.catalog.plan import ChangeInPlace, DropObject, Rebuild
from mainstem.errors import MainstemError


@pytest.fixture
def world():
    return filled()


def test_new_objects_are_created_behind_what_they_read():
    plan = World().plan(LATEST + HOME + VISITS + CLICKS)
    assert steps(plan)[0] == ("CreateObject", "clicks")
    assert {kind for kind, _ in steps(plan)} == {"CreateObject"}
    assert [step.entry.generation for step in plan.steps] == [1, 1, 1, 1]
    table = next(step for step in plan.steps if step.entry.name == "latest")
    assert (table.topic.name, table.topic.compacted) == ("latest", True)
    assert [c.name for c in table.entry.definition.columns] == ["user", "page", "at"]


@pytest.mark.parametrize(
    "sql",
    [
        ALL,
        ALL.replace(" ", "\n  ").replace("SELECT", "select -- x\n"),
        "/* first */" + ALL.upper().lower().replace("'at'", "'AT'"),
        PEOPLE + LATEST + VISITS + HOME + CLICKS,
    ],
)
def test_no_changes(world, sql):
    plan = world.plan(sql)
    assert plan.steps == ()
    assert world.analysed == []


CHANGES = [
    ("stateless query", HOME, HOME.replace("/home", "/start"), [("ChangeInPlace", "home")]),
    (
        "one more stream to read",
        HOME,
        HOME.replace(";", " UNION ALL SELECT user, at FROM clicks;"),
        [("Rebuild", "home")],
    ),
    (
        "from now on without duplicates",
        HOME,
        HOME.replace("home AS", "home WITH (deduplicate = 'user') AS"),
        [("Rebuild", "home")],
    ),
    (
        "a join instead",
        HOME,
        HOME.replace("WHERE", "JOIN clicks USING (user) WHERE"),
        [("Rebuild", "home")],
    ),
    (
        "aggregate",
        VISITS,
        VISITS.replace("GROUP", "WHERE user > '' GROUP"),
        [("Rebuild", "visits")],
    ),
    (
        "key",
        LATEST,
        LATEST.replace("'user'", "'user, page'"),
        [("Rebuild", "latest")],
    ),
    (
        "lane of a table",
        LATEST,
        LATEST.replace("key =", "latency = 'realtime', key ="),
        [("Rebuild", "latest")],
    ),
    (
        "lane of a stream",
        HOME,
        HOME.replace("home AS", "home WITH (latency = 'realtime') AS"),
        [("ChangeInPlace", "home")],
    ),
    (
        "options",
        LATEST,
        LATEST.replace("key =", "comment = 'x', trigger = '1 second', retention = '1 day', key ="),
        [("ChangeInPlace", "latest")],
    ),
    (
        "an index of a declared table",
        PEOPLE,
        PEOPLE + "CREATE INDEX ON people (name);",
        [("ChangeInPlace", "people")],
    ),
    (
        "an index of a flow's table",
        VISITS,
        "CREATE INDEX ON visits (n);" + VISITS,
        [("ChangeInPlace", "visits")],
    ),
    ("where to start", HOME, HOME.replace("home AS", "home WITH (start = 'latest') AS"), []),
    (
        "declared table",
        PEOPLE,
        PEOPLE.replace("STRING", "STRING, age INT"),
        [("Rebuild", "people")],
    ),
    (
        "declared table's key",
        PEOPLE,
        PEOPLE.replace(" PRIMARY KEY", "").replace("STRING", "STRING, PRIMARY KEY (name)"),
        [("Rebuild", "people")],
    ),
    (
        "a column more",
        CLICKS,
        CLICKS.replace("page STRING", "page STRING, agent STRING"),
        [
            ("ChangeInPlace", "clicks"),
            ("ChangeInPlace", "home"),
            ("Rebuild", "latest"),
            ("ChangeInPlace", "visits"),
        ],
    ),
    (
        "another type of a grouping column",
        CLICKS,
        CLICKS.replace("page STRING", "page INT"),
        [
            ("ChangeInPlace", "clicks"),
            ("ChangeInPlace", "home"),
            ("Rebuild", "latest"),
            ("Rebuild", "visits"),
        ],
    ),
    ("gone", PEOPLE, "", [("DropObject", "people")]),
    (
        "kind",
        HOME,
        "CREATE TABLE home WITH (key = 'user') AS SELECT user, at FROM clicks;",
        [("Rebuild", "home")],
    ),
    (
        "topic",
        HOME,
        HOME.replace("home AS", "home WITH (topic = 'other') AS"),
        [("DropObject", "home"), ("CreateObject", "home")],
    ),
    (
        "topic of an input",
        CLICKS,
        CLICKS.replace("event_time", "topic = 'web', event_time"),
        [
            ("DropObject", "clicks"),
            ("CreateObject", "clicks"),
            ("Rebuild", "home"),
            ("Rebuild", "latest"),
            ("Rebuild", "visits"),
        ],
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "wanted"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES]
)
def test_changes(world, old, new, wanted):
    assert old in ALL
    plan = world.plan(ALL.replace(old, new))
    assert sorted(steps(plan)) == sorted(wanted)
    names = [step.entry.name for step in plan.steps]
    if "clicks" in names:
        assert names[0] == "clicks"
    for step in plan.steps:
        if isinstance(step, Rebuild):
            assert step.entry.generation == step.before.generation + 1
            assert step.why
        if isinstance(step, ChangeInPlace):
            assert step.entry.generation == step.before.generation
            assert step.why
    world.apply(ALL.replace(old, new))
    assert world.plan(ALL.replace(old, new)).steps == ()


def test_only_what_changed_is_analysed(world):
    world.plan(ALL.replace(HOME, HOME.replace("/home", "/start")))
    assert world.analysed == ["home"]


def test_costs_are_the_records_to_read(world):
    world.topics.update(clicks=1234, people=7, latest=55)
    more = VISITS.replace("visits", "again") + HOME.replace(
        "home AS", "h2 WITH (start='latest') AS"
    )
    changed = ALL.replace(LATEST, "").replace("INT PRIMARY", "BIGINT PRIMARY") + more
    plan = world.plan(changed)
    costs = {
        step.entry.name: step.records_lost if isinstance(step, DropObject) else step.replay_records
        for step in plan.steps
    }
    assert costs == {"people": 7, "again": 1234, "h2": 0, "latest": 55}


def test_statements_leave_the_rest_alone_but_for_dependents(world):
    sql = CLICKS.replace("page STRING", "page STRING, agent STRING")
    plan = world.plan(sql, origin=Origin.STATEMENT, drop_missing=False)
    assert ("Rebuild", "latest") in steps(plan)
    origins = {step.entry.name: step.entry.origin for step in plan.steps}
    assert origins["clicks"] is Origin.STATEMENT
    assert origins["latest"] is Origin.PROJECT


def test_a_key_that_was_kept_from_the_input_is_no_change():
    world = World()
    world.apply("CREATE STREAM keyed (id STRING, n INT) WITH (key = 'id');")
    world.apply("CREATE STREAM kept AS SELECT id FROM keyed;", drop_missing=False)
    assert world.catalog.get("kept").definition.key == ("id",)
    plan = world.plan("CREATE STREAM unrelated (a STRING)", drop_missing=False)
    assert steps(plan) == [("CreateObject", "unrelated")]


def test_objects_of_statements_are_not_dropped_with_the_project():
    world = World()
    world.apply(CLICKS, origin=Origin.STATEMENT, drop_missing=False)
    assert world.plan(PEOPLE).steps[0].entry.name == "people"
    assert len(world.plan(PEOPLE).steps) == 1


def test_what_others_read_is_not_dropped(world):
    mine = HOME.replace("home", "mine")
    world.apply(mine, origin=Origin.STATEMENT, drop_missing=False)
    error = failure(world.plan, PEOPLE)
    assert (error.code, error.params["dependents"]) == ("HAS_DEPENDENTS", "mine")


def test_a_definition_that_reads_what_was_removed_is_told_so(world):
    error = failure(world.plan, ALL.replace(CLICKS, ""))
    assert (error.code, error.params["name"]) == ("UNKNOWN_RELATION", "clicks")


def test_drops_take_dependents_first(world):
    error = failure(drop_plan, world.catalog, "clicks", facts=world)
    assert (error.code, error.params["dependents"]) == ("HAS_DEPENDENTS", "home, latest, visits")
    plan = drop_plan(world.catalog, "Clicks", facts=world, cascade=True)
    assert steps(plan)[-1] == ("DropObject", "clicks")
    assert len(plan.steps) == 4
    assert failure(drop_plan, world.catalog, "x", facts=world).code == "UNKNOWN_RELATION"
    assert steps(world.plan(""))[-1] != ("DropObject", "home")


def test_a_name_that_comes_back_gets_a_generation_of_its_own(world):
    used = {world.catalog.get("home").generation}
    for sql in (ALL.replace(HOME, ""), ALL, ALL.replace(HOME, ""), ALL):
        world.apply(sql)
        entry = world.catalog.get("home")
        if entry is not None:
            assert entry.generation not in used
            used.add(entry.generation)


def test_paused_stays_paused(world):
    paused = replace(world.catalog.get("home"), paused=True)
    world.catalog = world.catalog.with_entry(paused)
    (step,) = world.plan(ALL.replace("/home", "/start")).steps
    assert step.entry.paused


def test_an_error_of_the_analysis_comes_through(world):
    def fail(definition, inputs):
        raise MainstemError("UNKNOWN_COLUMN", column="x", known="", suggestion="")

    world.analyse = fail
    assert failure(world.plan, ALL.replace("/home", "/start")).code == "UNKNOWN_COLUMN"


def test_a_rebuild_ends_a_backfill_and_leaves_its_number_alone(world):
    before = world.catalog.get("visits")
    begun = replace(before, backfill=Backfill(before.generation + 1, "beginning", "earliest"))
    world.catalog = world.catalog.with_entry(replace(begun, continues=before.generation))
    changed = VISITS.replace("count(*)", "count(at)")
    plan = world.plan(ALL.replace(VISITS, changed))
    [step] = [step for step in plan.steps if step.entry.name == "visits"]
    assert isinstance(step, Rebuild)
    assert step.entry.generation == before.generation + 2
    assert step.entry.served_generation == step.entry.generation
    assert step.entry.backfill is None


def test_indexes_are_planned_and_leave_flows_alone(world):
    before = world.catalog.entries["visits"]
    plan = world.apply(ALL + "CREATE INDEX by_n ON visits (n);")
    assert plan.steps[0].why == "indexes changed (+by_n)"
    assert world.catalog.entries["visits"].fingerprint == before.fingerprint
    assert world.plan(ALL + "create index by_n on VISITS ( n );").steps == ()
    changed = world.plan(ALL + "CREATE INDEX by_n ON visits (page, n);")
    assert changed.steps[0].why == "indexes changed (~by_n)"
    assert changed.digest != plan.digest
    assert world.plan(ALL).steps[0].why == "indexes changed (-by_n)"
    error = failure(world.plan, ALL + "CREATE INDEX ON visits (m);")
    assert (error.code, error.location.line) == ("UNKNOWN_COLUMN", 1)
