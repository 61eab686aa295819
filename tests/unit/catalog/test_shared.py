"""Streams that have the records of their own names in one topic."""

from __future__ import annotations

import pytest
from tests.unit.catalog.world import World

from mainstem.catalog.plan import CreateObject, DropObject
from mainstem.errors import MainstemError

OPTIONS = "topic = 'events', format = 'avro'"
A = f"CREATE STREAM a (id INT, x INT) WITH ({OPTIONS}, record = 'shop.A');"
B = f"CREATE STREAM b (id INT, y INT) WITH ({OPTIONS}, record = 'shop.B');"
C = f"CREATE STREAM c WITH ({OPTIONS}, record = 'shop.C') AS SELECT id, x FROM a;"
D = f"CREATE STREAM d WITH ({OPTIONS}, record = 'shop.D') AS SELECT id FROM a WHERE x > 1;"


def test_several_names_share_a_topic_and_the_last_one_takes_it_along() -> None:
    world = World()
    assert [step.step for step in world.apply(A + B + C + D).steps] == ["create"] * 4
    assert all(entry.owns_topic for entry in world.catalog.entries.values())
    world.topics["events"] = 7
    [gone] = world.apply(A + B + C).steps
    assert isinstance(gone, DropObject)
    assert (gone.entry.owns_topic, gone.records_lost) == (False, 0)
    assert "events" in world.topics
    steps = world.apply("").steps
    assert [step.records_lost for step in steps if isinstance(step, DropObject)] == [7, 7, 7]


def test_one_more_beside_what_is_there() -> None:
    world = World()
    world.apply(A)
    world.topics["events"] = 7
    [made] = world.apply(A + B).steps
    assert isinstance(made, CreateObject)
    assert made.entry.owns_topic
    elsewhere = World(topics={"events": 7})
    assert [s.entry.owns_topic for s in elsewhere.apply(A + C).steps] == [False, False]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (A + B.replace("shop.B", "shop.A"), "TOPIC_TAKEN"),
        (A + "CREATE STREAM b (id INT) WITH (topic = 'events', format = 'avro');", "TOPIC_TAKEN"),
        (A + "CREATE STREAM b (id INT) WITH (topic = 'events');", "TOPIC_TAKEN"),
        (A + B.replace("record", "partitions = 3, record"), "INVALID_OPTION"),
        (A + B.replace("record", "retention = '1 day', record"), "INVALID_OPTION"),
    ],
)
def test_what_cannot_share(sql: str, code: str) -> None:
    with pytest.raises(MainstemError) as error:
        World().plan(sql)
    assert error.value.code == code


@pytest.mark.parametrize(
    "changed",
    [
        C.replace("shop.C", "shop.E"),
        C.replace("'avro'", "'json_schema'"),
        C.replace("SELECT id", "SELECT DISTINCT id"),
    ],
)
def test_nothing_that_shares_is_built_anew(changed: str) -> None:
    world = World()
    world.apply(A + B + C)
    with pytest.raises(MainstemError) as error:
        world.plan(A + B + changed)
    assert error.value.code == "TOPIC_SHARED"
    in_place = C.replace("FROM a", "FROM a WHERE x > 2")
    assert [step.step for step in world.plan(A + B + in_place).steps] == ["change"]


def test_another_record_of_a_declared_stream_is_read_at_once() -> None:
    world = World()
    world.apply(A + B + C)
    steps = world.plan(A.replace("shop.A", "shop.Z") + B + C).steps
    assert [(step.step, step.entry.name) for step in steps] == [("change", "a"), ("change", "c")]
