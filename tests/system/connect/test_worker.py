"""The real Connect worker with the real Debezium: connectors are made, survive, and go."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import httpx2
import psycopg
import pytest

from mainstem.local.doctor import diagnose
from mainstem.testing.capturing import LONG, SECRET, Capturing
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.kafka


@pytest.fixture
def orders(capturing: Capturing) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A table of the source with two rows."""
    with psycopg.connect(capturing.shop.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, item text)")
        connection.execute("ALTER TABLE orders OWNER TO capturer")
        connection.execute("INSERT INTO orders VALUES (1, 'tea'), (2, 'milk')")
        yield connection
        connection.execute("DROP TABLE orders")


def test_what_the_connector_refuses_is_said(
    capturing: Capturing, orders: psycopg.Connection[Any]
) -> None:
    capturing.environment["WRONG_URL"] = capturing.shop.url("capturer", "n0t the password")
    capturing.want(identity=1, url="${env:WRONG_URL}")
    shown = capturing.await_state("failed")
    assert shown["error"]["title"] == "CONNECTOR_INVALID"
    assert "n0t the password" not in json.dumps(shown)
    capturing.wanted.clear()


def test_life_of_a_connector(capturing: Capturing, orders: psycopg.Connection[Any]) -> None:
    stack = capturing.stack
    capturing.want()
    shown = capturing.await_state("running")
    assert [task["state"] for task in shown["tasks"]] == ["running"]
    orders.execute("INSERT INTO orders VALUES (3, 'bread')")
    changes = [("r", 1), ("r", 2), ("c", 3)]
    capturing.await_changes(changes)
    assert "connect" in {check.name for check in diagnose(stack.project) if check.ok}
    assert_closed(capturing)

    pid = stack.pid("connect")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    orders.execute("INSERT INTO orders VALUES (4, 'salt')")
    orders.execute("DELETE FROM orders WHERE id = 1")
    changes += [("c", 4), ("d", 1)]
    capturing.await_changes(changes)
    assert stack.pid("connect") != pid
    assert stack.restarts["connect"] == 1

    capturing.turn(paused=True)
    orders.execute("INSERT INTO orders VALUES (5, 'rice')")
    [offset] = capturing.keeper.care("shop").offsets()
    assert offset["offset"]["lsn"]
    capturing.turn(paused=False)
    changes += [("c", 5)]
    capturing.await_changes(changes)

    # what was lost is not passed over: the connector stays failed until a person decides
    capturing.turn(paused=True)
    orders.execute("SELECT pg_drop_replication_slot('mainstem_shop')")
    orders.execute("INSERT INTO orders VALUES (6, 'oil')")
    capturing.want()
    shown = capturing.await_state("failed")
    assert 'the replication slot "mainstem_shop" is gone' in shown["error"]["detail"]
    capturing.await_changes(changes)
    capturing.turn(paused=True)
    capturing.keeper.care("shop").reset_offsets()
    capturing.turn(paused=False)
    changes += [("r", 2), ("r", 3), ("r", 4), ("r", 5), ("r", 6)]
    capturing.await_changes(changes)

    # another source of that name begins from the beginning, too
    capturing.want(identity=2)
    changes += [("r", 2), ("r", 3), ("r", 4), ("r", 5), ("r", 6)]
    capturing.await_changes(changes)

    slots = "SELECT slot_name FROM pg_replication_slots"
    assert orders.execute(slots).fetchall() == [("mainstem_shop",)]
    capturing.wanted.clear()
    eventually(lambda: stack.pid("connect") is None, LONG, what="the worker is gone")
    assert orders.execute(slots).fetchall() == []
    assert not list((capturing.folder / "secrets").iterdir())
    left = [topic.name for topic in capturing.admin.topics(internal=True)]
    assert not [name for name in left if "heartbeat" in name]


def assert_closed(capturing: Capturing) -> None:
    """Nobody commands the worker without its password, and no topic of it has a secret."""
    assert httpx2.get(f"{capturing.client.url}/connectors", trust_env=False).status_code == 401
    config = capturing.client.connectors()["mainstem.shop.shop"].config
    assert config["database.password"].startswith("${file:")
    for name in ("configs", "offsets", "status"):
        values = capturing.values(f"_mainstem.connect.{name}")
        assert values
        assert not [value for value in values if SECRET.encode() in value]
    log = (capturing.stack.project.state_folder / "logs" / "connect.log").read_text()
    assert "PostgresConnectorTask" in log
    assert SECRET not in log
