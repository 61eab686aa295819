"""Flows over tables that change 1,000 rows a second: enrichment of a stream, and a table over one.

Each figure is given as soon as it is known, and each has a limit of time: what is not reached in it
is said to be so. Flows run on and are measured when they are warm: the first minute of a JVM says
little about the rest. Beside them is what can be written by hand (`tables_by_hand`).
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import tables_by_hand
from cpu import Busy, memory_bytes
from freshness import SENT, Ages, changing, percentile
from pyspark.sql.streaming.query import StreamingQuery
from throughput import BATCH, Bench, fill

from mainstem.catalog.entry import Catalog, Entry
from mainstem.definitions.model import Definition
from mainstem.local.endpoints import Endpoints
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing
from mainstem.schemas.codec import Codec
from mainstem.schemas.known import KnownSchemas
from mainstem.testing.registry import MemoryRegistry
from mainstem.views.materialise import Materialiser

CHANGES_A_SECOND = 1_000
FEW, MANY = 100_000, 1_000_000
WARM_BATCHES = 3
"""Of the first flow; the next ones find Spark warm."""
BATCHES = 2
EVENTS = (WARM_BATCHES + BATCHES) * BATCH
WARM_SECONDS = 20.0
MEASURED_SECONDS = 30.0
LATEST_SECONDS = 3.0
"""In which what was sent in the measured time, and is not late, is seen."""
LIMIT_SECONDS = 60.0
"""For each figure."""
INPUTS = """
CREATE TABLE customers
  (id BIGINT PRIMARY KEY, name STRING, score INT, region STRING, sent DOUBLE);
CREATE TABLE shops
  (id BIGINT PRIMARY KEY, name STRING, score INT, region STRING, sent DOUBLE);
