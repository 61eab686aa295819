"""Events per CPU-second: a flow of Mainstem against the same query written by hand in PySpark.

All read the same topic to its end in one Spark session, in turns; the hand-written ones end in
Spark's own Kafka sink, which is at least once. The first of them takes a record that does not fit
for a row of nulls, so Spark parses only the columns in use; the second tells such records apart, as
Mainstem does. CPU is that of the whole process family, broker included.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cpu import cpu_seconds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.catalog.entry import Entry
from mainstem.config import SparkSettings
from mainstem.definitions.model import Create, Definition
from mainstem.definitions.parse import parse
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.compile import flow_session
from mainstem.engine.micro_batch import Machinery, start_micro_batch
from mainstem.engine.session import open_session
from mainstem.engine.tables import Tables
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer
from mainstem.log.task_writer import tokens_topic
from mainstem.vocabulary import COMMITS_TOPIC, SystemClock

EVENTS = 1_500_000
ROUNDS = 3
BATCH = 500_000
SCHEMA = "user_id STRING, page STRING, country STRING, n BIGINT, at TIMESTAMP"
SQL = f"""
CREATE STREAM clicks ({SCHEMA}) WITH (event_time = 'at', watermark = '10 seconds');
CREATE STREAM filtered WITH (key = 'user_id') AS
  SELECT user_id, page, n + 1 AS m, at FROM clicks WHERE country = 'de';
CREATE TABLE counted AS
  SELECT page, window.start AS minute, count(*) AS n
  FROM clicks GROUP BY page, window(at, '1 minute');
"""


@dataclass(frozen=True)
class Result:
    """Median events per CPU-second and per second of one way of one query."""

    name: str
    per_cpu_second: float
    per_second: float


def run(connection: Connection, jars: list[Path], folder: Path) -> list[Result]:
    """All measurements, in turns."""
    settings = SparkSettings(max_records_per_batch=BATCH)
    spark = open_session(settings, jars=jars, scratch=folder)
    admin = Admin(connection)
    topic = f"bench-{uuid.uuid4().hex[:6]}"
    admin.ensure_topic(tokens_topic(COMMITS_TOPIC, 1))
    admin.ensure_topic(TopicSpec(topic, 4, 1))
    _fill(connection, topic)
    definitions = [s.definition for s in parse(SQL) if isinstance(s, Create)]
    clicks, filtered, counted = definitions
    clicks = replace(clicks, topic=topic)
    checkpoints = Checkpoints(spark, str(folder))
    tables = Tables(spark, connection, admin, checkpoints)
    machinery = Machinery(spark, connection, settings, checkpoints, tables, admin, SystemClock())
    bench = _Bench(spark, connection, admin, clicks, folder, machinery)
    ways: list[tuple[str, Callable[[], None]]] = [
        ("filter by hand", lambda: bench.by_hand(filtered, _filter)),
        ("filter by hand, checked", lambda: bench.by_hand(filtered, _filter, checked=True)),
        ("filter by mainstem", lambda: bench.by_mainstem(filtered)),
        ("window by hand", lambda: bench.by_hand(counted, _window)),
        ("window by hand, checked", lambda: bench.by_hand(counted, _window, checked=True)),
        ("window by mainstem", lambda: bench.by_mainstem(counted)),
    ]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name, _ in ways}
    for number in range(ROUNDS + 1):
        for name, way in ways if number % 2 else ways[::-1]:
            cpu, clock = cpu_seconds(os.getpid()), time.monotonic()
            way()
            used = cpu_seconds(os.getpid()) - cpu
            if number:  # the first round only warms up
                found[name].append((EVENTS / used, EVENTS / (time.monotonic() - clock)))
    spark.stop()
    return [
        Result(name, statistics.median(c for c, _ in f), statistics.median(w for _, w in f))
        for name, f in found.items()
    ]


@dataclass
class _Bench:
    spark: SparkSession
    connection: Connection
    admin: Admin
    clicks: Definition
    folder: Path
    machinery: Machinery

    def by_mainstem(self, definition: Definition) -> None:
        out, checkpoint = self._fresh()
        target = replace(definition, topic=out)
        session = flow_session(self.spark, 2)
        entry = Entry(target, "bench", generation=hash(out) % 10**9)
        query, _ = start_micro_batch(
            session, entry, [self.clicks], self.machinery, checkpoint, availableNow=True
        )
        query.awaitTermination()

    def by_hand(
        self,
        definition: Definition,
        transform: Callable[[DataFrame], DataFrame],
        *,
        checked: bool = False,
    ) -> None:
        out, checkpoint = self._fresh()
        session = flow_session(self.spark, 2)
        raw = (
            session.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.connection.servers)
            .option("subscribe", self.clicks.topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", BATCH)
            .load()
        )
        schema, options = SCHEMA, {}
        if checked:
            schema, options = f"{SCHEMA}, bad STRING", {"columnNameOfCorruptRecord": "bad"}
        parsed = F.from_json(F.col("value").cast("string"), schema, options)
        rows = raw.select(parsed.alias("j")).select("j.*")
        if checked:
            rows = rows.filter("bad IS NULL").drop("bad")
        out_rows = transform(rows)
        keyed = [F.col(name) for name in definition.key]
        key = F.to_json(F.struct(*keyed)) if len(keyed) > 1 else keyed[0].cast("string")
        query = (
            out_rows.select(key.alias("key"), F.to_json(F.struct("*")).alias("value"))
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", self.connection.servers)
            .option("kafka.linger.ms", "20")
            .option("kafka.batch.size", "262144")
            .option("kafka.compression.type", "lz4")
            .option("topic", out)
            .option("checkpointLocation", checkpoint)
            .outputMode("update")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def _fresh(self) -> tuple[str, str]:
        out = f"{self.clicks.topic}-{uuid.uuid4().hex[:6]}"
        self.admin.ensure_topic(TopicSpec(out, 4, 1))
        return out, tempfile.mkdtemp(dir=self.folder)


def _filter(rows: DataFrame) -> DataFrame:
    return rows.filter("country = 'de'").selectExpr("user_id", "page", "n + 1 AS m", "at")


def _window(rows: DataFrame) -> DataFrame:
    counted = rows.withWatermark("at", "10 seconds").groupBy("page", F.window("at", "1 minute"))
    return counted.count().selectExpr("page", "window.start AS minute", "count AS n")


def _fill(connection: Connection, topic: str) -> None:
    countries = ("de", "fr", "it", "pl")
    producer = Producer(connection)
    for start in range(0, EVENTS, 100_000):
        producer.send(
            topic,
            [
                Outgoing(
                    key=b"u%d" % (i % 1000),
                    value=(
                        f'{{"user_id":"u{i % 1000}","page":"/page/{i % 50}","n":{i},'
                        f'"country":"{countries[i % 4]}",'
                        f'"at":"2026-11-15T09:{i // 20_000 % 60:02d}:{i // 400 % 60:02d}Z"}}'
                    ).encode(),
                )
                for i in range(start, start + 100_000)
            ],
            timeout=60,
        )
    producer.close()
