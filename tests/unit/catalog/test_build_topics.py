"""What a plan does with topics: whose they are, their partitions, patterns of them."""

import pytest
from tests.unit.catalog.world import (
    ALL,
    CLICKS,
    HOME,
    LATEST,
    PEOPLE,
    World,
    failure,
    filled,
    steps,
)

from mainstem.catalog.build import drop_plan
from mainstem.catalog.plan import CreateObject
from mainstem.errors import MainstemError


@pytest.fixture
def world():
    return filled()


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
