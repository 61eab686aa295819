"""Events per CPU-second: flows of Mainstem against the same queries written by hand in PySpark.

All read the same topics to their end in one Spark session; the hand-written ones end in
Spark's own Kafka sink, which is at least once. The first of them takes a record that does not fit
for a row of nulls, so Spark parses only the columns in use; the second tells such records apart, as
Mainstem does. CPU is that of the whole process family, broker included.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from turns import Result, Used, in_turns, used_by

from mainstem.catalog.entry import Entry
from mainstem.config import SparkSettings
from mainstem.definitions.model import Create, Definition
from mainstem.definitions.parse import parse
from mainstem.definitions.resolve import resolve
from mainstem.definitions.state import output_mode
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.compile import columns_of, compile_empty, flow_session
from mainstem.engine.decode import row_schema
from mainstem.engine.formats import Formats
from mainstem.engine.micro_batch import Machinery, start_micro_batch
from mainstem.engine.session import open_session
from mainstem.engine.tables import Tables
from mainstem.engine.writer import BatchWriter
from mainstem.log.admin import Admin, TopicSpec
from mainstem.log.connection import Connection
from mainstem.log.engine_topics import ensure_engine_topics
from mainstem.log.producer import Outgoing, Producer
from mainstem.testing.registry import MemoryRegistry
from mainstem.vocabulary import SystemClock

EVENTS = 2_500_000
BATCH = 500_000
KEYS = 50_000
INPUTS = """
CREATE STREAM clicks (user_id STRING, page STRING, country STRING, n BIGINT, at TIMESTAMP)
  WITH (event_time = 'at', watermark = '10 seconds');
CREATE STREAM buys (n BIGINT, price INT, at TIMESTAMP)
  WITH (event_time = 'at', watermark = '10 seconds');
"""
QUERIES = {
    "filter": """CREATE STREAM filtered WITH (key = 'user_id') AS
        SELECT user_id, page, n + 1 AS m, at FROM clicks WHERE country = 'de'""",
    "tumbling": """CREATE TABLE tumbling AS SELECT page, window.start AS minute, count(*) AS n
        FROM clicks GROUP BY page, window(at, '1 minute')""",
    "sliding": """CREATE TABLE sliding AS SELECT page, window.start AS minute, count(*) AS n
        FROM clicks GROUP BY page, window(at, '1 minute', '20 seconds')""",
    "session": """CREATE TABLE sessions AS
        SELECT user_id, session_window.start AS began, count(*) AS n
        FROM clicks GROUP BY user_id, session_window(at, '5 seconds') EMIT FINAL""",
    "running": f"""CREATE TABLE running AS
        SELECT n % {KEYS} AS k, count(*) AS n, max(at) AS last FROM clicks GROUP BY n % {KEYS}""",
    "join": """CREATE STREAM bought WITH (key = 'n') AS
        SELECT c.n, c.page, b.price FROM clicks c JOIN buys b
        ON c.n = b.n AND b.at BETWEEN c.at AND c.at + INTERVAL 10 SECONDS""",
}


@dataclass(frozen=True)
class Bench:
    """One Spark session over one broker."""

    connection: Connection
    admin: Admin
    machinery: Machinery
    folder: Path

    @staticmethod
    def open(
        connection: Connection, jars: Sequence[Path], folder: Path, *, batch: int = BATCH
    ) -> Bench:
        """Starts Spark."""
        settings = SparkSettings(max_records_per_batch=batch)
        spark = open_session(settings, jars=jars, scratch=folder)
        admin = Admin(connection)
        ensure_engine_topics(admin, 1, connection.max_record_bytes)
        checkpoints = Checkpoints(spark, str(folder))
        formats = Formats(MemoryRegistry())
        tables = Tables(spark, connection, admin, checkpoints, formats)
        parts = (tables, admin, SystemClock(), formats, folder)
        machinery = Machinery(spark, connection, settings, checkpoints, *parts)
        return Bench(connection, admin, machinery, folder)

    def with_registry(self, registry: MemoryRegistry) -> Bench:
        """The same, with schemas."""
        return replace(self, machinery=replace(self.machinery, formats=Formats(registry)))

    def close(self) -> None:
        """Ends Spark."""
        self.machinery.tables.close()
        self.machinery.spark.stop()
        self.admin.close()

    def declare(self, sql: str) -> list[Definition]:
        """Declared streams and tables, with topics of their own."""
        made = [s.definition for s in parse(sql) if isinstance(s, Create)]
        made = [replace(d, topic=f"{d.name}-{uuid.uuid4().hex[:6]}") for d in made]
        for definition in made:
            self.admin.ensure_topic(TopicSpec(definition.topic, 4, 1))
        return made

    def derive(self, sql: str, known: Sequence[Definition]) -> tuple[Definition, list[Definition]]:
        """A derived object with a topic of its own, and what it reads."""
        [definition] = self.declare(sql)
        assert definition.query is not None
        inputs = [d for name in definition.query.inputs for d in known if d.name == name]
        session = flow_session(self.machinery.spark, 2)
        columns = columns_of(compile_empty(session, definition.query, inputs))
        return resolve(definition, columns, inputs), inputs

    def start(
        self, definition: Definition, inputs: Sequence[Definition], checkpoint: str, **trigger: Any
    ) -> tuple[StreamingQuery, BatchWriter]:
        """A flow that runs."""
        session = flow_session(self.machinery.spark, 2)
        entry = Entry(definition, "own.inputs.options", generation=hash(definition.topic) % 10**9)
        return start_micro_batch(session, entry, inputs, self.machinery, checkpoint, **trigger)

    def run(self, definition: Definition, inputs: Sequence[Definition]) -> Used:
        """A flow, over all that is there."""
        query, _ = self.start(definition, inputs, self.fresh(), availableNow=True)
        return used_by(query)

    def run_by_hand(
        self, definition: Definition, inputs: Sequence[Definition], *, checked: bool
    ) -> Used:
        """The same query without Mainstem."""
        session = flow_session(self.machinery.spark, 2)
        for source in inputs:
            rows = self.read_by_hand(session, source, checked=checked)
            rows.withWatermark("at", "10 seconds").createOrReplaceTempView(source.name)
        mode = output_mode(definition)
        return used_by(self.write_by_hand(session, definition, mode, availableNow=True))

    def read_by_hand(
        self, session: SparkSession, source: Definition, *, checked: bool
    ) -> DataFrame:
        """A stream's rows, read and parsed without Mainstem."""
        raw = (
            session.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.connection.servers)
            .options(subscribe=source.topic, startingOffsets="earliest")
            .option("maxOffsetsPerTrigger", BATCH)
            .load()
        )
        schema, options = row_schema(source), {}
        if checked:
            schema, options = schema.add("bad", "string"), {"columnNameOfCorruptRecord": "bad"}
        parsed = F.from_json(F.col("value").cast("string"), schema, options)
        rows = raw.select(parsed.alias("j")).select("j.*")
        return rows.filter("bad IS NULL").drop("bad") if checked else rows

    def write_by_hand(
        self, session: SparkSession, definition: Definition, mode: str, **trigger: Any
    ) -> StreamingQuery:
        """The query over the session's views as a stream into Spark's own Kafka sink."""
        return (
            self.records_by_hand(session, definition)
            .writeStream.format("kafka")
            .options(**self.sink_by_hand(definition), checkpointLocation=self.fresh())
            .outputMode(mode)
            .trigger(**trigger)
            .start()
        )

    def records_by_hand(self, session: SparkSession, definition: Definition) -> DataFrame:
        """Keys and values of the query's rows."""
        assert definition.query is not None
        keyed = [F.col(name) for name in definition.key]
        key = F.to_json(F.struct(*keyed)) if len(keyed) > 1 else keyed[0].cast("string")
        rows = session.sql(definition.query.text)
        return rows.select(key.alias("key"), F.to_json(F.struct("*")).alias("value"))

    def sink_by_hand(self, definition: Definition) -> dict[str, str]:
        """Options of Spark's Kafka sink."""
        return {
            "kafka.bootstrap.servers": self.connection.servers,
            "topic": definition.topic,
            "kafka.linger.ms": "20",
            "kafka.batch.size": "262144",
            "kafka.compression.type": "lz4",
        }

    def fresh(self) -> str:
        """An empty folder."""
        return tempfile.mkdtemp(dir=self.folder)


