"""Many small flows over one stream: the cores that they take together, and how fresh they are.

Freshness is that of the rows in the topics: how long after it was meant to be sent an event is seen
by a reader of committed records. Of an aggregate, only rows with the newest event of a key count.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from cpu import cpu_by_process
from latency import wait_until_running

from mainstem.cli.client import Client
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.log.producer import Outgoing, Producer

FLOWS = 30
RATE = 500
KEYS = 100
WARM_UP_SECONDS = 60
MEASURED_SECONDS = 60
STEP_SECONDS = 0.1
LATEST_SECONDS = 10
INPUT = """
CREATE STREAM small (k STRING, n BIGINT, sent DOUBLE, at TIMESTAMP)
WITH (key = 'k', event_time = 'at', watermark = '10 seconds')
"""
SHAPES = (
    "CREATE STREAM {name} AS SELECT k, n, sent FROM small WHERE k <> '{n}'",
    "CREATE STREAM {name} AS SELECT k, upper(k) AS name, n * {n} AS times, sent FROM small",
    "CREATE STREAM {name} AS SELECT k, sent FROM small WHERE n % 7 <> {n} AND length(k) > 1",
    "CREATE STREAM {name} AS SELECT k, n + {n} AS more, sent, at FROM small",
    "CREATE TABLE {name} AS SELECT k, count(*) AS n, max(sent) AS sent FROM small GROUP BY k",
    "CREATE TABLE {name} AS SELECT k, window.start AS minute, count(*) AS n, max(sent) AS sent"
    " FROM small GROUP BY k, window(at, '1 minute')",
)
"""A third of the flows keep state."""


@dataclass(frozen=True)
class Measured:
    """Of one run."""

    cores: dict[str, float]
    """In use, by process."""
    freshness: float
    """95th percentile, in seconds."""
    batches: float
    """A second, of all flows."""


def run(client: Client, connection: Connection, pid: int) -> Measured:
    """Makes the flows, feeds them at a fixed rate, and drops them."""
    client.sql(INPUT)
    shapes = {f"small_{n}": SHAPES[n % len(SHAPES)] for n in range(FLOWS)}
    for n, (name, shape) in enumerate(shapes.items()):
        client.sql(shape.format(name=name, n=n))
    wait_until_running(client)
    admin = Admin(connection)
    reader = Reader(connection, {name: admin.end_offsets(name) for name in shapes})
    producer = Producer(connection)
    began = time.time()
    counted_from = began + WARM_UP_SECONDS
    until = counted_from + MEASURED_SECONDS
    before: dict[str, float] = {}
    batches = 0
    ages: list[float] = []
    number = 0
    while (due := began + number * STEP_SECONDS) < until:
        number += 1
        if not before and due >= counted_from:
            before, batches = cpu_by_process(pid), _batches(client)
        at = datetime.fromtimestamp(due, UTC).isoformat()
        some = [
            Outgoing(
                key=b"k%d" % (i % KEYS),
                value=json.dumps({"k": f"k{i % KEYS}", "n": i, "sent": due, "at": at}).encode(),
            )
            for i in range(int(RATE * STEP_SECONDS))
        ]
        producer.send("small", some)
        ages += _ages(reader, due + STEP_SECONDS, counted_from)
    after = cpu_by_process(pid)
    done = _batches(client) - batches
    ages += _ages(reader, until + LATEST_SECONDS, counted_from)
    producer.close()
    reader.close()
    admin.close()
    for name, shape in shapes.items():
        client.sql(f"DROP {shape.split()[1]} {name}")
    client.sql("DROP STREAM small")
    cores = {
        name: (used - before.get(name, 0.0)) / MEASURED_SECONDS for name, used in after.items()
    }
    freshness = sorted(ages)[int(len(ages) * 0.95)] if ages else float("inf")
    return Measured(cores, freshness, done / MEASURED_SECONDS)


def _batches(client: Client) -> int:
    return sum(flow["batch_id"] or 0 for flow in client.status()["flows"])


def _ages(reader: Reader, until: float, counted_from: float) -> list[float]:
    """How old events are when they are seen, up to a moment; one look at least."""
    ages: list[float] = []
    left = 0.0
    while left >= 0:
        left = until - time.time()
        records = reader.poll(5000, max(left, 0.01))
        sent = (json.loads(record.value)["sent"] for record in records if record.value)
        ages += [time.time() - at for at in sent if at >= counted_from]
    return ages
