"""Latency, open loop: events at a fixed rate, each timed from when it was meant to be sent.

To the output topic: a reader of committed records. To the served row: the table is asked over and
over (with pauses, or the asking would be most of the load), and a row counts when its newest event
is seen. One flow at a time, a warm-up is left out: it is what Java's compiler needs.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from mainstem.client import Client
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.log.producer import Outgoing, Producer

RATE = 1000
WARM_UP_SECONDS = 40
MEASURED_SECONDS = 25
KEYS = 100
ASK_EVERY_SECONDS = 0.02
INPUT = """
CREATE STREAM ticks (k STRING, sent BIGINT, at TIMESTAMP)
WITH (key = 'k', partitions = 2, event_time = 'at', watermark = '10 seconds')
"""
STATELESS = "SELECT k, sent FROM ticks WHERE sent > 0"
AGGREGATE = """
SELECT k, window.start AS minute, count(*) AS n, max(sent) AS sent
FROM ticks GROUP BY k, window(at, '1 minute')
"""
FLOWS = {
    "micro-batch, stateless": f"CREATE TABLE out WITH (key = 'k') AS {STATELESS}",
    "micro-batch, aggregate": f"CREATE TABLE out AS {AGGREGATE}",
    "real time, stateless": f"CREATE TABLE out WITH (key='k', latency='realtime') AS {STATELESS}",
    "real time, aggregate": f"CREATE TABLE out WITH (latency = 'realtime') AS {AGGREGATE}",
}


@dataclass(frozen=True)
class Latency:
    """Percentiles in milliseconds."""

    name: str
    count: int
    p50: float
    p95: float
    p99: float
    longest: float


def run(client: Client, connection: Connection) -> Iterator[Latency]:
    """All four flows, one after the other."""
    client.sql(INPUT)
    for name, sql in FLOWS.items():
        client.sql(sql)
        wait_until_running(client)
        yield from _measure(name, client, connection)
        client.sql("DROP TABLE out")
    client.sql("DROP STREAM ticks")


def _measure(name: str, client: Client, connection: Connection) -> list[Latency]:
    began = time.time()
    until = began + WARM_UP_SECONDS + MEASURED_SECONDS
    counted_from = (began + WARM_UP_SECONDS) * 1000
    topic: list[float] = []
    row: list[float] = []
    threads = [
        threading.Thread(target=_send, args=(connection, began, until)),
        threading.Thread(target=_watch_topic, args=(connection, until, counted_from, topic)),
        threading.Thread(target=_watch_rows, args=(client, until, counted_from, row)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [
        _percentiles(f"{name}: to the output topic", topic),
        _percentiles(f"{name}: to the served row", row),
    ]


def _send(connection: Connection, began: float, until: float) -> None:
    producer = Producer(connection)
    step = 0.01
    per_step = int(RATE * step)
    number = 0
    while (due := began + number * step) < until:
        time.sleep(max(0.0, due - time.time()))
        at = datetime.fromtimestamp(due, UTC).isoformat()
        records = [
            Outgoing(
                key=b"k%d" % (i % KEYS),
                value=json.dumps({"k": f"k{i % KEYS}", "sent": int(due * 1000), "at": at}).encode(),
            )
            for i in range(number * per_step, (number + 1) * per_step)
        ]
        producer.send("ticks", records)
        number += 1
    producer.close()


def _watch_topic(
    connection: Connection, until: float, counted_from: float, found: list[float]
) -> None:
    admin = Admin(connection)
    reader = Reader(connection, {"out": admin.end_offsets("out")})
    while time.time() < until + 2:
        for record in reader.poll(1000, 0.05):
            if record.value is None:
                continue
            sent = json.loads(record.value)["sent"]
            if sent >= counted_from:
                found.append(time.time() * 1000 - sent)
    reader.close()
    admin.close()


def _watch_rows(client: Client, until: float, counted_from: float, found: list[float]) -> None:
    seen: dict[str, int] = {}
    while time.time() < until + 2:
        rows = client.sql("SELECT k, max(sent) FROM out GROUP BY k")["rows"]
        now = time.time() * 1000
        for key, sent in rows:
            if sent > seen.get(key, 0):
                seen[key] = sent
                if sent >= counted_from:
                    found.append(now - sent)
        time.sleep(ASK_EVERY_SECONDS)


def wait_until_running(client: Client) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        flows = client.status()["flows"]
        if flows and all(flow["state"] == "running" for flow in flows):
            return
        time.sleep(0.2)
    message = "the flow did not start"
    raise TimeoutError(message)


def _percentiles(name: str, values: list[float]) -> Latency:
    ordered = sorted(values) or [float("nan")]

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

    return Latency(name, len(values), at(0.5), at(0.95), at(0.99), ordered[-1])
