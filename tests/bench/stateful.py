"""A stateful Python function over 50,000 keys, beside PySpark's own `applyInPandasWithState`.

All do the same: a count and a sum per key, one row out for each record. What is measured begins
when a flow is warm. PySpark's way is given fewer records, and a time after which it is stopped.
`transformWithState` is left out: it needs packages that Mainstem does not.
"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from cpu import Busy
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupState
from throughput import Bench, fill

from mainstem.catalog.entry import Entry
from mainstem.definitions.project import load_definitions
from mainstem.definitions.resolve import resolve
from mainstem.engine.compile import columns_of, flow_session
from mainstem.engine.keyed_rules import rows_of_function
from mainstem.engine.micro_batch import Machinery, start_micro_batch
from mainstem.log.admin import TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing

EVENTS = 1_200_000
WARM_EVENTS = 600_000
FEW = 10_000
KEYS = 50_000
BATCH = 100_000
LONGEST_SECONDS = 100
SCHEMA = "k STRING, n BIGINT, at TIMESTAMP"
OUT = "k STRING, count BIGINT, total BIGINT"
FUNCTION = """
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from mainstem import State, Timer, stateful

@dataclass
class Event:
    k: str
    n: int
    at: datetime

@dataclass
class Kept:
    count: int
    total: int

@dataclass
class Out:
    k: str
    count: int
    total: int

@stateful(stream="numbers", key="k")
def summed(event: Event, state: State[Kept]) -> Iterator[Out]:
    kept = state.value = state.value or Kept(0, 0)
    kept.count += 1
    kept.total += event.n
    yield Out(event.k, kept.count, kept.total)

@stateful(stream="numbers", key="k")
def timed(event: Event | None, state: State[Kept], timer: Timer) -> Iterator[Out]:
    kept = state.value or Kept(0, 0)
    if event is None:
        yield Out(state.key, kept.count, kept.total)
        state.clear()
        return
    state.value = kept
    kept.count += 1
    kept.total += event.n
    timer.set(event.at + timedelta(seconds=90))
    yield Out(event.k, kept.count, kept.total)
"""
Result = tuple[str, int, float | None, float]


def run(connection: Connection, jars: list[Path], folder: Path) -> Iterator[Result]:
    """Name, records, seconds (None: not done in time) and CPU-seconds of each way."""
    bench = Bench.open(connection, jars, folder, batch=BATCH)
    many, few = (f"bench-{uuid.uuid4().hex[:6]}" for _ in range(2))
    for topic, events in ((many, EVENTS), (few, FEW)):
        bench.admin.ensure_topic(TopicSpec(topic, 4, 1))
        fill(connection, topic, range(events), _number)
    machinery = bench.machinery
    ways: list[tuple[str, str, int, Callable[[str], StreamingQuery]]] = [
        ("mainstem, cold", few, FEW, partial(_mainstem, machinery, folder, "summed")),
        ("mainstem", many, EVENTS, partial(_mainstem, machinery, folder, "summed")),
        ("mainstem, timers", many, EVENTS, partial(_mainstem, machinery, folder, "timed")),
        ("applyInPandasWithState", few, FEW, partial(_by_hand, machinery, folder, _pandas)),
    ]
    for name, topic, events, way in ways:
        warm = WARM_EVENTS if events == EVENTS else 0
        busy, clock = Busy(), time.monotonic()
        query = way(topic)
        done = 0
        while warm and query.isActive and done < warm:
            time.sleep(0.05)
            done = sum(progress["numInputRows"] for progress in query.recentProgress)
            busy, clock = Busy(), time.monotonic()
        ended = query.awaitTermination(LONGEST_SECONDS)
        seconds = time.monotonic() - clock
        query.stop()
        used = busy.own()
        yield name, events - done, seconds if ended else None, used
    bench.close()


def _mainstem(machinery: Machinery, folder: Path, name: str, topic: str) -> StreamingQuery:
    sql = f"CREATE STREAM numbers ({SCHEMA}) WITH (event_time = 'at', watermark = '1 second')"
    texts = [("pipeline/bench.sql", sql), ("functions/bench.py", FUNCTION)]
    by_name = {definition.name: definition for definition in load_definitions(texts)}
    source = replace(by_name["numbers"], topic=topic)
    out = f"{topic}-{uuid.uuid4().hex[:6]}"
    machinery.admin.ensure_topic(TopicSpec(out, 4, 1))
    definition = replace(by_name[name], topic=out)
    assert definition.stateful is not None
    session = flow_session(machinery.spark, 2)
    rows = rows_of_function(session, definition, definition.stateful.function, source)
    definition = resolve(definition, columns_of(rows), [source])
    entry = Entry(definition, "bench", generation=hash(out) % 10**9)
    checkpoint = tempfile.mkdtemp(dir=folder)
    query, _ = start_micro_batch(session, entry, [source], machinery, checkpoint, availableNow=True)
    return query


def _by_hand(
    machinery: Machinery,
    folder: Path,
    transform: Callable[[DataFrame], DataFrame],
    topic: str,
) -> StreamingQuery:
    session = flow_session(machinery.spark, 2)
    connection = machinery.connection
    out = f"{topic}-{uuid.uuid4().hex[:6]}"
    machinery.admin.ensure_topic(TopicSpec(out, 4, 1))
    raw = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", connection.servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", BATCH)
        .load()
    )
    rows = raw.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("j")).select("j.*")
    return (
        transform(rows)
        .select(F.col("k").alias("key"), F.to_json(F.struct("*")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", connection.servers)
        .option("topic", out)
        .option("checkpointLocation", tempfile.mkdtemp(dir=folder))
        .outputMode("update")
        .trigger(availableNow=True)
        .start()
    )


def _pandas(rows: DataFrame) -> DataFrame:
    def each(
        key: tuple[Any, ...], parts: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        count, total = state.get if state.exists else (0, 0)
        for part in parts:
            sums = part["n"].cumsum() + total
            counts = range(count + 1, count + 1 + len(part))
            yield pd.DataFrame({"k": key[0], "count": counts, "total": sums})
            count, total = count + len(part), int(sums.iloc[-1])
        state.update((count, total))

    return rows.groupBy("k").applyInPandasWithState(
        each, OUT, "count BIGINT, total BIGINT", "update", "NoTimeout"
    )


def _number(i: int) -> Outgoing:
    key, minutes = i * 7919 % KEYS, i // 6000
    at = f"2026-11-15T{9 + minutes // 60:02d}:{minutes % 60:02d}:{i // 100 % 60:02d}Z"
    return Outgoing(b"k%d" % key, f'{{"k":"k{key}","n":{i},"at":"{at}"}}'.encode())
