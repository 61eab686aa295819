"""A PostgreSQL of somebody else, once for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from mainstem.testing.source_postgres import SourcePostgres


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SourcePostgres]:
    """The server that changes are captured from."""
    server = SourcePostgres(tmp_path_factory.mktemp("shop")).start()
    yield server
    server.stop()


@pytest.fixture
def admin(shop: SourcePostgres) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A connection of the server's administrator; all that a test makes in `public` goes."""
    with psycopg.connect(shop.url(), autocommit=True) as connection:
        yield connection
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
