"""What a plan does for each kind of change."""

from dataclasses import dataclass, field, replace

import pytest

from mainstem.catalog.build import build_plan, drop_plan
from mainstem.catalog.entry import Backfill, Catalog, Origin
from mainstem.catalog.plan import ChangeInPlace, CreateObject, DropObject, Plan, Rebuild
from mainstem.definitions.parse import parse_one
from mainstem.definitions.project import load_definitions
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

CLICKS = "CREATE STREAM clicks (user STRING, page STRING, at TIMESTAMP) WITH (event_time = 'at');"
HOME = "CREATE STREAM home AS SELECT user, at FROM clicks WHERE page = '/home';"
VISITS = "CREATE TABLE visits AS SELECT page, count(*) AS n FROM clicks GROUP BY page;"
LATEST = "CREATE TABLE latest WITH (key = 'user') AS SELECT * FROM clicks;"
PEOPLE = "CREATE TABLE people (id INT PRIMARY KEY, name STRING);"
ALL = CLICKS + HOME + VISITS + LATEST + PEOPLE


@dataclass
class World:
    """A catalog, a log and an engine in memory."""

    catalog: Catalog = field(default_factory=Catalog)
    topics: dict[str, int] = field(default_factory=dict)
    partition_count: int = 4
    analysed: list[str] = field(default_factory=list)

    def analyse(self, definition, inputs):
        self.analysed.append(definition.name)
        if definition.query is None:
            return definition.columns
        known = {c.name: c for source in inputs for c in source.columns}
        found = []
        for name in parse_one(definition.query.text).query.columns_read:
            found += known.values() if name == "*" else [known[name]] if name in known else []
        if definition.query.aggregates:
            keys = [known.get(key, Column(key, "string")) for key in definition.key]
            return (*keys, Column("n", "bigint"))
        return tuple(dict.fromkeys(found))

    def records(self, topic):
        return self.topics.get(topic)

    def partitions(self, topic):
        return self.partition_count if topic in self.topics else None

    def matching(self, pattern):
        return [topic for topic in self.topics if pattern.matches(topic)]

    def plan(self, sql, origin=Origin.PROJECT, drop_missing=True) -> Plan:
        return build_plan(
            self.catalog,
            load_definitions([("p.sql", sql)]),
            analyser=self,
            facts=self,
            origin=origin,
            drop_missing=drop_missing,
        )

    def apply(self, sql, **more) -> Plan:
        plan = self.plan(sql, **more)
        for step in plan.steps:
            entries = dict(self.catalog.entries)
            name = step.entry.name.lower()
            if isinstance(step, DropObject):
                entries.pop(name)
                if step.entry.owns_topic:
                    self.topics.pop(step.entry.definition.topic, None)
            else:
                entries[name] = step.entry
                self.topics.setdefault(step.entry.definition.topic, 100)
            self.catalog = Catalog(entries, self.catalog.revision + 1)
        self.analysed.clear()
        return plan


def steps(plan):
    return [(type(step).__name__, step.entry.name) for step in plan.steps]


def failure(call, *args, **more):
    with pytest.raises(MainstemError) as caught:
        call(*args, **more)
    return caught.value


@pytest.fixture
def world():
    made = World()
    made.apply(ALL)
    return made


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


def test_two_objects_cannot_have_one_topic(world):
    error = failure(world.plan, ALL + "CREATE STREAM x (a INT) WITH (topic = 'clicks');")
    assert (error.code, error.params["topic"]) == ("TOPIC_TAKEN", "clicks")


def test_a_declared_object_takes_an_existing_topic_and_does_not_own_it():
    world = World(topics={"clicks": 5})
    (step,) = world.plan(CLICKS).steps
    assert isinstance(step, CreateObject)
    assert (step.topic, step.entry.owns_topic) == (None, False)
    world.apply(CLICKS)
    (drop,) = world.plan("").steps
    assert drop.records_lost == 0


def test_a_derived_object_needs_a_topic_of_its_own():
    world = World(topics={"home": 1})
    assert failure(world.plan, CLICKS + HOME).code == "TOPIC_MISMATCH"
    world = World(topics={"home": 0})  # left behind by an apply that was interrupted
    assert world.plan(CLICKS + HOME).steps[1].entry.owns_topic


@pytest.mark.parametrize(
    ("sql", "partitions", "answer"),
    [
        (CLICKS.replace("event_time", "partitions = 8, event_time"), 8, "ChangeInPlace"),
        (CLICKS.replace("event_time", "partitions = 2, event_time"), 2, "TOPIC_MISMATCH"),
        (LATEST.replace("key", "partitions = 8, key"), 8, "Rebuild"),
        (PEOPLE.replace(");", ") WITH (partitions = 8);"), 8, "TOPIC_MISMATCH"),
    ],
)
def test_partitions_can_only_grow(world, sql, partitions, answer):
    old = next(part for part in (CLICKS, LATEST, PEOPLE) if part[:18] == sql[:18])
    try:
        plan = world.plan(ALL.replace(old, sql))
    except MainstemError as error:
        assert error.code == answer
    else:
        (step,) = plan.steps
        assert type(step).__name__ == answer
        assert step.entry.definition.partitions == partitions


def test_a_foreign_topic_keeps_its_partitions():
    world = World(topics={"clicks": 5})
    sql = CLICKS.replace("event_time", "partitions = 8, event_time")
    assert failure(world.plan, sql).code == "TOPIC_MISMATCH"


