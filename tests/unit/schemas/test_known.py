"""Schemas are asked for once, and registered under the subject of their topic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mainstem.catalog.backfill import topic_beside
from mainstem.definitions.model import Definition, Format, Kind, SubjectStrategy
from mainstem.errors import MainstemError
from mainstem.schemas.avro_read import NotReadable
from mainstem.schemas.known import KnownSchemas, subject_of
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.testing.registry import MemoryRegistry
from mainstem.vocabulary import Column, SourceLocation


def orders(*columns: str, topic: str = "shop.orders") -> Definition:
    here = SourceLocation("x.sql", 1, 1)
    made = tuple(Column(name, "int") for name in columns)
    return Definition("orders", Kind.TABLE, topic, here, "", made, format=Format.AVRO)


def test_a_backfill_writes_what_its_table_has() -> None:
    assert subject_of(orders()) == "shop.orders-value"
    assert subject_of(orders(topic=topic_beside("shop.orders", 7))) == "shop.orders-value"


@pytest.mark.parametrize(
    ("strategy", "record", "subject"),
    [
        ("topic_name", "com.shop.Order", "shop.orders-value"),
        ("record_name", "com.shop.Order", "com.shop.Order"),
        ("topic_record_name", "com.shop.Order", "shop.orders-com.shop.Order"),
        ("record_name", None, "orders"),
        ("topic_record_name", None, "shop.orders-orders"),
    ],
)
def test_subjects_by_strategy(strategy: str, record: str | None, subject: str) -> None:
    changed = {"subject_strategy": SubjectStrategy(strategy), "record": record}
    assert subject_of(replace(orders("a"), **changed)) == subject
    registry = MemoryRegistry()
    known = KnownSchemas(registry)
    id = known.id_for(replace(orders("a"), **changed))
    assert registry.latest(subject).id == id
    assert known.names(id) == {record or "orders": ()}
    assert known.ids_of(replace(orders("a"), **changed)) == [id]


def test_the_versions_of_a_topic() -> None:
    registry = MemoryRegistry()
    known = KnownSchemas(registry)
    assert known.ids_of(orders()) == []
    first, second = known.id_for(orders("a")), known.id_for(orders("a", "b"))
    assert first != second
    assert known.id_for(orders("a")) == first
    assert known.ids_of(orders()) == [first, second]
    assert registry.versions("shop.orders-value") == [1, 2]


def test_versions_of_a_registry_that_is_away() -> None:
    class Registry(MemoryRegistry):
        away = True

        def versions(self, subject: str) -> list[int]:
            if self.away:
                raise MainstemError("REGISTRY_UNREACHABLE", url="http://x", problem="no route")
            return super().versions(subject)

    registry = Registry()
    known = KnownSchemas(registry)
    assert known.ids_of(orders()) == []  # a record says more, and then it is asked about
    registry.away = False
    id = known.id_for(orders("a"))
    assert known.ids_of(orders()) == [id]
    registry.away = True
    assert known.ids_of(orders()) == [id]


def test_an_id_is_asked_for_until_it_is_known() -> None:
    asked = []

    class Registry(MemoryRegistry):
        def by_id(self, id: int) -> Schema:
            asked.append(id)
            return super().by_id(id)

    registry = Registry()
    known = KnownSchemas(registry)
    for _ in range(2):
        with pytest.raises(NotReadable, match="no schema 1"):
            known.avro(1)
    known.id_for(orders("a"))
    assert known.avro(1) is known.avro(1)
    assert asked == [1, 1, 1]


def test_a_schema_that_cannot_be_used_says_why() -> None:
    registry = MemoryRegistry()
    registry.register("x", Schema(SchemaType.AVRO, '{"type": "record"}'))
    gone = Schema(SchemaType.AVRO, '"Gone"', (Reference("Gone", "gone", 1),))
    registry.register("y", gone)
    with pytest.raises(NotReadable, match="schema 2 cannot be used: the reference Gone leads"):
        KnownSchemas(registry).avro(2)
    with pytest.raises(NotReadable, match="schema 1 cannot be used"):
        KnownSchemas(registry).avro(1)


def test_other_errors_of_a_registry_are_not_about_the_schema() -> None:
    class Away(MemoryRegistry):
        def versions(self, subject: str) -> list[int]:
            raise MainstemError("REGISTRY_FAILED", url="http://x", problem=subject)

    with pytest.raises(MainstemError):
        KnownSchemas(Away()).ids_of(orders())
