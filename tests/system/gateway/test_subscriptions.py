"""Subscriptions while clients are killed, the gateway is killed, and views are built anew."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import psycopg
import pytest
from tests.system.gateway.gateway_process import Gateway
from tests.system.gateway.subscribers import FORMS, Subscriber, Writer, changes_in, ends_of

from mainstem.log.connection import Connection
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.kafka
TABLE = "gw_numbers"
SEED = int(os.environ.get("MAINSTEM_SEED", "7"))
CUTS = int(os.environ.get("MAINSTEM_CUTS", "200"))
"""Of all clients together; `make soak` has more."""
KILLS = max(2, CUTS // 200)
SECONDS = 60.0 + CUTS


@pytest.fixture
def numbers(gateway: Gateway) -> Iterator[Gateway]:
    made = gateway.sql(f"CREATE TABLE {TABLE} (k STRING, n BIGINT, PRIMARY KEY (k))")
    assert made["kind"] == "message", made
    eventually(lambda: gateway.rows(f"SELECT * FROM {TABLE}") == [])
    yield gateway
    if gateway.process is None or gateway.process.poll() is not None:
        gateway.start()
        gateway.ready()
    gateway.sql(f"DROP TABLE IF EXISTS {TABLE}")


def lose_view(gateway: Gateway) -> None:
    """The served table is gone, and has to be built from its topic."""
    url = gateway.endpoints.postgres_url.get_secret_value()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE public.{TABLE}")
        connection.execute("DELETE FROM _mainstem.views WHERE name = %s", [TABLE])


def test_every_change_once_whatever_is_killed(numbers: Gateway) -> None:
    url = numbers.endpoints.gateway_url
    connection = Connection(numbers.endpoints.bootstrap_servers)
    clients = [
        Subscriber(url, TABLE, form, filtered, SEED + i)
        for i, (form, filtered) in enumerate((f, w) for f in FORMS for w in (False, True))
    ]
    each = -(-CUTS // len(clients))
    stop = threading.Event()
    threads = [
        threading.Thread(target=c.come_and_go, args=(each, stop), name=c.form) for c in clients
    ]
    with Writer(connection, TABLE, rate=300, seed=SEED) as writer:
        try:
            for thread in threads:
                thread.start()
            for kill in range(1, KILLS + 1):
                goal = each * kill // (KILLS + 1)
                eventually(
                    lambda goal=goal: (
                        any(c.error for c in clients) or all(c.cuts >= goal for c in clients)
                    ),
                    SECONDS,
                    what=f"{goal} cuts",
                )
                numbers.stop(signal.SIGKILL)
                if kill % 2 == 0:
                    lose_view(numbers)
                numbers.start()
                numbers.ready()
            for thread in threads:
                thread.join(SECONDS)
        finally:
            stop.set()
    for client in clients:
        assert client.error is None, (client.form, client.error)
        assert client.cuts >= each
    ends = ends_of(connection, TABLE)
    for client in clients:
        client.finish(ends, 60)
    log = changes_in(connection, TABLE)
    for client in clients:
        client.check(log)
    assert sum(len(c.changes) for c in clients) > writer.written / 2
    assert numbers.http.get("/v1/status").json()["subscriptions"] <= len(clients)