def test_a_declared_stream_with_records_cannot_become_derived(world):
    sql = PEOPLE.replace(PEOPLE, "CREATE TABLE people AS SELECT count(*) AS n FROM clicks;")
    assert failure(world.plan, ALL.replace(PEOPLE, sql)).code == "TOPIC_MISMATCH"


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


CHAT = "CREATE STREAM chat FROM TOPICS '{city}.chat' (text STRING);"
LOUD = "CREATE STREAM loud AS SELECT city, text FROM chat WHERE length(text) > 10;"
ROME = "CREATE STREAM rome (text STRING) WITH (topic = 'rome.chat');"
OSLO = "CREATE STREAM oslo WITH (topic = 'oslo.chat') AS SELECT text FROM talk;"
TALK = "CREATE STREAM talk (text STRING);"
SAID = "CREATE TABLE said AS SELECT city, count(*) AS n FROM chat GROUP BY city;"


def test_a_wildcard_stream_has_no_topic_of_its_own():
    world = World(topics={"nyc.chat": 7, "nyc.loot": 5})
    plan = world.apply(CHAT + LOUD + ROME)
    chat = next(step for step in plan.steps if step.entry.name == "chat")
    assert (chat.topic, chat.entry.owns_topic) == (None, False)
    loud = next(step for step in plan.steps if step.entry.name == "loud")
    assert loud.replay_records == 7
    assert world.plan(CHAT + LOUD + ROME).steps == ()
    [drop, *_] = drop_plan(world.catalog, "chat", facts=world, cascade=True).steps[::-1]
    assert (drop.entry.name, drop.records_lost, drop.entry.owns_topic) == ("chat", 0, False)


def test_another_pattern_begins_anew():
    world = World()
    world.apply(CHAT + SAID)
    plan = world.plan(CHAT.replace("city}.", "city}.*.") + SAID)
    assert steps(plan) == [
        ("DropObject", "chat"), ("CreateObject", "chat"), ("Rebuild", "said"),
    ]  # fmt: skip


def test_readers_of_a_wildcard_begin_anew_with_a_topic_of_it():
    world = World()
    world.apply(CHAT + SAID + TALK + OSLO)
    changed = OSLO.replace("oslo.chat'", "oslo.chat', key = 'text'").replace("STREAM", "TABLE")
    plan = world.plan(CHAT + SAID + TALK + changed)
    assert steps(plan) == [("Rebuild", "oslo"), ("Rebuild", "said")]


def test_a_wildcard_that_reads_what_is_made_of_it_is_a_circle():
    back = LOUD.replace("loud AS", "loud WITH (topic = 'loud.chat') AS")
    error = failure(World().plan, CHAT + back)
    assert error.code == "CYCLE"
    assert {"chat", "loud"} <= set(error.params["cycle"].split(" -> "))
    world = World()
    world.apply(CHAT)
    assert failure(world.plan, back, drop_missing=False).code == "CYCLE"
    assert steps(World().plan(CHAT + LOUD)) == [("CreateObject", "chat"), ("CreateObject", "loud")]


def test_two_streams_cannot_have_the_same_pattern():
    error = failure(World().plan, CHAT + CHAT.replace("STREAM chat", "STREAM again"))
    assert error.code == "TOPIC_TAKEN"
    overlapping = CHAT.replace("STREAM chat", "STREAM again").replace("{city}", "*")
    assert len(World().plan(CHAT + overlapping + ROME).steps) == 3


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


# -- rules and tags

RULED = CLICKS.replace("page STRING", "page STRING NOT NULL, CHECK (user <> '') ON VIOLATION drop")


def test_new_rules_are_taken_over_in_place_and_nothing_is_rebuilt():
    world = World()
    world.apply(ALL)
    plan = world.apply(RULED + HOME + VISITS + LATEST + PEOPLE)
    assert steps(plan) == [
        ("ChangeInPlace", "clicks"),
        ("ChangeInPlace", "home"),
        ("ChangeInPlace", "visits"),
        ("ChangeInPlace", "latest"),
    ]
    assert plan.steps[0].why == "rules changed (+page_not_null +check)"
    assert plan.steps[1].why == "input changed"
    changed = RULED.replace("ON VIOLATION drop", "ON VIOLATION fail").replace(" NOT NULL", "")
    plan = world.apply(changed + HOME + VISITS + LATEST + PEOPLE)
    assert {type(step) for step in plan.steps} == {ChangeInPlace}
    assert plan.steps[0].why == "rules changed (-page_not_null ~check)"
    assert world.catalog.get("clicks").definition.rules[0].action == "fail"


@pytest.mark.parametrize(
    "same",
    [
        RULED.replace("CHECK (user <> '')", "CHECK (-- no empty names\n user\n <> '')"),
        RULED.replace("ON VIOLATION drop", "on violation DROP ROW"),
        RULED.replace("CHECK (user", "/* moved */\n  CHECK ( user"),
    ],
)
def test_layout_and_comments_of_a_rule_are_no_change(same):
    world = World()
    world.apply(RULED + VISITS)
    assert world.plan(same + VISITS).steps == ()


def test_a_tag_is_taken_over_in_place_and_its_readers_go_on():
    world = World()
    world.apply(ALL)
    tagged = CLICKS.replace("user STRING", "user STRING PII")
    plan = world.apply(tagged + HOME + VISITS + LATEST + PEOPLE)
    assert steps(plan) == [("ChangeInPlace", "clicks")]
    assert plan.steps[0].why == "PII tags changed (+user)"


def test_rules_are_looked_at_by_the_engine_when_they_change():
    world = World()
    world.apply(CLICKS)
    world.plan(RULED)
    assert world.analysed == ["clicks"]
