"""Plugins of Kafka Connect by their class: which may be named, and how they are configured."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from mainstem.connect.carrier import Around, Wanted
from mainstem.connect.catalogue import spec_of
from mainstem.connect.plugin_config import (
    PluginCapture,
    between_topic,
    plugin_config,
    plugin_state,
    rows_topic,
)
from mainstem.connect.plugin_options import check_passed_on
from mainstem.connect.plugins import NONE_ALLOWED, AllowedPlugins, plugin_jars
from mainstem.connect.spec import Role
from mainstem.connect.targets.connect import check, open_target
from mainstem.connect.targets.target import OWN_LOG, Shape
from mainstem.definitions.model import Format
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

CLASS = "org.example.ReadsConnector"
SERVICE = "META-INF/services/org.apache.kafka.connect.source.SourceConnector"


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """One plugin in a folder, one in a jar of its own, and what is none."""
    for path, name in (("reads/lib/reads.jar", CLASS), ("single.jar", "org.example.Single")):
        jar = tmp_path / path
        jar.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr(f"{name.replace('.', '/')}.class", b"")
            archive.writestr(SERVICE, f"# ours\n{name}  # the only one\n")
    (tmp_path / "broken.jar").write_bytes(b"no jar")
    (tmp_path / "empty").mkdir()
    (tmp_path / "README.md").touch()
    return tmp_path


def refused(call: Any, *given: Any) -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        call(*given)
    return caught.value


def test_which_classes_may_be_named(plugins: Path) -> None:
    assert [*plugin_jars(plugins)] == ["broken.jar", "reads", "single.jar"]
    assert plugin_jars(plugins / "nowhere") == {}
    allowed = AllowedPlugins(plugins)
    allowed.check(CLASS)
    allowed.check("org.example.Single")
    error = refused(allowed.check, "org.example.ReadConnector")
    assert (error.code, error.params["option"]) == ("PLUGIN_UNKNOWN", "class")
    assert f'Did you mean "{CLASS}"?' in error.hint
    assert refused(AllowedPlugins(plugins / "none").check, CLASS).code == "PLUGIN_UNKNOWN"


def test_a_cluster_elsewhere_has_those_that_are_listed() -> None:
    AllowedPlugins(None, (CLASS,)).check(CLASS)
    assert refused(AllowedPlugins(None, (CLASS,)).check, "a.B").code == "PLUGIN_UNKNOWN"
    assert refused(NONE_ALLOWED.check, CLASS).code == "PLUGIN_UNKNOWN"


def test_what_a_source_brings(plugins: Path) -> None:
    capture = PluginCapture(AllowedPlugins(plugins))

    def look(**written: str) -> Any:
        [found] = capture.look("x", spec_of(Role.SOURCE, "connect").validate(written))
        return found

    text = look(**{"class": CLASS})
    assert (text.topic, text.events.format) == ("x_events", Format.RAW)
    assert [(c.name, c.type) for c in text.columns] == [("value", "string")]
    typed = look(**{"class": CLASS, "columns": "id BIGINT, at TIMESTAMP", "key": "id"})
    assert (typed.key, typed.events.format) == (("id",), Format.JSON)
    assert refused(lambda: look(**{"class": CLASS, "key": "id"})).code == "INVALID_OPTION"
    assert refused(lambda: look(**{"class": "a.B"})).code == "PLUGIN_UNKNOWN"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("connector.class", "a.B"),
        ("name", "x"),
        ("topics", "orders"),
        ("topics.regex", ".*"),
        ("mainstem.source", "{}"),
        ("signal.kafka.topic", "x"),
        ("a b", "x"),
        ("errors.deadletterqueue.topic.name", "_mainstem.catalog"),
    ],
)
def test_what_is_not_for_a_plugin_to_be_told(name: str, value: str) -> None:
    error = refused(check_passed_on, {"option.": {name: value}})
    assert (error.code, error.params["option"]) == ("INVALID_OPTION", f"option.{name}")
    check_passed_on({"option.": {"transforms.maskIt.type": "x", "batch.size": "5"}})


def config(role: Role, topic: str, **written: str) -> tuple[dict[str, str], dict[str, str]]:
    secrets: dict[str, str] = {}

    def put_away(key: str, value: str) -> str:
        secrets[key] = value
        return "${file:/run/x:" + key + "}"

    options = spec_of(role, "connect").validate({"class": CLASS, **written})
    secret = frozenset(name for name, text in written.items() if "${" in text)
    around = Around("mainstem.p.x", {}, role, (topic,), secret)
    return plugin_config("x", options, (), put_away, around), secrets


def test_the_configuration_of_a_source() -> None:
    written = {
        "columns": "id BIGINT, name STRING",
        "key": "id",
        "tasks": "3",
        "option.file": "/x",
        "option.password": "${env:P}",
        "option.transforms": "mine",
        "option.transforms.mine.type": "a.B",
    }
    made, secrets = config(Role.SOURCE, "x_events", **written)
    assert made["password"] == "${file:/run/x:password}"
    assert secrets == {"password": "${env:P}"}
    assert made["transforms"] == "mine,mainstemKey,mainstemKeyText,mainstemTopic"
    assert made["transforms.mainstemTopic.replacement"] == "x_events"
    wanted = {"connector.class": CLASS, "tasks.max": "3", "file": "/x"}
    assert wanted.items() <= made.items()
    assert rows_topic(made) == {}
    plain, _ = config(Role.SOURCE, "x_events", **{"option.value.converter": "a.C"})
    assert (plain["transforms"], plain["value.converter"]) == ("mainstemTopic", "a.C")


def test_the_configuration_of_a_sink() -> None:
    topic = between_topic("out.4")
    made, _ = config(Role.SINK, topic, **{"option.file": "/y"})
    assert (made["topics"], made["tasks.max"], made["file"]) == (topic, "1", "/y")
    assert "transforms" not in made
    assert rows_topic(made) == {topic: True}
    assert rows_topic({"topics": "orders"}) == {}
    offsets = [
        {"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 9}},
        {"partition": {"filename": "x"}, "offset": {"position": 3}},
    ]
    assert plugin_state("x", {}, lambda: offsets).confirmed == "0:9"
    assert plugin_state("x", {}, list).confirmed is None


def test_a_label_tells_a_sink_from_a_source() -> None:
    source = Wanted("x", 1, "connect", {"class": CLASS})
    sink = Wanted("x", 1, "connect", {"class": CLASS}, role=Role.SINK)
    for wanted in (source, sink):
        found = Wanted.from_config({"mainstem.source": wanted.label()})
        assert found == wanted
    assert "role" not in source.label()


def test_rows_with_schemas() -> None:
    columns = (
        Column("id", "bigint"),
        Column("price", "decimal(10,2)"),
        Column("tags", "array<string>"),
        Column("home", "struct<city:string,at:timestamp>"),
        Column("sizes", "map<string,int>"),
    )
    shape = Shape("orders", columns, ("id",), upserts=True, deletes=True)
    options = spec_of(Role.SINK, "connect").validate({"class": CLASS, "schemas": "true"})
    target = open_target({**options, OWN_LOG: {"servers": "h:1", "options": {}}}, shape)
    made = target._outgoing('{"id":1}', '{"id":1,"price":1.50}', None)
    value = json.loads(made.value or b"", parse_float=str)
    assert value["payload"] == {"id": 1, "price": "1.50"}
    fields = {field.pop("field"): field for field in value["schema"]["fields"]}
    assert fields["id"] == {"type": "int64", "optional": True}
    assert fields["price"]["parameters"]["scale"] == "2"
    assert fields["tags"]["items"]["type"] == "string"
    assert [field["type"] for field in fields["home"]["fields"]] == ["string", "string"]
    assert fields["sizes"]["values"]["type"] == "int32"
    key = json.loads(made.key or b"")
    assert key["payload"] == {"id": 1}
    assert [field["field"] for field in key["schema"]["fields"]] == ["id"]
    assert target._outgoing('{"id":1}', None, None).value is None
    with_text = open_target(
        {**options, OWN_LOG: {"servers": "h:1", "options": {}}},
        Shape("o", columns, ("id",), upserts=True),
    )
    key = json.loads(with_text._outgoing('{"id":1}', "{}", None).key or b"")
    assert key == {"schema": {"type": "string", "optional": False}, "payload": "1"}
    made_of = config(Role.SINK, between_topic("out.1"), schemas="true")[0]
    assert made_of["value.converter.schemas.enable"] == "true"
    with pytest.raises(MainstemError) as caught:
        check(options, Shape("o", (Column("v", "variant"),)))
    assert caught.value.params["option"] == "schemas"
