"""Many small flows over one stream: the cores that they take together, and how fresh they are.

Freshness is that of the rows in the topics: how long after it was meant to be sent an event is seen
by a reader of committed records.
"""

from __future__ import annotations

import json
import time

from cpu import cpu_seconds
from latency import wait_until_running

from mainstem.cli.client import Client
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.log.producer import Outgoing, Producer

FLOWS = 30
RATE = 500
WARM_UP_SECONDS = 60
MEASURED_SECONDS = 60
STEP_SECONDS = 0.1
LATEST_SECONDS = 10


def run(client: Client, connection: Connection, pid: int) -> tuple[float, float]:
    """Cores in use, and the 95th percentile of freshness in seconds."""
    client.sql("CREATE STREAM small (k STRING, sent DOUBLE) WITH (key = 'k')")
    for n in range(FLOWS):
        client.sql(f"CREATE STREAM small_{n} AS SELECT k, sent FROM small WHERE k <> '{n}'")
    wait_until_running(client)
    admin = Admin(connection)
    names = [f"small_{n}" for n in range(FLOWS)]
    reader = Reader(connection, {name: admin.end_offsets(name) for name in names})
    producer = Producer(connection)
    began = time.time()
    counted_from = began + WARM_UP_SECONDS
    until = counted_from + MEASURED_SECONDS
    cpu: float | None = None
    ages: list[float] = []
    number = 0
    while (due := began + number * STEP_SECONDS) < until:
        number += 1
        if cpu is None and due >= counted_from:
            cpu = cpu_seconds(pid)
        value = json.dumps({"k": f"k{number % 100}", "sent": due}).encode()
        some = [Outgoing(key=b"k%d" % (number % 100), value=value)] * int(RATE * STEP_SECONDS)
        producer.send("small", some)
        ages += _ages(reader, due + STEP_SECONDS, counted_from)
    used = (cpu_seconds(pid) - (cpu or 0.0)) / MEASURED_SECONDS
    ages += _ages(reader, until + LATEST_SECONDS, counted_from)
    producer.close()
    reader.close()
    admin.close()
    for n in range(FLOWS):
        client.sql(f"DROP STREAM small_{n}")
    client.sql("DROP STREAM small")
    return used, sorted(ages)[int(len(ages) * 0.95)] if ages else float("inf")


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
