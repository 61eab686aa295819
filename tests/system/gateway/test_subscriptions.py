"""Subscriptions while clients are killed, the gateway is killed, and views are built anew."""

from __future__ import annotations

import pytest
from tests.system.gateway.processes import Gateway
from tests.system.gateway.subscribers import kill_and_check

pytestmark = pytest.mark.kafka


def test_every_change_once_whatever_is_killed(gateway: Gateway) -> None:
    kill_and_check(gateway, cuts=48, kills=2, seed=7)
