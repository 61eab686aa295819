"""A plain Kafka Connect worker with Confluent's own Avro converter, against our registry.

The converter (7.0.1) is the one that Apache Pulsar publishes, under names of its own; Confluent's
is not where our jars come from. One connector writes what a flow has written as Avro into a file;
the other reads a file into a topic and registers its schema by itself, and a flow reads that.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from mainstem.client import Client
from mainstem.config import load_project
from mainstem.local.jars import jars, provide
from mainstem.local.jars_lock import parse_lock
from mainstem.local.process import Child, Command
from mainstem.local.stack import Stack
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.testing.ports import free_port
from mainstem.testing.waiting import eventually

LOCK = Path(__file__).with_name("avro_converter.lock")
JAVA = shutil.which("java")
pytestmark = pytest.mark.skipif(JAVA is None, reason="Java is not installed")
CONVERTER = "org.apache.pulsar.kafka.shade.io.confluent.connect.avro.AvroConverter"
FILES = "org.apache.kafka.connect.file.FileStream"
TRANSFORM = "org.apache.kafka.connect.transforms."
WRITTEN = [
    """CREATE STREAM orders (id BIGINT, item STRING, price DECIMAL(9,2), at TIMESTAMP)
         WITH (format = 'avro')""",
    """CREATE STREAM dear WITH (key = 'id', format = 'avro') AS
         SELECT * FROM orders WHERE price > 1""",
]
READ = [
    "CREATE STREAM lines WITH (topic = 'from.connect', format = 'avro')",
    "CREATE STREAM long AS SELECT line, length(line) AS size FROM lines WHERE length(line) > 3",
]
NOON = "2026-11-16T12:00:00Z"
MICROS = 1_794_830_400_000_000


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    (tmp_path / "mainstem.toml").write_text('name = "converted"\n')
    with Stack(load_project(tmp_path)) as running:
        yield running


def test_what_flows_write_and_read(stack: Stack, tmp_path: Path) -> None:
    endpoints = stack.endpoints
    registry = f"{endpoints.gateway_url}/registry"
    admin = Admin(Connection(endpoints.bootstrap_servers))
    admin.ensure_topic(TopicSpec("from.connect", 1, 1))
    admin.close()

    def versions() -> list[int]:
        subject = f"{registry}/subjects/from.connect-value/versions"
        answer = httpx2.get(subject, trust_env=False)
        return answer.json() if answer.status_code == 200 else []

    with Client(endpoints.gateway_url) as client:
        for statement in WRITTEN:
            client.sql(statement)
        rows = [
            {"id": 1, "item": "tea", "price": 2.5, "at": NOON},
            {"id": 2, "item": "salt", "price": 0.4, "at": NOON},
            {"id": 3, "item": "größe", "price": 12, "at": None},
        ]
        client.produce("orders", rows)
        (tmp_path / "in.txt").write_text("one\nthree\nvierzehn\n")
        worker = start_worker(tmp_path, endpoints.bootstrap_servers, registry)
        try:
            got = tmp_path / "out.txt"
            told = eventually(lambda: lines(got, 2), what="what the sink writes")
            assert sorted(told) == [
                f"Struct{{id=1,item=tea,price=2.50,at={MICROS}}}",
                "Struct{id=3,item=größe,price=12.00}",
            ]
            assert eventually(versions, what="the converter's schema") == [1]
            for statement in READ:
                client.sql(statement)
            query = "SELECT line, size FROM long ORDER BY size"
            wanted = [["three", 5], ["vierzehn", 8]]
            eventually(
                lambda: client.sql(query)["rows"] == wanted,
                every=2,
                what="what Connect has written",
            )
        finally:
            worker.stop()


def lines(file: Path, count: int) -> list[str]:
    """The lines of a file, when there are so many."""
    found = file.read_text().splitlines() if file.exists() else []
    return found if len(found) == count else []


def start_worker(folder: Path, servers: str, registry: str) -> Child:
    """A standalone worker with two connectors, as anybody would run it."""
    converter = {
        "value.converter": CONVERTER,
        "value.converter.schema.registry.url": registry,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    write_properties(
        folder / "worker.properties",
        {
            "bootstrap.servers": servers,
            "listeners": f"http://127.0.0.1:{free_port()}",
            "offset.storage.file.filename": str(folder / "offsets"),
            "offset.flush.interval.ms": "1000",
            **converter,
        },
    )
    sink = {"name": "sink", "connector.class": f"{FILES}SinkConnector", "topics": "dear"}
    source = {
        "name": "source",
        "connector.class": f"{FILES}SourceConnector",
        "topic": "from.connect",
        "transforms": "row",
        "transforms.row.type": f"{TRANSFORM}HoistField$Value",
        "transforms.row.field": "line",
    }
    write_properties(folder / "sink.properties", {**sink, "file": str(folder / "out.txt")})
    write_properties(folder / "source.properties", {**source, "file": str(folder / "in.txt")})
    path = [
        *jars("broker"),
        *jars("connect"),
        *provide(parse_lock(LOCK.read_text())["converter"], "converter jars"),
    ]
    connectors = ("worker.properties", "sink.properties", "source.properties")
    command = Command(
        "connect",
        [
            *(str(JAVA), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"),
            *("org.apache.kafka.connect.cli.ConnectStandalone", *connectors),
        ],
        log=folder / "connect.log",
        folder=folder,
        environment={"CLASSPATH": os.pathsep.join(map(str, path))},
    )
    return Child.start(command)


def write_properties(file: Path, entries: dict[str, str]) -> None:
    file.write_text("".join(f"{name}={value}\n" for name, value in entries.items()))
