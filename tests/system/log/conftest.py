"""A broker for the tests of log/, and topics of their own."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator

import pytest

from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection


@pytest.fixture(scope="session")
def connection(request: pytest.FixtureRequest) -> Connection:
    """The broker that MAINSTEM_TEST_BROKER names; else the one that all tests share."""
    servers = os.environ.get("MAINSTEM_TEST_BROKER")
    if not servers:
        servers = request.getfixturevalue("servers").endpoints.bootstrap_servers
    return Connection(servers)


@pytest.fixture
def admin(connection: Connection) -> Iterator[Admin]:
    admin = Admin(connection)
    yield admin
    admin.close()


@pytest.fixture
def prefix() -> str:
    return f"test-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def topic(admin: Admin, prefix: str) -> Iterator[Callable[..., str]]:
    """Makes topics with names of their own; they are deleted after the test."""
    made: list[str] = []

    def make(name: str = "topic", partitions: int = 1, **config: str) -> str:
        full = f"{prefix}.{name}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        assert admin.ensure_topic(TopicSpec(full, partitions, 1, settings))
        made.append(full)
        return full

    yield make
    for name in made:
        admin.delete_topic(name)
