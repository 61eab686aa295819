"""The registry on a log in memory: ids, versions, deletions, modes, and what another one left."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mainstem.errors import MainstemError
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.schemas.registry import Registry
from mainstem.schemas.registry_rules import Mode, Wanted
from mainstem.schemas.registry_state import State
from mainstem.testing.schemas_topic import MemoryTopic


def avro(*fields: str, name: str = "Click", **defaults: Any) -> Schema:
    members = [
        {
            "name": field,
            "type": "string",
            **({"default": defaults[field]} if field in defaults else {}),
        }
        for field in fields
    ]
    return Schema(SchemaType.AVRO, json.dumps({"type": "record", "name": name, "fields": members}))


def proto(body: str) -> Schema:
    return Schema(SchemaType.PROTOBUF, f'syntax = "proto3";\nmessage M {{ {body} }}\n')


def json_schema(**members: Any) -> Schema:
    return Schema(SchemaType.JSON, json.dumps({"type": "object", **members}))


def fails(code: str, call: Callable[[], object]) -> MainstemError:
    with pytest.raises(MainstemError) as raised:
        call()
    assert raised.value.code == code, raised.value.message
    return raised.value


@pytest.fixture
def topic() -> MemoryTopic:
    return MemoryTopic()


@pytest.fixture
def registry(topic: MemoryTopic) -> Registry:
    return topic.registry()


# -- ids and versions


def test_ids_are_of_schemas_and_versions_of_subjects(registry: Registry) -> None:
    first = registry.register("a", avro("x"))
    assert (first.id, first.version) == (1, 1)
    assert registry.register("a", avro("x")) == first
    assert registry.register("b", avro("x")).id == 1
    second = registry.register("b", avro("x", "y", y=""))
    assert (second.id, second.version) == (2, 2)
    assert registry.by_id(2) == avro("x", "y", y="")
    assert registry.versions("b") == [1, 2]
    assert registry.latest("b") == second
    assert registry.version("b", 1).id == 1


def test_spelling_makes_no_other_schema(registry: Registry) -> None:
    first = registry.register("a", avro("x"))
    spaced = Schema(SchemaType.AVRO, json.dumps(json.loads(avro("x").text), indent=2))
    assert registry.register("a", spaced) == first
    other = registry.register("b", spaced)
    assert other.id == first.id
    assert other.schema == first.schema, "one id, one text"


def test_types_are_told_apart(registry: Registry) -> None:
    text = '{"type": "string"}'
    one = registry.register("a", Schema(SchemaType.AVRO, text))
    two = registry.register("b", Schema(SchemaType.JSON, text))
    assert one.id != two.id


def test_a_contract_is_a_part_of_the_schema(registry: Registry, topic: MemoryTopic) -> None:
    one = registry.register("a", avro("x"))
    contract = (("metadata", '{"properties": {"owner": "me"}}'),)
    two = registry.register_wanted("a", Wanted(avro("x"), contract))
    assert one.id != two.id
    registry.delete_version("a", two.version)
    value = topic.records[-1][1]
    assert value is not None and value["metadata"] == {"properties": {"owner": "me"}}


def test_a_descriptor_is_kept_as_text(registry: Registry) -> None:
    from mainstem.schemas.canonical import serialized
    from mainstem.schemas.parse import parse
    from mainstem.schemas.protobuf_parse import ProtobufSchema

    given = proto("string a = 1;")
    parsed = parse(given, registry.resolve)
    assert isinstance(parsed, ProtobufSchema)
    sent = registry.register("p", Schema(SchemaType.PROTOBUF, serialized(parsed)))
    assert "message M" in sent.schema.text
    assert registry.register("p", given) == sent


def test_normalize(registry: Registry) -> None:
    one = registry.register("a", json_schema(required=["b", "a"]), normalize=True)
    assert json.loads(one.schema.text)["required"] == ["a", "b"]
    assert registry.register("a", json_schema(required=["a", "b"]), normalize=True) == one
    registry.set_config("b", {"normalize": True})
    assert registry.register("b", json_schema(required=["b", "a"])).id == one.id


def test_unknown(registry: Registry) -> None:
    registry.register("a", avro("x"))
    fails("SCHEMA_UNKNOWN", lambda: registry.by_id(9))
    fails("SUBJECT_UNKNOWN", lambda: registry.latest("b"))
    fails("SUBJECT_UNKNOWN", lambda: registry.versions("b"))
    fails("SCHEMA_VERSION_UNKNOWN", lambda: registry.version("a", 2))
    fails("SUBJECT_UNKNOWN", lambda: registry.lookup("b", Wanted(avro("x"))))
    fails("SCHEMA_UNKNOWN", lambda: registry.lookup("a", Wanted(avro("z"))))


@pytest.mark.parametrize("name", ["", "a\nb", "a\x00", ":.other:a", "__GLOBAL", "__EMPTY", "\x85"])
def test_names_that_no_subject_has(registry: Registry, name: str) -> None:
    fails("SUBJECT_INVALID", lambda: registry.register(name, avro("x")))


@pytest.mark.parametrize("name", ["a/b", "ö", "a b", "%", "🙂", "../..", '"', "\\"])
def test_odd_names(registry: Registry, topic: MemoryTopic, name: str) -> None:
    registry.register(name, avro("x"))
    assert topic.registry().latest(name).id == 1


# -- rules


def test_rules(registry: Registry) -> None:
    registry.register("a", avro("x"))
    error = fails("SCHEMA_INCOMPATIBLE", lambda: registry.register("a", avro("x", "y")))
    assert "version 1, BACKWARD: Click.y: " in error.message
    [said] = registry.check("a", avro("x", "y"))
    assert "y" in said
    registry.set_config("a", {"compatibilityLevel": "FORWARD"})
    assert registry.check("a", avro("x", "y")) == []
    assert registry.register("a", avro("x", "y")).version == 2
    registry.set_config(None, {"compatibilityLevel": "NONE"})
    fails("SCHEMA_INCOMPATIBLE", lambda: registry.register("a", avro("z")))
    registry.delete_config("a")
    registry.register("a", avro("z"))
    registry.delete_config(None)
    fails("SCHEMA_INCOMPATIBLE", lambda: registry.register("a", avro("q")))


def test_a_deleted_version_binds_nobody(registry: Registry) -> None:
    registry.register("a", avro("x"))
    registry.delete_version("a", 1)
    assert registry.register("a", avro("q")).version == 2


def test_force(registry: Registry) -> None:
    registry.register("a", avro("x"))
    assert registry.register_wanted("a", Wanted(avro("q")), force=True).version == 2


def test_malformed(registry: Registry, topic: MemoryTopic) -> None:
    fails("SCHEMA_MALFORMED", lambda: registry.register("a", Schema(SchemaType.AVRO, "{")))
    fails("SCHEMA_MALFORMED", lambda: registry.check("a", Schema(SchemaType.AVRO, "{")))
    assert topic.records == []


# -- references


def test_references(registry: Registry) -> None:
    registry.register("user", avro("name", name="User"))
    text = '{"type":"record","name":"Click","fields":[{"name":"by","type":"User"}]}'
    reference = Reference("User", "user", 1)
    click = Schema(SchemaType.AVRO, text, (reference,))
    its = registry.register("click", click)
    assert registry.by_id(its.id).references == (reference,)
    assert [k.registered.id for k in registry.state.referenced_by("user", 1)] == [its.id]
    fails("SCHEMA_REFERENCED", lambda: registry.delete_subject("user"))
    fails("SCHEMA_REFERENCED", lambda: registry.delete_version("user", 1))
    registry.delete_subject("click")
    registry.delete_subject("user")
    error = lambda: registry.delete_subject("user", permanent=True)  # noqa: E731
    fails("SCHEMA_REFERENCED", error)
    registry.delete_subject("click", permanent=True)
    assert registry.delete_subject("user", permanent=True) == [1]
    missing = Schema(SchemaType.AVRO, text, (Reference("User", "user", 7),))
    fails("SCHEMA_REFERENCE_UNKNOWN", lambda: registry.register("click", missing))


# -- deletions


def test_deleting_a_subject(registry: Registry, topic: MemoryTopic) -> None:
    registry.register("a", avro("x"))
    registry.register("a", avro("x", "y", y=""))
    fails("SUBJECT_NOT_SOFT_DELETED", lambda: registry.delete_subject("a", permanent=True))
    assert registry.delete_subject("a") == [1, 2]
    assert topic.spelled()[-1] == '{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}'
    fails("SUBJECT_SOFT_DELETED", lambda: registry.delete_subject("a"))
    fails("SUBJECT_UNKNOWN", lambda: registry.latest("a"))
    assert registry.by_id(2) == avro("x", "y", y=""), "records keep their schema"
    assert registry.state.subjects() == [] and registry.state.subjects(deleted=True) == ["a"]
    assert registry.delete_subject("a", permanent=True) == [1, 2]
    fails("SCHEMA_UNKNOWN", lambda: registry.by_id(2))
    fails("SUBJECT_UNKNOWN", lambda: registry.delete_subject("a"))


def test_a_schema_that_comes_back_has_its_id(registry: Registry) -> None:
    one = registry.register("a", avro("x"))
    registry.delete_subject("a")
    again = registry.register("a", avro("x"))
    assert (again.id, again.version) == (one.id, 2)
    versions = [k.registered.version for k in registry.state.versions("a", deleted=True)]
    assert versions == [2], "the new version stands for the deleted one"


def test_deleting_a_version(registry: Registry) -> None:
    registry.register("a", avro("x"))
    registry.register("a", avro("x", "y", y=""))
    fails("SCHEMA_VERSION_NOT_SOFT_DELETED",
          lambda: registry.delete_version("a", 1, permanent=True))  # fmt: skip
    assert registry.delete_version("a", None) == 2
    fails("SCHEMA_VERSION_SOFT_DELETED", lambda: registry.delete_version("a", 2))
    assert registry.versions("a") == [1]
    assert registry.delete_version("a", 2, permanent=True) == 2
    fails("SCHEMA_VERSION_UNKNOWN", lambda: registry.delete_version("a", 2, permanent=True))
    fails("SUBJECT_UNKNOWN", lambda: registry.delete_version("b", 1))


def test_ids_are_never_given_again(registry: Registry, topic: MemoryTopic) -> None:
    """A record of the deleted schema must not be read with another one."""
    registry.register("a", avro("x"))
    registry.register("b", avro("y"))
    registry.delete_subject("b")
    registry.delete_subject("b", permanent=True)
    assert registry.register("b", avro("z")).id == 3
    registry.delete_subject("b")
    registry.delete_subject("b", permanent=True)
    assert topic.compacted().registry().register("b", avro("q")).id == 4


def test_rules_go_with_a_subject(registry: Registry) -> None:
    registry.register("a", avro("x"))
    registry.set_config("a", {"compatibilityLevel": "NONE"})
    registry.delete_subject("a")
    assert registry.state.config("a") is not None
    registry.delete_subject("a", permanent=True)
    assert registry.state.config("a") is None


# -- modes


def test_read_only(registry: Registry) -> None:
    registry.register("a", avro("x"))
    registry.set_mode("a", Mode.READONLY)
    for call in (
        lambda: registry.register("a", avro("x", "y", y="")),
        lambda: registry.delete_subject("a"),
        lambda: registry.delete_version("a", 1),
        lambda: registry.set_config("a", {"compatibilityLevel": "NONE"}),
    ):
        fails("REGISTRY_NOT_PERMITTED", call)
    assert registry.register("b", avro("x")).version == 1
    assert registry.delete_mode("a") == "READONLY"
    registry.register("a", avro("x", "y", y=""))
    fails("SUBJECT_UNKNOWN", lambda: registry.delete_mode("a"))


def test_import(registry: Registry) -> None:
    given = Wanted(avro("x"), id=70, version=4)
    fails("REGISTRY_NOT_PERMITTED", lambda: registry.register_wanted("a", given))
    registry.set_mode("a", Mode.IMPORT)
    fails("REGISTRY_NOT_PERMITTED", lambda: registry.register("a", avro("x")))
    its = registry.register_wanted("a", given)
    assert (its.id, its.version) == (70, 4)
    assert registry.register_wanted("a", given).version == 4
    taken = Wanted(avro("other"), id=70, version=5)
    fails("REGISTRY_NOT_PERMITTED", lambda: registry.register_wanted("a", taken))
    other = Wanted(avro("other"), id=71, version=4)
    fails("REGISTRY_NOT_PERMITTED", lambda: registry.register_wanted("a", other))
    incompatible = Wanted(avro("q"), id=71, version=2)
    assert registry.register_wanted("a", incompatible).version == 2
    registry.delete_mode("a")
    assert registry.register("b", avro("new")).id == 72
    fails("REGISTRY_NOT_PERMITTED", lambda: registry.set_mode("b", Mode.IMPORT))
    registry.set_mode("b", Mode.IMPORT, force=True)
    assert registry.latest("b").id == 72
    registry.register_wanted("b", Wanted(avro("last"), id=2**31 - 1, version=9))
    registry.delete_mode("b")
    fails("REGISTRY_NOT_PERMITTED", lambda: registry.register("c", avro("one", "more")))


# -- several registries


def test_one_that_is_overtaken_decides_anew(topic: MemoryTopic) -> None:
    one, two = topic.registry(), topic.registry()
    topic.before_write = lambda: two.register("b", avro("y"))
    assert one.register("a", avro("x")).id == 2
    assert two.by_id(2) == avro("x"), "a look at the log finds what is not known yet"
    topic.before_write = lambda: two.set_mode("a", Mode.READONLY)
    fails("REGISTRY_NOT_PERMITTED", lambda: one.register("a", avro("x", "y", y="")))


def test_the_same_schema_at_once(topic: MemoryTopic) -> None:
    one, two = topic.registry(), topic.registry()
    topic.before_write = lambda: two.register("b", avro("x"))
    assert one.register("a", avro("x")).id == two.latest("b").id == 1


# -- a topic that another registry has written


def schema_key(subject: str, version: int) -> str:
    return f'{{"keytype":"SCHEMA","subject":"{subject}","version":{version},"magic":1}}'


TAKEN_OVER = MemoryTopic(
    ('{"keytype":"CONFIG","subject":null,"magic":0}', {"compatibilityLevel": "FULL"}),
    ('{"keytype":"NOOP","magic":0}', None),
    (
        schema_key("clicks-value", 1),
        {
            "subject": "clicks-value",
            "version": 1,
            "id": 11,
            "md5": "abc",
            "schema": avro("x").text,
            "deleted": False,
        },
    ),
    (
        schema_key("clicks-value", 2),
        {
            "subject": "clicks-value",
            "version": 2,
            "id": 12,
            "schemaType": "JSON",
            "references": [],
            "schema": "{}",
            "deleted": True,
        },
    ),
    ('{"keytype":"MODE","subject":"old","magic":0}', {"mode": "READONLY"}),
    ('{"keytype":"CONTEXT","tenant":"default","context":".x","magic":0}', {"context": ".x"}),
    (schema_key(":.x:a", 1), {"subject": ":.x:a", "version": 1, "id": 99, "schema": '"int"'}),
    (schema_key("strange", 1), {"id": 40, "schemaType": "XML", "schema": "<a/>"}),
    (schema_key("twice", 1), {"id": 11, "schema": '"long"'}),
    ("not json", {"id": 3}),
    ('{"keytype":"SCHEMA","magic":1}', {}),
    ('["list"]', {}),
    (schema_key("bad", 0), {"id": 1, "schema": '"int"'}),
    (schema_key("bad", 1), {"id": "one", "schema": '"int"'}),
    (schema_key("bad", 2), {"id": 1, "schema": None}),
    (schema_key("bad", 3), {"id": 1, "schema": '"int"', "references": [{"name": 1}]}),
    ('{"keytype":"MODE","magic":0,"subject":"m"}', {"mood": "good"}),
    ('{"keytype":"DELETE_SUBJECT","subject":"clicks-value","magic":0}', {"version": "all"}),
)


def test_taking_over(caplog: pytest.LogCaptureFixture) -> None:
    topic = MemoryTopic(*TAKEN_OVER.records)
    with caplog.at_level(logging.ERROR):
        registry = topic.registry()
    assert caplog.text.count("left alone") == 13
    assert registry.state.subjects() == ["clicks-value"]
    assert registry.by_id(12) == Schema(SchemaType.JSON, "{}")
    assert registry.versions("clicks-value") == [1]
    fails("SUBJECT_UNKNOWN", lambda: registry.latest("strange"))
    fails("SCHEMA_UNKNOWN", lambda: registry.by_id(40))
    fails("REGISTRY_NOT_PERMITTED", lambda: registry.register("old", avro("x")))
    fails("SCHEMA_INCOMPATIBLE", lambda: registry.register("clicks-value", avro("q")))
    assert registry.register("new", avro("q")).id == 100, "ids that we cannot read are taken, too"
    registry.delete_version("clicks-value", 1)
    _, value = topic.records[-1]
    assert value is not None and value["md5"] == "abc" and value["deleted"] is True
    assert {key for key, _ in TAKEN_OVER.records[5:]} <= set(topic.compacted().spelled())


def test_older_spellings_of_a_key_do_not_come_back() -> None:
    topic = MemoryTopic(*TAKEN_OVER.records)
    topic.registry().delete_config(None)
    assert topic.compacted().registry().state.config(None) is None
    topic = MemoryTopic(*TAKEN_OVER.records)
    topic.registry().set_config(None, {"compatibilityLevel": "NONE"})
    after = topic.compacted()
    assert after.registry().state.config(None) == {"compatibilityLevel": "NONE"}
    assert '{"keytype":"CONFIG","magic":0}' in after.spelled()
    assert '{"keytype":"CONFIG","subject":null,"magic":0}' not in after.spelled()


def test_records_are_confluents(registry: Registry, topic: MemoryTopic) -> None:
    registry.register("ö/1", avro("x"))
    registry.register("p", proto("int32 a = 1;"))
    [(key, value), (_, second)] = topic.records
    assert key == '{"keytype":"SCHEMA","subject":"ö/1","version":1,"magic":1}'
    assert value == {
        "subject": "ö/1",
        "version": 1,
        "id": 1,
        "schema": avro("x").text,
        "deleted": False,
    }
    assert second is not None and second["schemaType"] == "PROTOBUF"


def test_not_read_yet() -> None:
    registry = Registry(MemoryTopic().open_log)
    fails("LOG_UNREACHABLE", lambda: registry.by_id(1))


def test_who_reads_a_schema_keeps_nobody_waiting() -> None:
    """Reading one takes long; the others' questions are answered meanwhile."""
    answered = []

    def canonical(schema: Schema) -> Schema:
        asking = threading.Thread(target=lambda: answered.append(state.highest_id()))
        asking.start()
        asking.join(60)
        return schema

    state = State(canonical)
    state.apply(schema_key("a", 1), {"id": 7, "schema": '"int"'})
    assert state.ids_of(Schema(SchemaType.AVRO, '"long"'), ()) == []
    assert answered == [7, 7]
