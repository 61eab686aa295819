"""Fixtures for pytest: one broker, one PostgreSQL and one Spark session a run, shared by all tests.

Use them with `pytest_plugins = ["mainstem.testing.fixtures"]` in a project's `conftest.py`.
Imports are inside, so that tests without servers start at once. All Java of the run compiles
quickly rather than well: nothing in it lives long enough for the better code to pay. One thread
collects its garbage: there are more JVMs than cores, and several threads would wait for each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mainstem.local.stack import Stack
    from mainstem.log.connection import Connection
    from mainstem.log.producer import Producer
    from mainstem.testing.driver import Driver


os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ParallelGCThreads=1")


@pytest.fixture(scope="session")
def seed() -> int:
    """What all random choices of a run are made from: MAINSTEM_SEED, the same one without it.

    So a change is to blame when a test fails that went well before; `make soak` looks further.
    """
    return int(os.environ.get("MAINSTEM_SEED") or 1)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A broker and a PostgreSQL of this test run."""
    from mainstem.config import load_project
    from mainstem.local.stack import Stack

    folder = tmp_path_factory.mktemp("servers")
    (folder / "mainstem.toml").write_text('name = "tests"\n')
    with Stack(load_project(folder), parts={"broker", "postgres"}) as stack:
        yield stack


@pytest.fixture(scope="session")
def connection(servers: Stack) -> Connection:
    """The way to the shared broker, with the platform's own topics in it."""
    from mainstem.log.admin import Admin
    from mainstem.log.connection import Connection
    from mainstem.log.engine_topics import ensure_engine_topics
    from mainstem.log.producer import TransactionalProducer
    from mainstem.vocabulary import QUARANTINE_TOPIC

    connection = Connection(servers.endpoints.bootstrap_servers)
    admin = Admin(connection)
    ensure_engine_topics(admin, 1, connection.max_record_bytes)
    admin.close()
    # librdkafka's admin client dies (SIGSEGV) when it asks for a group's offsets while a new broker
    # still loads its groups; a transaction waits until that is done
    producer = TransactionalProducer(connection, "tests.ready")
    with producer.transaction() as transaction:
        transaction.offsets("tests.ready", {QUARANTINE_TOPIC: {0: 0}})
    producer.close()
    return connection


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark session of this test process."""
    from mainstem.config import SparkSettings
    from mainstem.engine.session import open_session
    from mainstem.local.class_archive import class_archive
    from mainstem.local.jars import spark_jars
    from mainstem.local.java import find_java

    artifacts = spark_jars()
    session = open_session(
        SparkSettings(),
        jars=[*artifacts.jars, artifacts.bare_fs],
        scratch=tmp_path_factory.mktemp("spark"),
        class_archive=class_archive(find_java(), artifacts),
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def producer(connection: Connection) -> Iterator[Producer]:
    """Writes the events of all drivers."""
    from mainstem.log.producer import Producer

    producer = Producer(connection)
    yield producer
    producer.close()


@pytest.fixture
def driver(
    spark: SparkSession, connection: Connection, producer: Producer, tmp_path: Path
) -> Iterator[Driver]:
    """A pipeline of its own on the shared servers."""
    from mainstem.log.admin import Admin
    from mainstem.testing.driver import Driver

    admin = Admin(connection)
    driver = Driver(spark, connection, admin, tmp_path, producer=producer)
    yield driver
    driver.close()
    admin.close()
