"""The worker's files: closed, private, and right whatever the project's folder is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from mainstem.config import Settings
from mainstem.connect.properties import properties_text
from mainstem.errors import MainstemError
from mainstem.local.connect import Connect, rest_password, worker_properties
from mainstem.local.java import Java

SETTINGS = Settings.model_validate({"name": "shop", "kafka": {"replication_factor": 3}})


def read(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_the_worker_is_closed() -> None:
    found = read(worker_properties(SETTINGS, "127.0.0.1:1", 2, Path("/p/.mainstem/connect")))
    assert found["listeners"] == "http://127.0.0.1:2"
    assert found["admin.listeners"] == ""
    assert "BasicAuth" in found["rest.extension.classes"]
    assert found["connector.client.config.override.policy"] == "None"
    allowed = "config.providers.file.param.allowed.paths"
    assert found[allowed] == "/p/.mainstem/connect/secrets"
    assert found["exactly.once.source.support"] == "enabled"
    topics = {key: value for key, value in found.items() if key.endswith(".storage.topic")}
    assert all(topic.startswith("_mainstem.connect.") for topic in topics.values())
    factors = [v for k, v in found.items() if k.endswith(".replication.factor")]
    assert factors == ["3"] * 3
    assert found["plugin.discovery"] == "service_load"
    assert found["consumer.isolation.level"] == "read_committed"
    foreign = worker_properties(SETTINGS, "h:1", 2, Path("/p/.mainstem/connect"), foreign=True)
    assert read(foreign)["plugin.discovery"] == "hybrid_warn", "one may not say what it is"


def worker(folder: Path, plugins: dict[str, list[Path]]) -> Connect:
    java = Java(Path("/java"), 17, True)
    return Connect(folder, folder, SETTINGS, java, "h:1", 2, [Path("/a.jar")], plugins)


def test_plugins_are_those_that_are_given(tmp_path: Path) -> None:
    (tmp_path / "x-1.jar").write_text("x")
    folder = tmp_path / "connect"
    worker(folder, {"x": [tmp_path / "x-1.jar"], "y": []}).prepare()
    command = worker(folder, {"x": [tmp_path / "x-1.jar"]}).prepare()
    assert [str(p.relative_to(folder)) for p in sorted((folder / "plugins").rglob("*"))] == [
        "plugins/x",
        "plugins/x/x-1.jar",
    ]
    assert "-Xmx256m" in command.argv
    for private in (folder, folder / "secrets"):
        assert private.stat().st_mode & 0o777 == 0o700
    password = rest_password(folder)
    assert len(password) == 48
    assert password == rest_password(folder)
    assert password not in " ".join(command.argv)
    assert (folder / "users.properties").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["a:b", "a,b", "a}b"])
def test_folders_that_connect_cannot_name_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(MainstemError) as raised:
        worker(tmp_path / name, {}).prepare()
    assert raised.value.code == "PROCESS_FAILED"


def test_property_files_keep_every_letter() -> None:
    text = properties_text({"a": " x\\y\n=é😀 "})
    assert text == "a=\\ x\\\\y\\n=\\u00e9\\ud83d\\ude00 \n"
