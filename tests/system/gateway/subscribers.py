"""Clients that are killed and come back, over all three protocols, and what they must have seen.

The log is the judge: behind the offsets that the end of a snapshot names, each record of the topic
is one change, in the order of its partition.
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import psycopg
from tests.system.gateway.processes import Gateway
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing, Producer
from mainstem.testing.waiting import eventually

TABLE = "gw_numbers"
FORMS = ("sse", "ndjson", "websocket")
_LOST = (httpx2.TransportError, OSError, WebSocketException)
_PAUSE = 0.05
PAST_ANY = 3
"""What filters let through: every third number."""


class Writer:
    """Numbers of a few keys, and deletions of some; straight to the log, gateway or not."""

    def __init__(self, connection: Connection, topic: str, rate: int, seed: int) -> None:
        self.written = 0
        self._connection = connection
        self._topic = topic
        self._rate = rate
        self._chance = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        producer = Producer(self._connection)
        while not self._stop.wait(0.02):
            batch = []
            for _ in range(max(1, self._rate // 50)):
                key = {"k": f"k{self._chance.randrange(40)}"}
                row = None if self._chance.random() < 0.1 else {**key, "n": self.written}
                text = None if row is None else json.dumps(row).encode()
                batch.append(Outgoing(json.dumps(key).encode(), text))
                self.written += 1
            producer.send(self._topic, batch)
        producer.close()


@dataclass(frozen=True, slots=True)
class Change:
    """A row's number, None when it was deleted."""

    key: str
    n: int | None


class Subscriber:
    """One client: its connections end at random, its knowledge goes on."""

    def __init__(self, url: str, table: str, form: str, filtered: bool, seed: int) -> None:
        self.form = form
        self.filtered = filtered
        where = f" WHERE n % {PAST_ANY} = 0" if filtered else ""
        self._sql = f"SELECT k, n FROM {table}{where} EMIT CHANGES"
        self._url = url
        self._http = httpx2.Client(trust_env=False, timeout=30)
        self._chance = random.Random(seed)
        self.cuts = 0
        self.after = ""
        self.rows: dict[str, int] = {}
        self.start: dict[int, int] | None = None
        """Where the snapshot was in the log."""
        self.at: dict[int, int] = {}
        self.changes: list[Change] = []
        """All since the snapshot."""
        self.error: BaseException | None = None

    def come_and_go(self, cuts: int, stop: threading.Event) -> None:
        """Be cut off so many times."""
        try:
            while self.cuts < cuts and not stop.is_set():
                left = self._chance.randrange(1, 60)  # about as many as come meanwhile
                self._listen(lambda told, most=left: told >= most)
        except BaseException as error:  # told by the thread that waits for this one
            self.error = error

    def finish(self, ends: dict[int, int], seconds: float) -> None:
        """Go on until the end of the log."""
        deadline = time.monotonic() + seconds
        while self.at != ends:
            assert time.monotonic() < deadline, (self.form, self.at, ends)
            self._listen(lambda _: self.at == ends or time.monotonic() > deadline)

    def _listen(self, enough: Any) -> None:
        told = 0
        try:
            with contextlib.closing(self._events()) as events:
                for event in events:
                    told += self._take(event)
                    if enough(told):
                        break
        except _LOST:
            time.sleep(_PAUSE)  # the gateway is away
            return
        self.cuts += 1

    def _events(self) -> Iterator[dict[str, Any]]:
        asked = {"sql": self._sql} | ({"after": self.after} if self.after else {})
        query = str(httpx2.QueryParams(asked))
        if self.form == "websocket":
            address = self._url.replace("http://", "ws://")
            with connect(f"{address}/v1/subscribe?{query}", proxy=None) as socket:
                yield from map(json.loads, socket)
            return
        headers = {"Accept": "application/x-ndjson"} if self.form == "ndjson" else {}
        path = f"{self._url}/v1/subscribe?{query}"
        with self._http.stream("GET", path, headers=headers) as response:
            if response.status_code != 200:
                yield {"event": "error", "id": "", "data": json.loads(response.read())}
            elif self.form == "ndjson":
                yield from map(json.loads, response.iter_lines())
            else:
                for event in httpx2.EventSource(response):
                    yield {"event": event.event, "id": event.id, "data": json.loads(event.data)}

    def _take(self, event: dict[str, Any]) -> bool:
        name, data = event["event"], event["data"]
        if name == "error":
            # a gateway that has just come back does not know its tables yet
            assert data["status"] == 503, data
            raise OSError(data["title"])
        self.after = event["id"]
        if name == "snapshot":
            self.rows, self.changes, self.start = {}, [], None
        elif name == "progress":
            (offsets,) = data["offsets"].values()
            self.at = {int(p): o for p, o in offsets.items()}
            self.start = self.start or self.at
        elif name in ("upsert", "delete"):
            key, row = data["key"]["k"], data.get("row")
            if self.start is not None:
                self.changes.append(Change(key, row and row["n"]))
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row["n"]
            return True
        return False

    def check(self, topic: dict[int, list[tuple[int, Change]]]) -> None:
        """Hold what it has seen against the log: offsets and changes of each partition."""
        assert self.start is not None
        partition_of = {c.key: p for p, records in topic.items() for _, c in records}
        last = {c.key: c.n for records in topic.values() for _, c in records}
        kept = {k: n for k, n in last.items() if n is not None}
        if self.filtered:
            kept = {k: n for k, n in kept.items() if n % PAST_ANY == 0}
        assert self.rows == kept, self.form
        for partition, records in topic.items():
            wanted = [c for offset, c in records if offset >= self.start[partition]]
            seen = [c for c in self.changes if partition_of[c.key] == partition]
            if self.filtered:  # a deletion may be told of a row that the client does not have
                wanted = [c for c in wanted if c.n is not None and c.n % PAST_ANY == 0]
                seen = [c for c in seen if c.n is not None]
            assert seen == wanted, (self.form, partition)


