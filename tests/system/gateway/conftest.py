"""One gateway for this folder, on the shared servers."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from tests.system.gateway.gateway_process import Gateway

from mainstem.local.stack import Stack
from mainstem.testing.ports import free_port


@pytest.fixture(scope="package")
def process(servers: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "mainstem.toml").write_text('name = "tests"\n')
    endpoints = servers.endpoints.model_copy(
        update={"gateway_host": "127.0.0.1", "gateway_port": free_port()}
    )
    made = Gateway(folder, endpoints)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.stop(signal.SIGKILL)
    made.http.close()


@pytest.fixture
def gateway(process: Gateway) -> Gateway:
    """Shared by all tests; one that another test has ended starts again."""
    if process.process is None or process.process.poll() is not None:
        process.start()
    process.ready()
    return process
