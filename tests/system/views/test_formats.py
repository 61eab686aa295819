"""Views of tables in other formats: rows by each record's schema; a view waits for a registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mainstem.definitions.model import Format
from mainstem.errors import MainstemError
from mainstem.schemas.codec import Codec
from mainstem.schemas.known import KnownSchemas
from mainstem.schemas.model import Schema
from mainstem.testing.registry import MemoryRegistry, written_by
from mainstem.testing.waiting import eventually

OLD = {"type": "record", "name": "old", "fields": [{"name": "age", "type": "int"}]}
NEW = {
    "type": "record",
    "name": "new",
    "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": ["null", "long"]}],
}


class Registry(MemoryRegistry):
    """A registry that can be away."""

    away = True

    def by_id(self, id: int) -> Schema:
        if self.away:
            raise MainstemError("REGISTRY_UNREACHABLE", url="http://registry", problem="no route")
        return super().by_id(id)


def test_a_view_waits_alone_for_its_schemas(lab: Any, topic: Callable[..., str]) -> None:
    registry = Registry()
    lab.codec = Codec(KnownSchemas(registry))
    users = lab.declared("users", topic(), {"name": "string", "age": "bigint"}, "name")
    users = replace(users, definition=replace(users.definition, format=Format.AVRO))
    plain = lab.declared("plain", topic(), {"name": "string", "age": "bigint"}, "name")
    views = lab.serve(users, plain)
    lab.send(
        users.definition.topic,
        (b"ann", written_by(registry, json.dumps(OLD), {"age": 7})),  # the name is in the key
        (b"bob", written_by(registry, json.dumps(NEW), {"name": "bob", "age": None})),
        (b"cid", b"\0\0\0\0\x63zz"),
        (b"dan", written_by(registry, json.dumps(NEW), {"name": "dan", "age": 1})),
        (b"dan", None),
    )
    lab.send(plain.definition.topic, (b"eve", {"age": 9}))
    lab.settle(views, plain)
    assert lab.postgres.rows("SELECT name, age FROM plain") == [("eve", 9)]
    assert lab.postgres.rows("SELECT * FROM users") == []
    registry.away = False
    eventually(lambda: lab.caught_up(views, users), what="the view goes on")
    assert lab.postgres.rows("SELECT name, age FROM users ORDER BY name") == [
        ("ann", 7),
        ("bob", None),
    ]
    [progress] = [p for p in views.progress() if p.name == "users"]
    assert progress.quarantined == 1


def test_keys_in_a_format(lab: Any, topic: Callable[..., str]) -> None:
    """What the value leaves to the key comes from there; a bad key makes a bad record."""
    registry = MemoryRegistry()
    lab.codec = Codec(KnownSchemas(registry))
    users = lab.declared("keyed", topic(), {"name": "string", "age": "bigint"}, "name")
    formats = {"format": Format.AVRO, "key_format": Format.PROTOBUF}
    users = replace(users, definition=replace(users.definition, **formats))
    keys = users.definition.keys
    assert keys is not None
    ann, bob, cid = (lab.codec.writer(keys)({"name": f'"{n}"'}) for n in ("ann", "bob", "cid"))
    nullable = {**NEW, "fields": [{"name": "name", "type": ["null", "string"]}, *NEW["fields"][1:]]}
    views = lab.serve(users)
    lab.send(
        users.definition.topic,
        (ann, written_by(registry, json.dumps(OLD), {"age": 7})),
        (bob, written_by(registry, json.dumps(nullable), {"name": None, "age": 8})),
        (cid, written_by(registry, json.dumps(NEW), {"name": "cid", "age": 9})),
        (b"ann", written_by(registry, json.dumps(NEW), {"name": "ann", "age": 11})),
        (b"bob", None),
        (cid, None),
    )
    lab.settle(views, users)
    rows = lab.postgres.rows("SELECT name, age FROM keyed ORDER BY name")
    assert rows == [("ann", 7), ("bob", 8)]
    [progress] = [p for p in views.progress() if p.name == "keyed"]
    assert progress.quarantined == 2
