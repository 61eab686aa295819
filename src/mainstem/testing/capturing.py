"""A stack with the real Connect worker and the real Debezium, and a database to capture from."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from mainstem.connect.care import Surroundings
from mainstem.connect.carrier import Wanted
from mainstem.connect.carriers import carrier_of
from mainstem.connect.catalogue import spec_of
from mainstem.connect.client import ConnectClient
from mainstem.connect.keeper import Keeper
from mainstem.connect.kept_secrets import KeptSecrets
from mainstem.connect.local_worker import LocalWorker
from mainstem.connect.secrets import Secrets
from mainstem.errors import MainstemError
from mainstem.gateway.connector_shown import connector_shown
from mainstem.gateway.connectors import LogTopics
from mainstem.local.stack import Stack
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.testing.source_postgres import SourcePostgres
from mainstem.testing.waiting import eventually

TOPIC = "shop.public.orders"
SECRET = "s3cret of the shop"  # noqa: S105 - of a server on loopback that ends with the test
LONG = 240.0


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
                lambda wanted: spec_of(wanted.role, wanted.connector).resolve(
                    wanted.options, secrets
                ),
                secrets.mask,
                LogTopics(self.admin, 1, self.connection),
                self.connection.java_options(),
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

    def shown(self, name: str = "shop") -> dict[str, Any]:
        """What is said of a connector."""
        return connector_shown(name, self.keeper.care(name))

    def await_state(self, state: str, name: str = "shop") -> dict[str, Any]:
        """Waits until it is in that state."""
        last: dict[str, Any] = {}

        def there() -> bool:
            try:
                last.update(self.shown(name))
            except MainstemError:
                return False
            return bool(last["state"] == state)

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
