"""Flows over tables that change 1,000 rows a second: enrichment of a stream, and a table over one.

Nothing written by hand stands beside them: Spark joins a stream to a Kafka topic only by reading
all of it for each batch, and has no table that takes rows back.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cpu import cpu_seconds
from throughput import Bench, fill

from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer

EVENTS = 1_000_000
CHANGES_A_SECOND = 1_000
SIZES = (100_000, 1_000_000)
REFRESHES = 8
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
    for size in SIZES:
        customers, orders = inputs = bench.declare(INPUTS)
        fill(connection, customers.topic, range(size), _customer)
        rich, read = bench.derive(ENRICH, inputs)
        checkpoint = bench.fresh()
        rates = []
        with _changing(connection, customers.topic, size):
            for number in range(4):
                first = number * EVENTS
                fill(
                    connection,
                    orders.topic,
                    range(first, first + EVENTS),
                    partial(_order, size=size),
                )
                cpu, clock = cpu_seconds(os.getpid()), time.monotonic()
                bench.run(rich, read, checkpoint)
                used, took = cpu_seconds(os.getpid()) - cpu, time.monotonic() - clock
                rates.append((EVENTS / used, EVENTS / took))
        per_cpu, per_second = (statistics.median(r) for r in zip(*rates[1:], strict=True))
        yield Figure(
            f"enrichment, {size:,} rows",
            f"{per_cpu:,.0f} events per CPU-second, {per_second:,.0f} a second",
            "50,000 a second on two cores",
        )
    for name, sql in TABLES.items():
        table, read = bench.derive(sql, inputs)
        checkpoint = bench.fresh()
        bench.run(table, read, checkpoint)
        costs = []
        with _changing(connection, customers.topic, SIZES[-1]):
            for _ in range(REFRESHES):
                time.sleep(1)
                cpu, clock = cpu_seconds(os.getpid()), time.monotonic()
                bench.run(table, read, checkpoint)
                costs.append((cpu_seconds(os.getpid()) - cpu, time.monotonic() - clock))
        cpu, took = (statistics.median(c) for c in zip(*costs[REFRESHES // 2 :], strict=True))
        yield Figure(
            f"table flow, {name}, {SIZES[-1]:,} rows",
            f"refresh {took:.1f} s, {cpu:.1f} CPU-seconds",
            "2 s on two cores",
        )
    bench.close()


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