CREATE STREAM orders (id BIGINT, customer BIGINT, shop BIGINT, amount INT) WITH (key = 'id');
"""
ENRICH = {
    "shops": """CREATE STREAM rich AS SELECT o.id, o.amount, c.name, c.score
        FROM orders o JOIN shops c ON o.shop = c.id""",
    "customers": """CREATE STREAM richer AS SELECT o.id, o.amount, c.name, c.score
        FROM orders o JOIN customers c ON o.customer = c.id""",
}
TABLES = {
    "filter": "CREATE TABLE good AS SELECT id, name, score, sent FROM customers WHERE score > 5",
    "groups": """CREATE TABLE regions AS
        SELECT region, count(*) AS n, sum(score) AS score, max(sent) AS sent
        FROM customers GROUP BY region""",
    "best": """CREATE TABLE best WITH (key = 'region') AS SELECT region, id, sent FROM
        (SELECT *, row_number() OVER (PARTITION BY region ORDER BY score DESC, id) AS place
        FROM customers) WHERE place = 1""",
}
FIGURES = ("served", "enrichment", *TABLES)
_RATE, _RATE_SAID = 50_000, ">= 50,000"
_FRESH_SECONDS, _FRESH_SAID = 2.0, "< 2 s"


@dataclass(frozen=True)
class Figure:
    """What one measurement says."""

    name: str
    measured: str
    goal: str = ""
    number: str = ""
    """The part of it that the goal is about."""
    met: bool = False


def run(
    endpoints: Endpoints, jars: list[Path], folder: Path, chosen: Sequence[str]
) -> Iterator[Figure]:
    """Loading, enrichment with each size of table, then table flows over the larger one."""
    connection = Connection(endpoints.bootstrap_servers)
    bench = Bench.open(connection, jars, folder)
    bench.machinery.spark.sparkContext.setLogLevel("OFF")  # flows are stopped in mid-batch
    inputs = bench.declare(INPUTS)
    customers = inputs[0]
    with _timed() as took:
        fill(connection, customers.topic, range(MANY), _row)
    yield Figure(f"load {MANY:,} rows: into the log", f"{took():.1f} s")
    if "served" in chosen:
        yield _served(bench, endpoints, customers)
    tables = bench.machinery.tables
    with _timed() as took:
        tables.at(customers, tables.ends(customers)).count()
        tables.done()
    yield Figure(f"load {MANY:,} rows: read by the engine, once", f"{took():.1f} s")
    if "enrichment" in chosen:
        yield from _enrichments(bench, inputs)
    for name, sql in TABLES.items():
        if name in chosen:
            with _changing(connection, customers.topic, MANY):
                yield _table(bench, name, sql, inputs)
    if "groups" in chosen:
        yield _table_by_hand(bench, inputs)
    memory = memory_bytes(os.getpid())
    shown = (f"{name} {size / 1e6:,.0f} MB" for name, size in sorted(memory.items()))
    yield Figure("memory at the end", ", ".join(shown))
    bench.close()


def _enrichments(bench: Bench, inputs: Sequence[Definition]) -> Iterator[Figure]:
    customers, shops, orders = inputs
    fill(bench.connection, shops.topic, range(FEW), _row)
    fill(bench.connection, orders.topic, range(EVENTS), _order)
    for table, size, warm in ((shops, FEW, WARM_BATCHES), (customers, MANY, WARM_BATCHES - 1)):
        with _changing(bench.connection, table.topic, size):
            yield _enrichment(bench, table.name, size, inputs, warm)
    yield _enrichment_by_hand(bench, inputs)


def _served(bench: Bench, endpoints: Endpoints, table: Definition) -> Figure:
    """How long it takes until all rows are in PostgreSQL."""
    owner = endpoints.postgres_url.get_secret_value()
    reader = endpoints.postgres_reader_url.get_secret_value()
    codec = Codec(KnownSchemas(MemoryRegistry()))
    views = Materialiser(bench.connection, bench.admin, owner, reader, codec)
    with _timed() as took:
        views.start()
        views.reconcile(Catalog({table.name: Entry(table, "own.inputs.options")}))
        ends = bench.admin.end_offsets(table.topic)
        deadline = time.monotonic() + LIMIT_SECONDS
        while [view.offsets for view in views.progress()] != [ends]:
            if time.monotonic() > deadline:
                views.stop()
                return Figure(f"load {MANY:,} rows: served in PostgreSQL", _TOO_LONG)
            time.sleep(0.05)
    views.stop()
    return Figure(f"load {MANY:,} rows: served in PostgreSQL", f"{took():.1f} s")


def _enrichment(
    bench: Bench, table: str, size: int, inputs: Sequence[Definition], warm: int
) -> Figure:
    """How many events a second are joined, from when the flow is warm."""
    rich, read = bench.derive(ENRICH[table], inputs)
    query, writer = bench.start(rich, read, bench.fresh(), processingTime="200 milliseconds")
    rate, measured = _rate(query, lambda: writer.rows_written, warm)
    number = f"{rate:,.0f} events a second"
    return Figure(f"enrichment, {size:,} rows", measured, _RATE_SAID, number, rate >= _RATE)


def _enrichment_by_hand(bench: Bench, inputs: Sequence[Definition]) -> Figure:
    rich, read = bench.derive(ENRICH["customers"], inputs)
    query = tables_by_hand.enrichment(bench, rich, read)
    _, measured = _rate(query, lambda: sum(p["numInputRows"] for p in query.recentProgress), 1)
    return Figure(f"enrichment, {MANY:,} rows, by hand", measured)


def _rate(query: StreamingQuery, rows: Callable[[], int], warm: int) -> tuple[float, str]:
    """Events a second that a flow works off, when it is warm after so many batches. It ends."""
    nearly = 0.99  # Kafka's partitions do not divide a batch evenly
    try:
        if not _wait(query, lambda: rows() >= warm * BATCH * nearly):
            return 0.0, _TOO_LONG
        first, busy, clock = rows(), Busy(), time.monotonic()
        if not _wait(query, lambda: rows() >= (warm + BATCHES) * BATCH * nearly):
            return 0.0, _TOO_LONG
        count = rows() - first
        used, took = busy.own(), time.monotonic() - clock
        said = f"{count / took:,.0f} events a second, {count / used:,.0f} per CPU-second"
        return count / took, said
    finally:
        query.stop()


def _table(bench: Bench, name: str, sql: str, inputs: Sequence[Definition]) -> Figure:
    """How old changes are when they are seen, and what a refresh takes, when the flow is warm."""
    name = f"table flow, {name}, {MANY:,} rows"
    table, read = bench.derive(sql, inputs)
    query, _ = bench.start(table, read, bench.fresh(), processingTime="200 milliseconds")
    try:
        if not _wait(query, lambda: _batch(query) >= 0):
            return Figure(name, _TOO_LONG, _FRESH_SAID, _TOO_LONG)
        begun = query.recentProgress[0]["durationMs"]["triggerExecution"] / 1000
        warm = time.monotonic() + WARM_SECONDS
        _wait(query, lambda: time.monotonic() > warm)
        seen, first, busy = Ages(bench.connection, bench.admin, table.topic), _batch(query), Busy()
        seen.look(MEASURED_SECONDS)
        until, count = time.time(), _batch(query) - first
        if not count:
            return Figure(name, _TOO_LONG, _FRESH_SAID, _TOO_LONG)
        used, others = busy.own() / count, busy.others()
        took = [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress[-count:]]
        seen.look(LATEST_SECONDS)
        ages = seen.sorted(until)
        seen.close()
    finally:
        query.stop()
    oldest = percentile(ages, 0.95)
    return Figure(
        name,
        f"p95 freshness {oldest:.1f} s (p50 {percentile(ages, 0.5):.1f});"
        f" refresh {statistics.median(took):.1f} s (longest {max(took):.1f}),"
        f" {used:.1f} CPU-seconds, others had {others:.1f} cores;"
        f" the first answer {begun:.1f} s",
        _FRESH_SAID,
        f"p95 freshness {oldest:.1f} s",
        oldest < _FRESH_SECONDS,
    )


def _table_by_hand(bench: Bench, inputs: Sequence[Definition]) -> Figure:
    groups, read = bench.derive(TABLES["groups"], inputs)
    took = []
    for _ in range(2):
        with _timed() as seconds:
            tables_by_hand.answer(bench, groups, read)
        took.append(seconds())
    measured = f"{min(took):.1f} s, and nothing is taken back"
    return Figure(f"table flow, groups, {MANY:,} rows, by hand: all anew", measured)


_TOO_LONG = f"not within {LIMIT_SECONDS:.0f} s"


def _batch(query: StreamingQuery) -> int:
    """The number of the last batch that is done."""
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


def _wait(query: StreamingQuery, until: Callable[[], bool]) -> bool:
    """False when it takes too long."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not until():
        if not query.isActive:
            raise RuntimeError(f"the flow ended: {query.exception()}")
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def _timed() -> Iterator[Callable[[], float]]:
    """Gives a function that says how long the block took."""
    began, ended = time.monotonic(), 0.0
    yield lambda: ended - began
    ended = time.monotonic()


def _changing(connection: Connection, topic: str, size: int) -> AbstractContextManager[None]:
    def change(i: int, at: float) -> Outgoing:
        return _row(i * 31 % size, i % 7, at)

    return changing(connection, topic, CHANGES_A_SECOND, change)


def _row(i: int, more: int = 0, sent: float = 0.0) -> Outgoing:
    text = (
        f'{{"id":{i},"name":"name {i}","score":{i % 10 + more},'
        f'"region":"r{i % 100_000}","{SENT}":{sent:.3f}}}'
    )
    return Outgoing(key=b'{"id":%d}' % i, value=text.encode())


def _order(i: int) -> Outgoing:
    customer, shop = i * 7919 % MANY, i * 7919 % FEW
    text = f'{{"id":{i},"customer":{customer},"shop":{shop},"amount":{i % 100}}}'
    return Outgoing(key=b"%d" % i, value=text.encode())
