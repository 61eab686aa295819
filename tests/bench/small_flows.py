"""Many small flows over one stream: the cores that they take together, and how fresh they are.

A platform runs for days, so what counts is how the flows run when they have run for a while: Java
compiles for minutes. So they are warmed up until the CPU time of two pieces in a row is nearly the
same, or until a time limit.

Freshness is that of the rows in the topics: how long after it was meant to be sent an event is seen
by a reader of committed records. Of an aggregate, only rows with the newest event of a key count.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cpu import cpu_by_process
from latency import wait_until_running

from mainstem.client import Client
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.log.producer import Outgoing, Producer

FLOWS = 30
RATE = 500
KEYS = 100
WARM_UP_SECONDS = (60, 300)
"""The least and the most."""
PIECE_SECONDS = 20
STEADY = 0.05
"""The difference of two pieces in a row that are nearly the same."""
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


def run(
    client: Client, connection: Connection, pid: int, say: Callable[[str], None] = print
) -> Measured:
    """Makes the flows, feeds them at a fixed rate, and drops them; says how far it is."""
    client.sql(INPUT)
    shapes = {f"small_{n}": SHAPES[n % len(SHAPES)] for n in range(FLOWS)}
    for n, (name, shape) in enumerate(shapes.items()):
        client.sql(shape.format(name=name, n=n))
    wait_until_running(client)
    say(f"{FLOWS} flows run")
    admin = Admin(connection)
    reader = Reader(connection, {name: admin.end_offsets(name) for name in shapes})
    load = _Load(Producer(connection), reader, time.time())
    _warm_up(load, pid, say)
    before, batches = cpu_by_process(pid), _batches(client)
    load.ages.clear()
    load.counted_from = load.due
    load.run(MEASURED_SECONDS)
    after = cpu_by_process(pid)
    done = _batches(client) - batches
    load.look(load.due + LATEST_SECONDS)
    load.producer.close()
    reader.close()
    admin.close()
    for name, shape in shapes.items():
        client.sql(f"DROP {shape.split()[1]} {name}")
    client.sql("DROP STREAM small")
    cores = {
        name: (used - before.get(name, 0.0)) / MEASURED_SECONDS for name, used in after.items()
    }
    ages = sorted(load.ages)
    freshness = ages[int(len(ages) * 0.95)] if ages else float("inf")
    return Measured(cores, freshness, done / MEASURED_SECONDS)


def _warm_up(load: _Load, pid: int, say: Callable[[str], None]) -> None:
    least, most = WARM_UP_SECONDS
    last = float("inf")
    for piece in range(1, most // PIECE_SECONDS + 1):
        before = sum(cpu_by_process(pid).values())
        load.run(PIECE_SECONDS)
        cores = (sum(cpu_by_process(pid).values()) - before) / PIECE_SECONDS
        say(f"warm-up, {piece * PIECE_SECONDS} s: {cores:.2f} cores")
        if piece * PIECE_SECONDS >= least and abs(cores - last) <= STEADY * last:
            return
        last = cores


@dataclass
class _Load:
    """Sends events at a fixed rate, and looks at what comes out meanwhile."""

    producer: Producer
    reader: Reader
    due: float
    """When the next events are to be sent."""
    counted_from: float = 0.0
    ages: list[float] = field(default_factory=list)
    """How old events, sent since then, were when they were seen."""

    def run(self, seconds: float) -> None:
        """For so long."""
        for _ in range(round(seconds / STEP_SECONDS)):
            at = datetime.fromtimestamp(self.due, UTC).isoformat()
            some = [
                Outgoing(
                    key=b"k%d" % (i % KEYS),
                    value=json.dumps(
                        {"k": f"k{i % KEYS}", "n": i, "sent": self.due, "at": at}
                    ).encode(),
                )
                for i in range(int(RATE * STEP_SECONDS))
            ]
            self.producer.send("small", some)
            self.due += STEP_SECONDS
            self.look(self.due)

    def look(self, until: float) -> None:
        """At what is seen up to a moment; one look at least."""
        left = 0.0
        while left >= 0:
            left = until - time.time()
            records = self.reader.poll(5000, max(left, 0.01))
            sent = (json.loads(record.value)["sent"] for record in records if record.value)
            self.ages += [time.time() - at for at in sent if at >= self.counted_from]


def _batches(client: Client) -> int:
    return sum(flow["batch_id"] or 0 for flow in client.status()["flows"])