def run(
    connection: Connection, jars: list[Path], folder: Path, chosen: Sequence[str]
) -> Iterator[list[Result]]:
    """By hand, by hand with bad records told apart, and as a flow; of one query after the other."""
    bench = Bench.open(connection, jars, folder)
    inputs = bench.declare(INPUTS)
    fill(connection, inputs[0].topic, range(EVENTS), _click)
    fill(connection, inputs[1].topic, range(0, EVENTS, 3), _buy)

    def flow(query: str) -> Used:
        return bench.run(*bench.derive(QUERIES[query], inputs))

    def by_hand(query: str, *, checked: bool) -> Used:
        return bench.run_by_hand(*bench.derive(QUERIES[query], inputs), checked=checked)

    for query in chosen:
        ways = {
            f"{query} by hand": partial(by_hand, query, checked=False),
            f"{query} by hand, checked": partial(by_hand, query, checked=True),
            f"{query} by mainstem": partial(flow, query),
        }
        yield in_turns(ways)
    bench.close()


def fill(
    connection: Connection, topic: str, numbers: range, make: Callable[[int], Outgoing]
) -> None:
    """Writes a record for each number."""
    producer = Producer(connection)
    for start in range(0, len(numbers), 100_000):
        part = numbers[start : start + 100_000]
        producer.send(topic, [make(i) for i in part], timeout=120)
    producer.close()


def _at(i: int) -> str:
    minutes = i // 24_000  # the clock never goes back: nothing is late
    return f"2026-11-15T{9 + minutes // 60:02d}:{minutes % 60:02d}:{i // 400 % 60:02d}Z"


def _click(i: int) -> Outgoing:
    country = ("de", "fr", "it", "pl")[i % 4]
    text = (
        f'{{"user_id":"u{i % 1000}","page":"/page/{i % 50}","n":{i},'
        f'"country":"{country}","at":"{_at(i)}"}}'
    )
    return Outgoing(key=b"u%d" % (i % 1000), value=text.encode())


def _buy(i: int) -> Outgoing:
    text = f'{{"n":{i},"price":{i % 100},"at":"{_at(i)}"}}'
    return Outgoing(key=b"%d" % i, value=text.encode())
