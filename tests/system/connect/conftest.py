"""A PostgreSQL of somebody else, once for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mainstem.config import load_project
from mainstem.local.stack import Stack
from mainstem.testing.capturing import SECRET, Capturing
from mainstem.testing.source_postgres import SourcePostgres


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
