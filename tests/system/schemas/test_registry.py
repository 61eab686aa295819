"""The registry on a real broker: two that race, restarts, and a topic that another one wrote."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mainstem.errors import MainstemError
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing, Producer
from mainstem.schemas.model import Schema, SchemaType
from mainstem.schemas.registry import Registry
from mainstem.schemas.registry_rules import Wanted

pytestmark = pytest.mark.kafka
Open = Callable[[], Registry]


def record(*fields: str) -> Schema:
    members = [{"name": field, "type": "string", "default": ""} for field in fields]
    text = {"type": "record", "name": "R", "fields": members}
    return Schema(SchemaType.AVRO, json.dumps(text))


def test_two_that_race(open_registry: Open) -> None:
    """Each schema has one id and each id one schema, whoever was quicker."""
    registries = [open_registry(), open_registry()]
    start = threading.Barrier(len(registries))
    failures: list[BaseException] = []

    def work(registry: Registry, own: str) -> None:
        try:
            start.wait(120)
            for number in range(6):
                registry.register("shared", record("common", f"f{number}"))
                registry.register(own, record(own, f"f{number}"))
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=work, args=(registry, f"own_{index}"))
        for index, registry in enumerate(registries)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures, failures
    third = open_registry()
    everything = [
        kept.registered
        for subject in third.state.subjects()
        for kept in third.state.versions(subject)
    ]
    assert len(everything) == 18
    assert sorted(its.id for its in everything) == list(range(1, 19))
    assert third.versions("shared") == [1, 2, 3, 4, 5, 6]
    for its in everything:
        assert all(registry.by_id(its.id) == its.schema for registry in registries)


def test_what_one_gives_the_other_knows(open_registry: Open) -> None:
    one, two = open_registry(), open_registry()
    for number in range(3):
        id = one.register("a", record(f"f{number}")).id
        assert two.by_id(id) == record(f"f{number}")
    two.set_config("a", {"compatibilityLevel": "NONE"})
    assert one.register("a", Schema(SchemaType.AVRO, '"int"')).version == 4


def test_a_restart(open_registry: Open) -> None:
    before = open_registry()
    before.register("a", record("x"))
    before.register("b", record("y"))
    contract = (("metadata", '{"properties": {"owner": "me"}}'),)
    before.register_wanted("c", Wanted(record("z"), contract))
    before.delete_subject("b")
    before.set_config("a", {"compatibilityLevel": "FULL"})
    before.delete_subject("c")
    before.delete_subject("c", permanent=True)
    before.close()
    after = open_registry()
    assert after.latest("a").id == 1
    assert after.by_id(2) == record("y")
    assert after.state.subjects(deleted=True) == ["a", "b"]
    assert after.state.config("a") == {"compatibilityLevel": "FULL"}
    with pytest.raises(MainstemError):
        after.by_id(3)
    assert after.register("d", record("w")).id == 4, "an id is never given again"


def test_taking_over(connection: Connection, topic: str, open_registry: Open) -> None:
    """What is not understood stays in the topic, and the rest is served."""
    admin = Admin(connection)
    admin.ensure_topic(TopicSpec(topic, 1, 1, {"cleanup.policy": "compact"}))
    written: list[tuple[bytes, bytes | None]] = [
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FORWARD"}'),
        (b'{"keytype":"NOOP","magic":0}', None),
        (_key("clicks-value", 1), _value(id=7, schema=record("x").text)),
        (_key("clicks-value", 2), _value(id=8, schema="{}", schemaType="JSON")),
        (_key("clicks-value", 2), _value(id=8, schema="{}", schemaType="JSON", deleted=True)),
        (_key("gone", 1), _value(id=9, schema='"int"')),
        (b'{"keytype":"DELETE_SUBJECT","subject":"gone","magic":0}', b'{"version":1}'),
        (_key("future", 1), _value(id=20, schema="?", schemaType="THRIFT")),
        (b'{"keytype":"TOMORROW","magic":0}', b"{}"),
        (_key("torn", 1), b'{"id":21,'),
        (b"\xff\xfe", b"\x00"),
    ]
    producer = Producer(connection)
    producer.send(topic, [Outgoing(key, value, partition=0) for key, value in written])
    producer.close()
    registry = open_registry()
    assert registry.state.subjects(deleted=True) == ["clicks-value", "gone"]
    assert registry.versions("clicks-value") == [1]
    assert registry.by_id(8) == Schema(SchemaType.JSON, "{}")
    assert registry.by_id(9) == Schema(SchemaType.AVRO, '"int"')
    assert registry.register("clicks-value", record("x", "y")).version == 3
    assert registry.latest("clicks-value").id == 21, "20 was that of a type that we do not know"
    end = admin.end_offsets(topic)
    admin.close()
    kept = [r for batch in read_range(connection, topic, {0: 0}, end) for r in batch]
    assert [(r.key, r.value) for r in kept][: len(written)] == written


def test_too_large_for_a_record(open_registry: Open) -> None:
    registry = open_registry()
    huge = Schema(SchemaType.JSON, json.dumps({"description": "x" * 600_000}))
    with pytest.raises(MainstemError) as raised:
        registry.register("a", huge)
    assert raised.value.code == "SCHEMA_TOO_LARGE"
    with pytest.raises(MainstemError) as raised:
        registry.register("a" * 2_000_000, record("x"))
    assert raised.value.code == "RECORD_TOO_LARGE"
    assert registry.register("a", record("x")).id == 1


def _key(subject: str, version: int) -> bytes:
    return b'{"keytype":"SCHEMA","subject":"%s","version":%d,"magic":1}' % (
        subject.encode(),
        version,
    )


def _value(**members: Any) -> bytes:
    return json.dumps({"deleted": False, **members}, separators=(",", ":")).encode()
