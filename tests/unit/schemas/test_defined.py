"""The schemas of definitions against a registry: judged in a plan, registered by an apply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mainstem.catalog.apply import apply_plan
from mainstem.catalog.entry import Entry
from mainstem.catalog.explain import explain
from mainstem.catalog.plan import CreateObject, Plan
from mainstem.definitions.model import Create, Definition
from mainstem.definitions.parse import parse_one
from mainstem.definitions.resolve import resolve
from mainstem.errors import MainstemError
from mainstem.schemas.defined import DefinedSchemas
from mainstem.schemas.external import ExternalRegistry
from mainstem.schemas.known import own_schema
from mainstem.schemas.model import Schema, SchemaType
from mainstem.schemas.registry import Registry
from mainstem.testing.schemas_topic import MemoryTopic
from mainstem.vocabulary import Column


def defined(sql: str) -> Definition:
    statement = parse_one(sql, "pipeline/o.sql")
    assert isinstance(statement, Create)
    return statement.definition


def orders(body: str = "id INT,\n  amount DOUBLE", format: str = "avro") -> Definition:
    return defined(f"CREATE STREAM orders (\n  {body}\n) WITH (format = '{format}')")


def record(*fields: dict[str, Any], name: str = "shop.Order") -> Schema:
    return Schema(
        SchemaType.AVRO, json.dumps({"type": "record", "name": name, "fields": list(fields)})
    )


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


@pytest.fixture
def registry() -> Registry:
    return MemoryTopic().registry()


@pytest.fixture
def schemas(registry: Registry) -> DefinedSchemas:
    return DefinedSchemas(registry)


@pytest.mark.parametrize("format", ["avro", "json_schema", "protobuf"])
def test_a_new_object_brings_a_new_subject(
    schemas: DefinedSchemas, registry: Registry, format: str
) -> None:
    definition = orders(format=format)
    [step] = schemas.judge(definition, None)
    assert (step.subject, step.level, step.version) == ("orders-value", "BACKWARD", None)
    schemas.register(definition, "orders-value")
    assert registry.latest("orders-value").schema == own_schema(definition)
    assert schemas.judge(definition, None) == (), "it is registered"


@pytest.mark.parametrize("format", ["avro", "json_schema", "protobuf"])
def test_a_compatible_change_is_told_in_fields(schemas: DefinedSchemas, format: str) -> None:
    before = orders(format=format)
    schemas.register(before, "orders-value")
    [step] = schemas.judge(orders("id INT,\n  amount DOUBLE,\n  note STRING", format), before)
    assert (step.version, step.breaks) == (1, ())
    assert any(line.startswith("+") and "note" in line for line in step.changes)


def test_an_incompatible_change_is_told_at_its_column_and_not_applied(
    schemas: DefinedSchemas,
) -> None:
    before = orders()
    schemas.register(before, "orders-value")
    changed = orders("id INT,\n  amount STRING")
    [step] = schemas.judge(changed, before)
    [found] = step.breaks
    assert str(found.location) == "pipeline/o.sql:3:3"
    assert found.problem.startswith("version 1, BACKWARD: orders.amount")
    plan = Plan(1, (CreateObject(Entry(changed, "a.b.c"), None, 0),), schemas=(step,))
    text = explain(plan)
    assert "schema orders-value: follows version 1 (BACKWARD)" in text
    assert "pipeline/o.sql:3:3: BREAKS: version 1, BACKWARD: orders.amount" in text
    assert text.endswith("It cannot be applied: the schema breaks the rule of orders-value.")
    assert Plan.from_json(plan.to_json()) == plan
    with pytest.raises(MainstemError) as caught:
        apply_plan(plan, None, schemas)  # type: ignore[arg-type] - nothing is done with it
    assert (caught.value.code, caught.value.location) == ("SCHEMA_INCOMPATIBLE", found.location)


def test_the_rule_of_the_subject_decides(schemas: DefinedSchemas, registry: Registry) -> None:
    before, changed = orders(), orders("id INT")
    schemas.register(before, "orders-value")
    [step] = schemas.judge(changed, before)
    assert step.breaks == ()
    registry.set_config("orders-value", {"compatibilityLevel": "NONE"})
    [step] = schemas.judge(orders("id STRING"), before)
    assert (step.level, step.breaks) == ("NONE", ())


def test_back_to_an_earlier_version_is_no_change(
    schemas: DefinedSchemas, registry: Registry
) -> None:
    registry.set_config("orders-value", {"compatibilityLevel": "FORWARD"})
    first, second = orders("id INT"), orders()
    schemas.register(first, "orders-value")
    schemas.register(second, "orders-value")
    assert schemas.judge(first, second) == ()


def test_who_only_reads_registers_nothing_but_has_to_fit(
    schemas: DefinedSchemas, registry: Registry
) -> None:
    registry.register("orders-value", record(field("id", "int"), field("amount", "double")))
    assert schemas.judge(orders("id BIGINT"), None) == ()
    [step] = schemas.judge(orders("id BIGINT,\n  amount INT"), None)
    [found] = step.breaks
    assert (str(found.location), "no int" in found.problem) == ("pipeline/o.sql:3:3", True)


def test_the_place_of_a_column_in_a_query(schemas: DefinedSchemas) -> None:
    sql = "CREATE TABLE t WITH (format = 'avro') AS\nSELECT id, count(*) AS n FROM s GROUP BY id"
    before = resolve(defined(sql), (Column("id", "int"), Column("n", "bigint")))
    schemas.register(before, "t-value")
    changed = resolve(defined(sql), (Column("id", "int"), Column("n", "string")))
    [step] = schemas.judge(changed, before)
    assert str(step.breaks[0].location) == "pipeline/o.sql:2:24"


def test_keys_have_schemas_too(schemas: DefinedSchemas, registry: Registry) -> None:
    sql = "CREATE STREAM o (id {}, n INT) WITH (key = 'id', key_format = 'avro', format = 'avro')"
    before = defined(sql.format("INT"))
    steps = schemas.judge(before, None)
    assert [(step.name, step.subject) for step in steps] == [("o", "o-value"), ("o", "o-key")]
    for step in steps:
        schemas.register(before, step.subject)
    assert registry.versions("o-key") == registry.versions("o-value") == [1]
    broken = schemas.judge(defined(sql.format("STRING")), before)
    assert [str(step.breaks[0].location) for step in broken] == ["pipeline/o.sql:1:18"] * 2


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE STREAM a (id INT)",
        "CREATE STREAM a (id INT) WITH (format = 'csv')",
        "CREATE STREAM a FROM TOPICS 'a.*' (id INT) WITH (format = 'avro')",
        "CREATE STREAM a WITH (format = 'avro')",
    ],
)
def test_not_all_have_a_schema(schemas: DefinedSchemas, sql: str) -> None:
    assert schemas.judge(defined(sql), None) == ()


def test_a_registry_that_does_not_answer_is_said() -> None:
    away = DefinedSchemas(ExternalRegistry("http://127.0.0.1:1", timeout=1))
    for ask in (
        lambda: away.judge(orders(), None),
        lambda: away.columns(defined("CREATE STREAM a WITH (format = 'avro')"), (), widen=True),
    ):
        with pytest.raises(MainstemError) as caught:
            ask()
        assert caught.value.code == "REGISTRY_UNREACHABLE"


# -- columns from the registry

FOLLOWING = defined("CREATE STREAM orders WITH (format = 'avro')")


def test_columns_come_in_the_order_of_the_versions(
    schemas: DefinedSchemas, registry: Registry
) -> None:
    registry.set_config(None, {"compatibilityLevel": "NONE"})
    odd = field("either", ["int", "string"])
    inner = {"type": "record", "name": "In", "fields": [field("a", "int")]}
    registry.register("orders-value", record(field("id", "int"), field("gone", "string")))
    registry.register(
        "orders-value",
        record(field("in", inner), field("_key", "int"), odd, field("id", "long")),
    )
    found = schemas.columns(FOLLOWING, (), widen=True)
    assert [(c.name, c.type) for c in found] == [
        ("id", "bigint"), ("gone", "string"), ("in", "struct<a:int>"),
    ]  # fmt: skip
    known = (Column("id", "int"), Column("mine", "date"))
    kept = schemas.columns(FOLLOWING, known, widen=False)
    assert (kept[:2], [c.name for c in kept[2:]]) == (known, ["gone", "in"])
    assert schemas.columns(FOLLOWING, known, widen=True)[0] == Column("id", "bigint")


def test_json_schemas_have_columns_too(schemas: DefinedSchemas, registry: Registry) -> None:
    properties = {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}
    text = json.dumps({"type": "object", "properties": properties})
    registry.register("orders-value", Schema(SchemaType.JSON, text))
    stream = defined("CREATE STREAM orders WITH (format = 'json_schema')")
    assert schemas.columns(stream, (), widen=True) == (
        Column("id", "bigint"), Column("tags", "array<string>"),
    )  # fmt: skip
    with pytest.raises(MainstemError) as caught:  # it is of the other type
        schemas.columns(FOLLOWING, (), widen=True)
    assert caught.value.code == "SCHEMA_NOT_DERIVED"


def test_a_subject_that_is_not_there(schemas: DefinedSchemas, registry: Registry) -> None:
    with pytest.raises(MainstemError) as caught:
        schemas.columns(FOLLOWING, (), widen=True)
    assert (caught.value.code, caught.value.location) == ("SUBJECT_UNKNOWN", FOLLOWING.location)
    known = (Column("id", "int"),)
    assert schemas.columns(FOLLOWING, known, widen=True) == known, "it was there once"


def test_records_of_other_names_are_not_looked_at(
    schemas: DefinedSchemas, registry: Registry
) -> None:
    registry.set_config(None, {"compatibilityLevel": "NONE"})
    registry.register("o-value", record(field("id", "int"), name="shop.Placed"))
    registry.register("o-value", record(field("id", "string"), name="shop.Paid"))
    options = "topic = 'o', format = 'avro', record = 'shop.Placed'"
    assert schemas.judge(defined(f"CREATE STREAM a (id INT) WITH ({options})"), None) == ()
    stream = defined(f"CREATE STREAM a WITH ({options})")
    assert schemas.columns(stream, (), widen=True) == (Column("id", "int"),)


def test_a_message_has_columns_too(schemas: DefinedSchemas, registry: Registry) -> None:
    text = 'syntax = "proto3"; message Order { int32 id = 1; repeated string tags = 2; }'
    registry.register("orders-value", Schema(SchemaType.PROTOBUF, text))
    stream = defined("CREATE STREAM orders WITH (format = 'protobuf')")
    found = schemas.columns(stream, (), widen=True)
    assert [(c.name, c.type) for c in found] == [("id", "int"), ("tags", "array<string>")]
