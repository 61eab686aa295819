"""Topics, offsets and groups on a real broker."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping

import pytest

from mainstem.errors import MainstemError
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer
from mainstem.testing.ports import free_port
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.kafka
Topic = Callable[..., str]


def _config(admin: Admin, topic: str) -> Mapping[str, str]:
    info = admin.topic(topic)
    assert info is not None
    return info.config


def test_life_of_a_topic(admin: Admin, prefix: str) -> None:
    spec = TopicSpec(f"{prefix}.life", 3, 1, {"retention.ms": "60000"})
    assert admin.topic(spec.name) is None
    assert admin.ensure_topic(spec) is True
    assert admin.ensure_topic(spec) is False
    info = admin.topic(spec.name)
    assert info is not None
    assert (info.partitions, info.replication_factor) == (3, 1)
    assert info.config["retention.ms"] == "60000"
    assert info.config["cleanup.policy"] == "delete"

    admin.alter_topic(spec.name, {"retention.ms": "120000"})
    altered = admin.topic(spec.name)
    assert altered is not None
    assert altered.config["retention.ms"] == "120000"
    assert spec.name in [t.name for t in admin.topics()]
    admin.alter_topic(spec.name, {"retention.ms": None})
    admin.add_partitions(spec.name, 5)
    admin.add_partitions(spec.name, 2)
    altered = admin.topic(spec.name)
    assert altered is not None
    assert altered.partitions == 5
    eventually(lambda: _config(admin, spec.name)["retention.ms"] == "604800000")

    admin.delete_topic(spec.name)
    admin.delete_topic(spec.name)
    assert admin.topic(spec.name) is None
    assert admin.ensure_topic(spec) is True
    admin.delete_topic(spec.name)


def test_ids_of_topics_are_fit_to_name_files_by(admin: Admin, prefix: str) -> None:
    """Of so many ids some would have a slash or a plus."""
    names = [f"{prefix}.id-{n}" for n in range(15)]
    for name in names:
        admin.ensure_topic(TopicSpec(name, 1, 1, {}))
    ids = {admin.topic_id(name) for name in names}
    assert len(ids) == len(names)
    assert all(re.fullmatch("[A-Za-z0-9_-]{22}", found) for found in ids)
    admin.delete_topics(names)


def test_names_with_an_underscore_are_internal(admin: Admin, prefix: str) -> None:
    name = f"_{prefix}"
    admin.ensure_topic(TopicSpec(name))
    try:
        assert name not in [t.name for t in admin.topics()]
        assert name in [t.name for t in admin.topics(internal=True)]
    finally:
        admin.delete_topic(name)


def test_offsets_begin_end_and_time(admin: Admin, connection: Connection, topic: Topic) -> None:
    name = topic(partitions=2)
    producer = Producer(connection)
    try:
        records = [Outgoing(None, b"%d" % n, partition=0, timestamp=1000 + n) for n in range(10)]
        assert producer.send(name, records) == {0: 9}
    finally:
        producer.close()
    assert admin.begin_offsets(name) == {0: 0, 1: 0}
    assert admin.end_offsets(name) == {0: 10, 1: 0}
    assert admin.end_offsets(name, committed=False) == {0: 10, 1: 0}
    assert admin.offsets_at(name, 1004) == {0: 4, 1: 0}
    assert admin.offsets_at(name, 9999) == {0: 10, 1: 0}


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_truncate(admin: Admin, connection: Connection, topic: Topic, policy: str) -> None:
    name = topic(partitions=2, cleanup_policy=policy)
    producer = Producer(connection)
    try:
        producer.send(name, [Outgoing(b"%d" % n, b"x") for n in range(100)])
    finally:
        producer.close()
    before = admin.topic(name)
    admin.truncate(name)
    assert admin.begin_offsets(name) == admin.end_offsets(name)
    assert sum(admin.end_offsets(name).values()) == 100
    assert admin.topic(name) == before


def test_groups(admin: Admin, topic: Topic, prefix: str) -> None:
    name = topic(partitions=2)
    group = f"{prefix}.group"
    assert admin.group_offsets(group, name) == {}
    admin.commit_offsets(group, {name: {0: 5, 1: 7}})
    admin.commit_offsets(group, {name: {1: 8}})
    assert admin.group_offsets(group, name) == {0: 5, 1: 8}
    assert group in admin.groups()
    admin.delete_group(group)
    admin.delete_group(group)
    assert group not in admin.groups()


def test_unknown_topic_names_the_nearest(admin: Admin, topic: Topic) -> None:
    name = topic("clicks")
    with pytest.raises(MainstemError) as caught:
        admin.end_offsets(name + "s")
    assert caught.value.code == "UNKNOWN_TOPIC"
    assert name in caught.value.hint
    with pytest.raises(MainstemError) as caught:
        admin.alter_topic(name + "s", {"retention.ms": "1000"})
    assert caught.value.code == "UNKNOWN_TOPIC"


def test_a_setting_that_kafka_refuses(admin: Admin, topic: Topic) -> None:
    with pytest.raises(MainstemError) as caught:
        admin.alter_topic(topic(), {"retention.ms": "soon"})
    assert caught.value.code == "LOG_FAILED"


def test_a_dead_broker_is_said_in_time_and_not_to_stderr(
    capfd: pytest.CaptureFixture[str],
) -> None:
    nowhere = Connection(f"127.0.0.1:{free_port()}")
    admin = Admin(nowhere, timeout=1.0)
    producer = Producer(nowhere)
    acts: list[Callable[[], object]] = [
        lambda: admin.ping(timeout=1.0),
        admin.topics,
        lambda: admin.ensure_topic(TopicSpec("t")),
        lambda: admin.delete_topic("t"),
        lambda: admin.commit_offsets("g", {"t": {0: 1}}),
        lambda: producer.send("t", [Outgoing(None, b"x")], timeout=1.0),
    ]
    try:
        for act in acts:
            began = time.monotonic()
            with pytest.raises(MainstemError) as caught:
                act()
            assert caught.value.code == "LOG_UNREACHABLE"
            assert time.monotonic() - began < 20
    finally:
        admin.close()
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
