"""Gateways that the tests of this folder share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from tests.system.gateway.processes import Gateway, made

from mainstem.local.stack import Stack


@pytest.fixture(scope="package")
def process(servers: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    yield from _living(made(servers, tmp_path_factory.mktemp("gateway")))


@pytest.fixture(scope="package")
def other_process(servers: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    yield from _living(made(servers, tmp_path_factory.mktemp("other-gateway")))


@pytest.fixture
def gateway(process: Gateway) -> Gateway:
    """Shared by all tests; one that another test has ended starts again."""
    return _ready(process)


@pytest.fixture
def other(other_process: Gateway) -> Gateway:
    """A second one over the same log."""
    return _ready(other_process)


def _living(gateway: Gateway) -> Iterator[Gateway]:
    yield gateway
    if gateway.process is not None and gateway.process.poll() is None:
        gateway.stop(signal.SIGKILL)
    gateway.http.close()


def _ready(gateway: Gateway) -> Gateway:
    if gateway.process is None or gateway.process.poll() is not None:
        gateway.start()
    gateway.ready()
    return gateway
