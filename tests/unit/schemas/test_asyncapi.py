"""The AsyncAPI document of a project: its parts refer to each other, and say what is in the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from mainstem.definitions.project import load_definitions
from mainstem.schemas.asyncapi import Surroundings, asyncapi, printed
from mainstem.schemas.known import KnownSchemas, described
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.testing.registry import MemoryRegistry

PROJECT = """
CREATE STREAM clicks (user STRING, at TIMESTAMP, place STRUCT<x: INT>)
  WITH (format = 'avro', key = 'user', partitions = 3, retention = '7 days', comment = 'Clicks: "all"');
CREATE STREAM placed (id BIGINT)
  WITH (topic = 'orders', format = 'avro', record = 'shop.Placed', subject_strategy = 'record_name');
CREATE STREAM paid (id BIGINT) WITH (topic = 'orders', format = 'protobuf', record = 'shop.Paid');
CREATE STREAM plain (id BIGINT CHECK (id > 0), x DOUBLE);
CREATE STREAM checked (id BIGINT) WITH (format = 'json_schema');
CREATE STREAM lines (line STRING) WITH (format = 'raw');
CREATE STREAM bytes_of (data BINARY) WITH (format = 'raw');
CREATE STREAM prices (id INT, price DOUBLE) WITH (format = 'csv', delimiter = ';');
CREATE STREAM keyed (id BIGINT) WITH (key = 'id', key_format = 'avro');
CREATE STREAM by_object (id BIGINT) WITH (key = 'id', key_format = 'json');
CREATE STREAM by_text (id STRING) WITH (key = 'id', key_format = 'raw');
CREATE STREAM chat FROM TOPICS '{city}.*.chat.**' (text STRING);
CREATE TABLE people (id INT, region STRING, name STRING, PRIMARY KEY (id, region)) WITH (retention = 'forever');
CREATE TABLE visits AS SELECT user, count(*) AS n FROM clicks GROUP BY user;
"""  # noqa: E501 - statements as people write them

WHERE = Surroundings("shop", "2.0.0", "a:9092, b:9092", "SASL_SSL", "https://schemas.example.com")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return asyncapi(load_definitions([("p.sql", PROJECT)]), WHERE, described, {"people": ["name"]})


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for inner in node.values():
            yield from references(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from references(inner)


def found(document: Any, reference: str) -> Any:
    assert reference.startswith("#/")
    for part in reference[2:].split("/"):
        document = document[part]
    return document


def test_every_part_is_there(document: dict[str, Any]) -> None:
    assert document["asyncapi"] == "3.0.0"
    assert document["info"] == {"title": "shop", "version": "2.0.0"}
    given = list(references(document))
    assert len(given) == 3 * 14
    assert all(isinstance(found(document, reference), dict) for reference in given)
    for operation in document["operations"].values():
        [message] = operation["messages"]
        # a message of an operation is one of its channel's
        assert message["$ref"].startswith(operation["channel"]["$ref"] + "/messages/")


def test_servers(document: dict[str, Any]) -> None:
    assert [s["host"] for s in document["servers"].values()] == ["a:9092", "b:9092"]
    server = document["servers"]["kafka2"]
    assert server["protocol"] == "kafka-secure"
    assert server["bindings"]["kafka"]["schemaRegistryUrl"] == "https://schemas.example.com"
    alone = asyncapi([], Surroundings("shop", servers="x:1"), described, {})
    assert alone["servers"] == {"kafka": {"host": "x:1", "protocol": "kafka"}}
    assert "servers" not in asyncapi([], Surroundings("shop"), described, {})


def test_channels(document: dict[str, Any]) -> None:
    channels = document["channels"]
    assert list(channels["orders"]["messages"]) == ["paid", "placed"]
    clicks = channels["clicks"]["bindings"]["kafka"]
    assert (clicks["partitions"], clicks["topicConfiguration"]) == (3, {"retention.ms": 604800000})
    people = channels["people"]["bindings"]["kafka"]["topicConfiguration"]
    assert people == {"cleanup.policy": ["compact"], "retention.ms": -1}
    assert channels["chat"]["address"] == "{city}.{part2}.chat.{part4}"
    assert list(channels["chat"]["parameters"]) == ["city", "part2", "part4"]


def test_who_sends_and_who_receives(document: dict[str, Any]) -> None:
    actions = {name: o["action"] for name, o in document["operations"].items()}
    assert actions.pop("send_visits") == "send"
    assert set(actions.values()) == {"receive"}


def test_messages(document: dict[str, Any]) -> None:
    messages = document["components"]["messages"]
    clicks = messages["clicks"]
    assert clicks["description"] == 'Clicks: "all"'
    assert clicks["payload"]["schemaFormat"].startswith("application/vnd.apache.avro+json")
    [place] = [f for f in clicks["payload"]["schema"]["fields"] if f["name"] == "place"]
    assert (place["type"][1]["name"], place["type"][1]["namespace"]) == ("place", "clicks")
    assert messages["placed"]["name"] == "shop.Placed"
    strategies = [
        messages[name]["bindings"]["kafka"]["schemaLookupStrategy"] for name in ("clicks", "placed")
    ]
    assert strategies == ["TopicIdStrategy", "RecordIdStrategy"]
    paid = messages["paid"]["payload"]
    assert paid["schemaFormat"].startswith("application/vnd.google.protobuf")
    assert "message Paid {" in paid["schema"]
    assert messages["checked"]["payload"]["schemaFormat"].endswith("version=draft-07")
    assert "additionalProperties" not in messages["plain"]["payload"]
    kinds = {name: messages[name]["contentType"] for name in ("lines", "bytes_of", "prices")}
    assert list(kinds.values()) == ["text/plain", "application/octet-stream", "text/csv"]
    assert "id;price" in messages["prices"]["payload"]["description"]
    key = messages["people"]["bindings"]["kafka"]["key"]
    assert (list(key["properties"]), key["required"]) == (["id", "region"],) * 2
    assert clicks["bindings"]["kafka"]["key"]["type"] == "string"
    kinds = [messages[n]["bindings"]["kafka"]["key"] for n in ("keyed", "by_object", "by_text")]
    assert [kind["type"] for kind in kinds] == ["string", "object", "string"]
    assert kinds[0]["contentMediaType"] == "application/vnd.apache.avro"
    assert messages["people"]["x-pii"] == ["name"]
    assert [rule["rule"] for rule in messages["plain"]["x-rules"]] == ["id > 0"]
    assert "payload" not in messages["visits"]  # nobody has asked the engine for its columns


def test_both_texts_say_the_same(document: dict[str, Any]) -> None:
    text = printed(document, yaml=True)
    assert yaml.safe_load(text) == json.loads(printed(document, yaml=False)) == document
    assert "&id" not in text


def test_a_registered_schema_goes_before_the_definitions_own() -> None:
    [clicks] = load_definitions([("p.sql", PROJECT.split(";", maxsplit=1)[0])])
    registry = MemoryRegistry()
    known = KnownSchemas(registry)
    own = described(clicks)
    assert known.described(clicks) == own
    user = {"type": "record", "name": "shop.User", "fields": [{"name": "id", "type": "int"}]}
    registry.register("user", Schema(SchemaType.AVRO, json.dumps(user)))
    fields = [
        {"name": "user", "type": "shop.User"},
        {"name": "other", "type": ["null", "shop.User"]},
    ]
    text = json.dumps({"type": "record", "name": "shop.Click", "fields": fields})
    referring = Schema(SchemaType.AVRO, text, (Reference("shop.User", "user", 1),))
    registry.register("clicks-value", referring)
    document = asyncapi([clicks], WHERE, known.described, {})
    schema = document["components"]["messages"]["clicks"]["payload"]["schema"]
    assert schema["fields"][0]["type"] == {
        "type": "record",
        "name": "User",
        "fields": [{"name": "id", "type": "int"}],
    }
    assert schema["fields"][1]["type"] == ["null", "User"]
    named = replace(clicks, record="shop.Other")
    assert known.described(named) == described(named)
