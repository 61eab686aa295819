"""Gateways and registries on the shared broker, each test with a topic of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from mainstem.local.endpoints import Endpoints
from mainstem.local.stack import Stack
from mainstem.log.connection import Connection
from mainstem.schemas.registry import Registry, topic_log
from mainstem.testing.ports import free_port
from mainstem.testing.waiting import eventually


class Gateway:
    """A gateway process whose registry has a topic of its own."""

    def __init__(self, folder: Path, endpoints: Endpoints, topic: str) -> None:
        (folder / "mainstem.toml").write_text(f'name = "tests"\n[schemas]\ntopic = "{topic}"\n')
        self._folder = folder
        self._endpoints = endpoints
        self._process: subprocess.Popen[bytes] | None = None
        self.registry = f"{endpoints.gateway_url}/registry"
        self.servers = endpoints.bootstrap_servers

    def start(self) -> None:
        with (self._folder / "gateway.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mainstem.gateway", str(self._folder)],
                env={**os.environ, **self._endpoints.environment()},
                stdout=log,
                stderr=log,
            )
        eventually(self._answers, what="the registry answers")

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(120)

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None
        try:
            return httpx2.get(f"{self.registry}/subjects", trust_env=False).status_code == 200
        except httpx2.TransportError:
            return False


@pytest.fixture(scope="session")
def gateway(servers: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Shared by all tests of this folder; a test that kills it starts it again."""
    endpoints = servers.endpoints.model_copy(
        update={"gateway_host": "127.0.0.1", "gateway_port": free_port()}
    )
    made = Gateway(tmp_path_factory.mktemp("gateway"), endpoints, f"_schemas.{uuid.uuid4().hex}")
    made.start()
    yield made
    made.kill()


@pytest.fixture
def topic() -> str:
    return f"_schemas.{uuid.uuid4().hex}"


@pytest.fixture
def open_registry(connection: Connection, topic: str) -> Iterator[Callable[[], Registry]]:
    """Makes registries that share the test's topic, as gateways do."""
    opened: list[Registry] = []

    def open_one() -> Registry:
        made = Registry(topic_log(connection, topic))
        opened.append(made)
        made.start()
        return made

    yield open_one
    for registry in opened:
        registry.close()
