"""The application in this process, with stand-ins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from starlette.testclient import TestClient
from tests.unit.gateway.world import Stub

from mainstem.gateway.app import create_app
from mainstem.gateway.services import Services


@pytest.fixture
def stub() -> Stub:
    return Stub()


@pytest.fixture
def client(stub: Stub) -> Iterator[TestClient]:
    app = create_app(cast(Services, stub), ["gateway.example"])
    with TestClient(app, base_url="http://127.0.0.1:8080", raise_server_exceptions=False) as made:
        yield made
