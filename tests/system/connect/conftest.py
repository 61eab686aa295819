"""Databases of somebody else, once for all tests, and what captures from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from mainstem.config import load_project
from mainstem.connect.captures import capture_of
from mainstem.connect.planned import PlannedConnectors
from mainstem.connect.secrets import Secrets
from mainstem.local.stack import Stack
from mainstem.log.engine_topics import ensure_engine_topics
from mainstem.testing.capturing import LONG, SECRET, Capturing
from mainstem.testing.driver import Driver
from mainstem.testing.source_mariadb import SourceMariaDb, mariadb_there
from mainstem.testing.source_postgres import SourcePostgres
from mainstem.testing.waiting import eventually


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SourcePostgres]:
    """The server that changes are captured from."""
    server = SourcePostgres(tmp_path_factory.mktemp("shop")).start()
    yield server
    server.remove()


@pytest.fixture
def admin(shop: SourcePostgres) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A connection of the server's administrator; all that a test makes in `public` goes."""
    with psycopg.connect(shop.url(), autocommit=True) as connection:
        yield connection
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("GRANT USAGE ON SCHEMA public TO PUBLIC")  # as in a new database


@pytest.fixture(scope="session")
def capturing(
    shop: SourcePostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Capturing]:
    """A broker and Connect, and who keeps its connectors."""
    folder: Path = tmp_path_factory.mktemp("capturing")
    (folder / "mainstem.toml").write_text('name = "shop"\n')
    with psycopg.connect(shop.url(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE capturer LOGIN REPLICATION PASSWORD '{SECRET}'")
        connection.execute("CREATE SCHEMA IF NOT EXISTS public")
        connection.execute("GRANT CREATE ON DATABASE shop TO capturer")
    with Stack(load_project(folder), ("broker", "connect")) as stack:
        assert stack.pid("connect") is None
        made = Capturing(stack, shop)
        made.keeper.start()
        yield made
        made.keeper.close()
        made.admin.close()


@pytest.fixture(scope="session")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SourceMariaDb]:
    """A MariaDB that changes are captured from, and a user who may do so."""
    if not mariadb_there():
        pytest.skip("mariadb-server is not installed")
    server = SourceMariaDb(tmp_path_factory.mktemp("market")).start()
    server.run(
        f"CREATE USER capturer@'%' IDENTIFIED BY '{SECRET}'",
        "GRANT RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO capturer@'%'",
        "GRANT SELECT ON shop.* TO capturer@'%'",
    )
    yield server
    server.stop()


@pytest.fixture
def driver(capturing: Capturing, spark: SparkSession, tmp_path: Path) -> Iterator[Driver]:
    ensure_engine_topics(capturing.admin, 1, capturing.connection.max_record_bytes)
    driver = Driver(spark, capturing.connection, capturing.admin, tmp_path)
    secrets = Secrets(tmp_path, capturing.environment)
    driver.connectors = PlannedConnectors(secrets, capture_of, lambda *_: None)
    yield driver
    capturing.wanted.clear()
    eventually(lambda: capturing.stack.pid("connect") is None, LONG, what="the worker is gone")
    driver.close()