def changes_in(connection: Connection, topic: str) -> dict[int, list[tuple[int, Change]]]:
    """All records of a topic, by partition."""
    admin = Admin(connection)
    begin, end = admin.begin_offsets(topic), admin.end_offsets(topic)
    admin.close()
    found: dict[int, list[tuple[int, Change]]] = {p: [] for p in end}
    for batch in read_range(connection, topic, begin, end):
        for record in batch:
            row = None if record.value is None else json.loads(record.value)
            change = Change(json.loads(record.key or b"")["k"], row and row["n"])
            found[record.partition].append((record.offset, change))
    return found


def ends_of(connection: Connection, topic: str) -> dict[int, int]:
    """Where the topic ends."""
    admin = Admin(connection)
    try:
        return admin.end_offsets(topic)
    finally:
        admin.close()


def kill_and_check(gateway: Gateway, cuts: int, kills: int, seed: int) -> None:
    """So many cuts of all clients together, with kills of the gateway among them.

    While it is dead, every second time the served table is lost, so that it is built anew.
    """
    made = gateway.sql(f"CREATE TABLE {TABLE} (k STRING, n BIGINT, PRIMARY KEY (k))")
    assert made["kind"] == "message", made
    try:
        eventually(lambda: gateway.rows(f"SELECT * FROM {TABLE}") == [])
        _run(gateway, cuts, kills, seed)
    finally:
        if gateway.process is None or gateway.process.poll() is not None:
            gateway.start()
            gateway.ready()
        gateway.sql(f"DROP TABLE IF EXISTS {TABLE}")


def _run(gateway: Gateway, cuts: int, kills: int, seed: int) -> None:
    url = gateway.endpoints.gateway_url
    connection = Connection(gateway.endpoints.bootstrap_servers)
    kinds = [(form, filtered) for form in FORMS for filtered in (False, True)]
    clients = [
        Subscriber(url, TABLE, form, filtered, seed + i) for i, (form, filtered) in enumerate(kinds)
    ]
    each, seconds = -(-cuts // len(clients)), 120.0 + cuts
    stop = threading.Event()
    threads = [threading.Thread(target=c.come_and_go, args=(each, stop)) for c in clients]

    def have(goal: int) -> bool:
        return any(c.error for c in clients) or all(c.cuts >= goal for c in clients)

    with Writer(connection, TABLE, rate=100, seed=seed) as writer:
        try:
            for thread in threads:
                thread.start()
            for kill in range(1, kills + 1):
                goal = each * kill // (kills + 1)
                eventually(lambda goal=goal: have(goal), seconds, what=f"{goal} cuts")
                gateway.stop(signal.SIGKILL)
                if kill % 2 == 0:
                    _lose_view(gateway)
                gateway.start()
                gateway.ready()
            for thread in threads:
                thread.join(seconds)
        finally:
            stop.set()
    for client in clients:
        assert client.error is None, (client.form, client.error)
        assert client.cuts >= each
    ends = ends_of(connection, TABLE)
    for client in clients:
        client.finish(ends, 120)
    log = changes_in(connection, TABLE)
    for client in clients:
        client.check(log)
    assert sum(len(c.changes) for c in clients) > writer.written / 2


def _lose_view(gateway: Gateway) -> None:
    """The served table is gone, and has to be built from its topic."""
    url = gateway.endpoints.postgres_url.get_secret_value()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS public.{TABLE}")
        connection.execute("DELETE FROM _mainstem.views WHERE name = %s", [TABLE])
