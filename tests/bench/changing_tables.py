"""Flows over tables that change 1,000 rows a second: enrichment of a stream, and a table over one.

Flows run on and are measured when they are warm: the first minute of a JVM says little about the
rest. Nothing written by hand stands beside them: Spark joins a stream to a Kafka topic only by
reading all of it for each batch, and has no table that takes rows back.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cpu import cpu_seconds
from pyspark.sql.streaming.query import StreamingQuery
from throughput import Bench, fill

from mainstem.definitions.model import Definition
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer

EVENTS = 5_000_000
WARM_EVENTS = 2_000_000
CHANGES_A_SECOND = 1_000
SIZES = (100_000, 1_000_000)
WARM_REFRESHES = 40
REFRESHES = 40
INPUTS = """
CREATE TABLE customers (id BIGINT PRIMARY KEY, name STRING, score INT, region STRING);
CREATE STREAM orders (id BIGINT, customer BIGINT, amount INT) WITH (key = 'id');
"""
ENRICH = """CREATE STREAM rich AS SELECT o.id, o.amount, c.name, c.score
    FROM orders o JOIN customers c ON o.customer = c.id"""
TABLES = {
    "filter": "CREATE TABLE good AS SELECT id, name, score FROM customers WHERE score > 5",
    "groups": """CREATE TABLE regions AS SELECT region, count(*) AS n, sum(score) AS score
        FROM customers GROUP BY region""",
    "best of each": """CREATE TABLE best WITH (key = 'region') AS SELECT region, id FROM
        (SELECT *, row_number() OVER (PARTITION BY region ORDER BY score DESC, id) AS place
        FROM customers) WHERE place = 1""",
}


@dataclass(frozen=True)
class Figure:
    """What one measurement says."""

    name: str
    measured: str
    goal: str


def run(connection: Connection, jars: list[Path], folder: Path) -> Iterator[Figure]:
    """Enrichment with each size of table, then table flows over the largest."""
    bench = Bench.open(connection, jars, folder)
    inputs: list[Definition] = []
    for size in SIZES:
        customers, orders = inputs = bench.declare(INPUTS)
        fill(connection, customers.topic, range(size), _customer)
        fill(connection, orders.topic, range(EVENTS), partial(_order, size=size))
        with _changing(connection, customers.topic, size):
            yield _enrichment(bench, size, inputs)
    for name, sql in TABLES.items():
        with _changing(connection, inputs[0].topic, SIZES[-1]):
            yield _table(bench, name, sql, inputs)
    bench.close()


def _enrichment(bench: Bench, size: int, inputs: Sequence[Definition]) -> Figure:
    """How many events a second are joined, from when the flow is warm."""
    rich, read = bench.derive(ENRICH, inputs)
    query, writer = bench.start(rich, read, bench.fresh(), processingTime="200 milliseconds")
    _wait(query, lambda: writer.rows_written >= WARM_EVENTS)
    rows, cpu, clock = writer.rows_written, cpu_seconds(os.getpid()), time.monotonic()
    _wait(query, lambda: writer.rows_written >= EVENTS)
    rows = writer.rows_written - rows
    used, took = cpu_seconds(os.getpid()) - cpu, time.monotonic() - clock
    query.stop()
    return Figure(
        f"enrichment, {size:,} rows",
        f"{rows / used:,.0f} events per CPU-second, {rows / took:,.0f} a second",
        "50,000 a second on two cores",
    )


def _table(bench: Bench, name: str, sql: str, inputs: Sequence[Definition]) -> Figure:
    """How long a refresh takes, from when the flow is warm."""
    table, read = bench.derive(sql, inputs)
    query, _ = bench.start(table, read, bench.fresh(), processingTime="200 milliseconds")
    _wait(query, lambda: _batch(query) >= WARM_REFRESHES)
    first, cpu = _batch(query), cpu_seconds(os.getpid())
    _wait(query, lambda: _batch(query) >= first + REFRESHES)
    used, count = cpu_seconds(os.getpid()) - cpu, _batch(query) - first
    took = [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress[-count:]]
    query.stop()
    return Figure(
        f"table flow, {name}, {SIZES[-1]:,} rows",
        f"refresh {statistics.median(took):.1f} s (longest {max(took):.1f}),"
        f" {used / count:.1f} CPU-seconds",
        "2 s on two cores",
    )


def _batch(query: StreamingQuery) -> int:
    """The number of the last batch that is done."""
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


def _wait(query: StreamingQuery, until: Callable[[], bool]) -> None:
    while not until():
        if not query.isActive:
            raise RuntimeError(f"the flow ended: {query.exception()}")
        time.sleep(0.05)


@contextmanager
def _changing(connection: Connection, topic: str, size: int) -> Iterator[None]:
    """Changes rows of the table all the time."""
    stop = threading.Event()

    def change() -> None:
        producer, number = Producer(connection), 0
        while not stop.wait(0.1):
            some = range(number, number + CHANGES_A_SECOND // 10)
            producer.send(topic, [_customer(i * 31 % size, i % 7) for i in some])
            number = some.stop
        producer.close()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _customer(i: int, more: int = 0) -> Outgoing:
    region = i % 100_000
    text = f'{{"id":{i},"name":"name {i}","score":{i % 10 + more},"region":"r{region}"}}'
    return Outgoing(key=b'{"id":%d}' % i, value=text.encode())


def _order(i: int, size: int) -> Outgoing:
    text = f'{{"id":{i},"customer":{i * 7919 % size},"amount":{i % 100}}}'
    return Outgoing(key=b"%d" % i, value=text.encode())
