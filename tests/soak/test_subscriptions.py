"""The long form of `tests/system/gateway/test_subscriptions.py`, with another seed each time."""

from __future__ import annotations

import os

import pytest
from tests.system.gateway.conftest import gateway, process
from tests.system.gateway.processes import Gateway
from tests.system.gateway.subscribers import kill_and_check

__all__ = ["gateway", "process"]  # fixtures
pytestmark = pytest.mark.kafka
SEED = int(os.environ.get("MAINSTEM_SEED", "1"))


def test_every_change_once_for_a_long_time(gateway: Gateway) -> None:
    kill_and_check(gateway, cuts=6_000, kills=20, seed=SEED)
