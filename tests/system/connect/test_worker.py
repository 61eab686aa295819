"""The real Connect worker with the real Debezium: connectors are made, survive, and go."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from mainstem.config import load_project
from mainstem.connect.care import Surroundings
from mainstem.connect.carrier import Wanted
from mainstem.connect.carriers import carrier_of
from mainstem.connect.catalogue import spec_of
from mainstem.connect.client import ConnectClient
from mainstem.connect.keeper import Keeper
from mainstem.connect.kept_secrets import KeptSecrets
from mainstem.connect.local_worker import LocalWorker
from mainstem.connect.secrets import Secrets
from mainstem.connect.spec import Role
from mainstem.errors import MainstemError
from mainstem.gateway.connector_shown import connector_shown
from mainstem.gateway.connectors import LogTopics
from mainstem.local.doctor import diagnose
from mainstem.local.stack import Stack
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.testing.source_postgres import SourcePostgres
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.kafka
TOPIC = "shop.public.orders"
SECRET = "s3cret of the shop"
LONG = 120.0


class Capturing:
    """A stack with broker and, when it is asked for, Connect; and what the catalog would want."""

    def __init__(self, stack: Stack, shop: SourcePostgres) -> None:
        self.stack = stack
        self.shop = shop
        self.wanted: dict[str, Wanted] = {}
        self.environment = {"SHOP_URL": shop.url("capturer", SECRET)}
        self.connection = Connection(stack.endpoints.bootstrap_servers)
        self.admin = Admin(self.connection)
        secrets = Secrets(stack.project.folder, self.environment)
        address = stack.endpoints.connect
        assert address is not None and address.local is not None
        self.folder = address.local
        self.client = ConnectClient(
            address.url, address.user, address.password.get_secret_value(), mask=secrets.mask
        )
        self.keeper = Keeper(
            "shop",
            lambda: dict(self.wanted),
            Surroundings(
                self.client,
                KeptSecrets(address.secrets),
                carrier_of,
                lambda name, written: spec_of(Role.SOURCE, name).resolve(written, secrets),
                secrets.mask,
                LogTopics(self.admin, 1),
            ),
            LocalWorker(address.local),
        )

    def want(
        self, identity: int = 1, *, paused: bool = False, url: str = "${env:SHOP_URL}"
    ) -> None:
        """As apply does: the topics of the changes are there before the source is."""
        self.admin.ensure_topic(TopicSpec(TOPIC, 1, 1))
        options = {"url": url, "tables": "public.orders", "heartbeat": "1 second"}
        self.wanted["shop"] = Wanted(
            "shop", identity, "postgres-cdc", options, ("public.orders",), (TOPIC,), paused
        )

    def turn(self, *, paused: bool) -> None:
        """Pauses or resumes it, and waits until that is so."""
        self.want(paused=paused)
        self.await_state("paused" if paused else "running")

    def shown(self) -> dict[str, Any]:
        """What is said of the connector."""
        return connector_shown("shop", self.keeper.care("shop"))

    def await_state(self, state: str) -> dict[str, Any]:
        """Waits until it is in that state."""
        last: dict[str, Any] = {}

        def there() -> bool:
            try:
                last.update(self.shown())
            except MainstemError:
                return False
            return last["state"] == state

        try:
            eventually(there, LONG, what=f"the connector is {state}")
        except AssertionError:
            raise AssertionError(f"{last}") from None
        return last

    def values(self, topic: str) -> list[bytes]:
        """All committed values of a topic."""
        ends = self.admin.end_offsets(topic)
        batches = read_range(self.connection, topic, dict.fromkeys(ends, 0), ends)
        return [record.value or b"" for batch in batches for record in batch]

    def changes(self) -> list[tuple[str, int]]:
        """Committed changes in the topic: operation and id."""
        payloads = [json.loads(value)["payload"] for value in self.values(TOPIC)]
        return [(p["op"], (p["after"] or p["before"])["id"]) for p in payloads]

    def await_changes(self, wanted: list[tuple[str, int]]) -> None:
        """Waits until these are there, and finds each of them once."""
        eventually(
            lambda: len(self.changes()) >= len(wanted) and self.changes(),
            LONG,
            what=f"changes {wanted}",
        )
        assert Counter(self.changes()) == Counter(wanted)


@pytest.fixture(scope="module")
def capturing(
    shop: SourcePostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Capturing]:
    folder: Path = tmp_path_factory.mktemp("capturing")
    (folder / "mainstem.toml").write_text('name = "shop"\n')
    with psycopg.connect(shop.url(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE capturer LOGIN REPLICATION PASSWORD '{SECRET}'")
        connection.execute("CREATE SCHEMA IF NOT EXISTS public")
        connection.execute("GRANT CREATE ON DATABASE shop TO capturer")
    with Stack(load_project(folder), ("broker", "connect")) as stack:
        assert stack.pid("connect") is None
        made = Capturing(stack, shop)
        made.keeper.start()
        yield made
        made.keeper.close()
        made.admin.close()


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
