"""The catalog topic on a real broker, and the acts and facts of plans."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mainstem.catalog.entry import Entry
from mainstem.catalog.plan import TopicNeed
from mainstem.config import KafkaSettings
from mainstem.definitions.model import Definition, Kind
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.catalog_store import CatalogStore, LogExecutor, LogFactsReader
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer
from mainstem.vocabulary import Column, SourceLocation

pytestmark = pytest.mark.kafka


def entry(name: str, generation: int = 1) -> Entry:
    definition = Definition(
        name=name,
        kind=Kind.STREAM,
        topic=name,
        location=SourceLocation("a.sql", 1, 1),
        text=f"CREATE STREAM {name} (a INT)",
        columns=(Column("a", "int"),),
    )
    return Entry(definition, fingerprint="f", generation=generation)


@pytest.fixture
def stores(
    connection: Connection, admin: Admin, prefix: str
) -> Iterator[tuple[CatalogStore, CatalogStore]]:
    pair = tuple(CatalogStore(connection, topic=f"{prefix}.catalog") for _ in range(2))
    for store in pair:
        store.start()
    yield pair  # type: ignore[misc]
    for store in pair:
        store.close()
    admin.delete_topic(f"{prefix}.catalog")


def test_entries_come_back_and_listeners_know(
    stores: tuple[CatalogStore, CatalogStore], connection: Connection, prefix: str
) -> None:
    store, other = stores
    seen: list[list[str]] = []
    store.on_change(lambda: seen.append(sorted(store.catalog().entries)))
    revision = store.replace({"a": entry("A"), "b": entry("B")}, store.catalog().revision)
    assert store.catalog().revision >= revision
    assert store.catalog().get("a") == entry("A")
    assert seen
    assert all(names == ["a", "b"] for names in seen)
    revision = store.replace({"a": None, "b": entry("B", 2)}, revision)
    third = CatalogStore(connection, topic=f"{prefix}.catalog")
    third.start()
    third.close()
    assert third.catalog().entries == {"b": entry("B", 2)}
    other._state.wait_for(revision)
    assert other.catalog().entries == third.catalog().entries


def test_the_slower_of_two_applies_is_refused(stores: tuple[CatalogStore, CatalogStore]) -> None:
    one, two = stores
    planned = two.catalog().revision
    one.replace({"a": entry("A")}, one.catalog().revision)
    with pytest.raises(MainstemError) as caught:
        two.replace({"a": entry("A", 2)}, planned)
    assert caught.value.code in ("STALE_PLAN", "CONCURRENT_APPLY")


@pytest.fixture
def executor(admin: Admin, stores: tuple[CatalogStore, CatalogStore]) -> LogExecutor:
    return LogExecutor(admin, stores[0], KafkaSettings(partitions=3))


@pytest.mark.parametrize(
    ("compacted", "retention", "policy", "milliseconds"),
    [
        (False, None, "delete", "604800000"),
        (False, "1 hour", "delete", "3600000"),
        (False, "forever", "delete", "-1"),
        (True, None, "compact,delete", "-1"),
        (True, "forever", "compact,delete", "-1"),
        (True, "2 days", "compact,delete", "172800000"),
    ],
)
def test_topics_as_they_are_needed(
    executor: LogExecutor,
    admin: Admin,
    prefix: str,
    compacted: bool,
    retention: str | None,
    policy: str,
    milliseconds: str,
) -> None:
    need = TopicNeed(f"{prefix}.t", None, compacted, retention)
    executor.create_topic(need)
    executor.create_topic(need)
    info = admin.topic(need.name)
    assert info is not None
    assert info.partitions == 3
    assert (info.config["cleanup.policy"], info.config["retention.ms"]) == (policy, milliseconds)
    executor.delete_topic(need.name)
    executor.delete_topic(need.name)
    assert admin.topic(need.name) is None


def test_altering_a_topic(executor: LogExecutor, admin: Admin, prefix: str) -> None:
    name = f"{prefix}.t"
    executor.create_topic(TopicNeed(name, 1, False, "1 hour"))
    executor.alter_topic(TopicNeed(name, 2, False, None))
    info = admin.topic(name)
    assert info is not None
    assert info.config["retention.ms"] == "604800000"
    assert info.partitions == 2
    executor.delete_topic(name)


def test_facts(admin: Admin, connection: Connection, executor: LogExecutor, prefix: str) -> None:
    facts = LogFactsReader(admin)
    name = f"{prefix}.t"
    assert facts.records(name) is None
    assert facts.partitions(name) is None
    executor.create_topic(TopicNeed(name, 2, False, None))
    producer = Producer(connection)
    producer.send(name, [Outgoing(b"%d" % n, b"x") for n in range(10)])
    producer.close()
    assert facts.records(name) == 10
    assert facts.partitions(name) == 2
    executor.delete_topic(name)
