"""Avro with three versions of a schema in the topic, against hand-written PySpark with a fixed one.

The same filter over the same events: as JSON and as Avro. By hand, the topic has one version, and
the job knows its schema; bad records would fail it. Mainstem reads a topic with that version, and
one in which three versions take turns, and tells bad records apart.
"""

from __future__ import annotations

import io
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastavro
from cpu import cpu_seconds
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from throughput import BATCH, EVENTS, Bench, Result, fill

from mainstem.definitions.model import Definition
from mainstem.engine.compile import flow_session
from mainstem.engine.decode import row_schema
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing
from mainstem.schemas import wire
from mainstem.schemas.model import Schema, SchemaType
from mainstem.testing.registry import MemoryRegistry

ROUNDS = 3
_COLUMNS = "(user_id STRING, page STRING, country STRING, n BIGINT, at TIMESTAMP)"
INPUTS = f"""
CREATE STREAM plain {_COLUMNS};
CREATE STREAM one {_COLUMNS} WITH (format = 'avro');
CREATE STREAM three {_COLUMNS} WITH (format = 'avro');
"""
QUERY = """CREATE STREAM filtered WITH (key = 'user_id') AS
    SELECT user_id, page, n + 1 AS m, at FROM {name} WHERE country = 'de'"""
_TIME = {"type": "long", "logicalType": "timestamp-micros"}
_OLD: list[tuple[str, Any]] = [
    ("user_id", "string"),
    ("page", "string"),
    ("country", "string"),
    ("n", "long"),
    ("at", _TIME),
]
VERSIONS: list[list[tuple[str, Any]]] = [
    _OLD,
    [*_OLD[:2], ("referrer", ["null", "string"]), *_OLD[2:]],
    [("at", ["null", _TIME]), *_OLD[:3], ("n", "int"), ("tags", {"type": "array", "items": "int"})],
]


def run(connection: Connection, jars: list[Path], folder: Path) -> list[Result]:
    """All measurements, in turns."""
    bench = Bench.open(connection, jars, folder)
    inputs = {source.name: source for source in bench.declare(INPUTS)}
    registry = MemoryRegistry()
    bench = bench.with_registry(registry)
    writers = [_writer(registry, inputs["three"], number) for number in range(3)]
    one = _writer(registry, inputs["one"], 0)
    fill(connection, inputs["plain"].topic, range(EVENTS), _json)
    fill(connection, inputs["one"].topic, range(EVENTS), one)
    fill(connection, inputs["three"].topic, range(EVENTS), lambda i: writers[i % 3](i))
    ways: dict[str, Callable[[], None]] = {
        "JSON by hand": lambda: _by_hand(bench, inputs["plain"]),
        "JSON by mainstem": lambda: _by_mainstem(bench, inputs["plain"]),
        "Avro by hand, one version": lambda: _by_hand(bench, inputs["one"]),
        "Avro by mainstem, one version": lambda: _by_mainstem(bench, inputs["one"]),
        "Avro by mainstem, three versions": lambda: _by_mainstem(bench, inputs["three"]),
    }
    found: dict[str, list[tuple[float, float]]] = {}
    for number in range(ROUNDS + 1):
        for name, way in ways.items() if number % 2 else reversed(ways.items()):
            cpu, clock = cpu_seconds(os.getpid()), time.monotonic()
            way()
            used, took = cpu_seconds(os.getpid()) - cpu, time.monotonic() - clock
            if number:  # the first round only warms up
                found.setdefault(name, []).append((EVENTS / used, EVENTS / took))
    bench.close()
    return [
        Result(name, statistics.median(c for c, _ in f), statistics.median(w for _, w in f))
        for name, f in ((name, found[name]) for name in ways)
    ]


def _by_mainstem(bench: Bench, source: Definition) -> None:
    definition, read = bench.derive(QUERY.format(name=source.name), [source])
    bench.run(definition, read, bench.fresh())


def _by_hand(bench: Bench, source: Definition) -> None:
    definition, _ = bench.derive(QUERY.format(name=source.name), [source])
    session = flow_session(bench.machinery.spark, 2)
    servers = {"kafka.bootstrap.servers": bench.connection.servers}
    raw = (
        session.readStream.format("kafka")
        .options(**servers, subscribe=source.topic, startingOffsets="earliest")
        .option("maxOffsetsPerTrigger", BATCH)
        .load()
    )
    if source.name == "plain":
        row = F.from_json(F.col("value").cast("string"), row_schema(source))
    else:
        row = from_avro(F.expr("substring(value, 6)"), json.dumps(_schema(0)))
    raw.select(row.alias("row")).select("row.*").createOrReplaceTempView(source.name)
    assert definition.query is not None
    query = (
        session.sql(definition.query.text)
        .select(F.col("user_id").alias("key"), F.to_json(F.struct("*")).alias("value"))
        .writeStream.format("kafka")
        .options(**servers, topic=definition.topic, checkpointLocation=bench.fresh())
        .option("kafka.linger.ms", "20")
        .option("kafka.batch.size", "262144")
        .option("kafka.compression.type", "lz4")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _schema(number: int) -> Mapping[str, Any]:
    fields = [{"name": name, "type": type_} for name, type_ in VERSIONS[number]]
    return {"type": "record", "name": "click", "fields": fields}


def _writer(registry: MemoryRegistry, source: Definition, number: int) -> Callable[[int], Outgoing]:
    """What makes the records of one version."""
    schema = _schema(number)
    text = json.dumps(schema)
    id = registry.register(f"{source.topic}-value", Schema(SchemaType.AVRO, text)).id
    header, parsed = wire.header(id), fastavro.parse_schema(dict(schema))

    def make(i: int) -> Outgoing:
        data = io.BytesIO()
        fastavro.schemaless_writer(data, parsed, {**_row(i), "referrer": "/", "tags": [i % 7]})
        return Outgoing(key=b"u%d" % (i % 1000), value=header + data.getvalue())

    return make


def _row(i: int) -> dict[str, Any]:
    return {
        "user_id": f"u{i % 1000}",
        "page": f"/page/{i % 50}",
        "country": ("de", "fr", "it", "pl")[i % 4],
        "n": i,
        "at": 1_794_700_800_000_000 + i * 1000,
    }


def _json(i: int) -> Outgoing:
    row = {**_row(i), "at": f"2026-11-15T09:{i // 20_000 % 60:02d}:{i // 400 % 60:02d}Z"}
    return Outgoing(key=b"u%d" % (i % 1000), value=json.dumps(row).encode())
