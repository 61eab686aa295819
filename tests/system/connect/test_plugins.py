"""Plugins of Kafka Connect by their class, in the real worker: Kafka's own connectors for files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mainstem.connect.carrier import Wanted
from mainstem.connect.planned import PlannedConnectors
from mainstem.connect.plugin_config import PluginCapture, between_topic
from mainstem.connect.plugins import FOLDER, AllowedPlugins
from mainstem.connect.secrets import Secrets
from mainstem.gateway.connectors import wanted_sources
from mainstem.local.jars import provide
from mainstem.local.jars_lock import parse_lock
from mainstem.testing.capturing import LONG, Capturing
from mainstem.testing.driver import Driver
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import SourceLocation

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

LOCK = Path(__file__).with_name("plugins.lock")
SOURCE = """CREATE SOURCE lines WITH (
  connector = 'connect', class = 'org.apache.kafka.connect.file.FileStreamSourceConnector',
  "option.file" = '${{env:LINES}}', {more}stream = 'said');
"""
SINK = """CREATE SINK heard FROM said WITH (
  connector = 'connect', class = 'org.apache.kafka.connect.file.FileStreamSinkConnector',
  "option.file" = '{file}', schemas = 'true') TRANSFORM (rename(value, line));
"""


@pytest.fixture
def plugins(capturing: Capturing, driver: Driver) -> Path:
    """The folder of the project with the plugin, which definitions may name."""
    folder = capturing.stack.project.folder / FOLDER
    [jar] = provide(parse_lock(LOCK.read_text())["file"], "file connectors")
    (folder / "file").mkdir(parents=True, exist_ok=True)
    shutil.copy(jar, folder / "file")
    secrets = Secrets(driver.folder, capturing.environment)
    capture = PluginCapture(AllowedPlugins(folder))
    driver.connectors = PlannedConnectors(secrets, lambda _: capture, lambda *_: None)
    return folder


def test_from_one_plugin_to_another(
    capturing: Capturing, driver: Driver, plugins: Path, tmp_path: Path
) -> None:
    said, heard = tmp_path / "said.txt", tmp_path / "heard.txt"
    said.write_text("tea\nmilk\n")
    capturing.environment["LINES"] = str(said)

    # what Connect says of a configuration is told at the definition
    driver.apply(SOURCE.format(more=""))
    capturing.wanted.update(wanted_sources(driver.catalog))
    problem = capturing.await_state("failed", "lines")["error"]
    assert problem["title"] == "CONNECTOR_INVALID"
    assert 'Missing required configuration "topic"' in problem["detail"]
    assert problem["location"]["line"] == 1

    driver.apply(SOURCE.format(more="\"option.topic\" = 'any', ") + SINK.format(file=heard))
    capturing.wanted.update(wanted_sources(driver.catalog))
    topic = driver.entry("said").definition.topic
    eventually(lambda: capturing.values(topic) == [b"tea", b"milk"], LONG, what="the lines")
    config = capturing.client.connectors()["mainstem.shop.lines"].config
    assert config["file"].startswith("${file:")

    driver.run()
    wanted = ["Struct{line=tea}", "Struct{line=milk}"]
    eventually(lambda: heard.exists() and heard.read_text().splitlines() == wanted, LONG)

    # paused, it commits what it has taken, which is then not needed any more
    between = between_topic(driver.entry("heard").flow_id)
    for paused in (True, False):
        heard_by = wanted_sources(driver.catalog)["heard"]
        capturing.wanted["heard"] = replace(heard_by, paused=paused)
        capturing.await_state("paused" if paused else "running", "heard")
    eventually(lambda: capturing.admin.begin_offsets(between)[0] > 0, LONG, what="room")
    assert heard.read_text().splitlines() == wanted

    capturing.wanted.clear()
    eventually(lambda: capturing.stack.pid("connect") is None, LONG, what="the worker is gone")
    assert capturing.admin.topic(between) is None


def test_databases_that_do_not_answer(capturing: Capturing) -> None:
    """Debezium takes all of the configuration but the address, and that is told at the line."""
    place = SourceLocation("shop.sql", 7, 1)
    given = {
        "mongodb-cdc": ("mongodb://127.0.0.1:1/shop", "orders (_id STRING)", "shop.orders"),
        "sqlserver-cdc": ("sqlserver://me@127.0.0.1:1/shop", "orders (id INT PRIMARY KEY)",
                          "shop.dbo.orders"),
    }  # fmt: skip
    for name, (url, tables, table) in given.items():
        options = {"url": url, "tables": tables, "password": "${env:PASSWORD}", "user": "me"}
        capturing.wanted[name] = Wanted(
            name, 1, name, options, (table,), (f"{name}.{table}",), location=place
        )
    capturing.environment["PASSWORD"] = "hunter2"
    for name, said in (
        ("mongodb-cdc", "mongodb.connection.string: Unable to connect"),
        ("sqlserver-cdc", "database.hostname: Unable to connect"),
    ):
        problem = capturing.await_state("failed", name)["error"]
        assert problem["title"] == "CONNECTOR_INVALID"
        assert problem["detail"].count("; ") == 0
        assert said in problem["detail"]
        assert problem["location"]["line"] == 7
        assert "hunter2" not in str(problem)
    capturing.wanted.clear()
    eventually(lambda: capturing.stack.pid("connect") is None, LONG, what="the worker is gone")
