"""Avro and Protobuf with schemas from a registry, against hand-written PySpark with a fixed one.

The same filter over the same events in each format. By hand, the topic has one version, and the job
knows its schema; bad records would fail it. Mainstem reads a topic with that version, and for Avro
one in which three versions take turns, and tells bad records apart.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import protobuf_by_hand
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from throughput import BATCH, EVENTS, Bench, fill
from turns import Result, Used, in_turns, used_by

from mainstem.definitions.model import Definition
from mainstem.engine.compile import flow_session
from mainstem.engine.decode import row_schema
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing
from mainstem.schemas import wire
from mainstem.schemas.model import Schema, SchemaType
from mainstem.testing.registry import MemoryRegistry

_COLUMNS = "(user_id STRING, page STRING, country STRING, n BIGINT, at TIMESTAMP)"
FORMATS = {
    "json": [f"CREATE STREAM json {_COLUMNS}"],
    "avro": [
        f"CREATE STREAM avro {_COLUMNS} WITH (format = 'avro')",
        f"CREATE STREAM avro_of_three_versions {_COLUMNS} WITH (format = 'avro')",
    ],
    "protobuf": [f"CREATE STREAM protobuf {_COLUMNS} WITH (format = 'protobuf')"],
}
"""The first stream of each is read by hand, too."""
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


def run(
    connection: Connection, jars: list[Path], folder: Path, chosen: Sequence[str]
) -> Iterator[list[Result]]:
    """By hand first, then flows; of one format after the other."""
    registry = MemoryRegistry()
    bench = Bench.open(connection, jars, folder).with_registry(registry)
    for name in chosen:
        streams = bench.declare(";".join(FORMATS[name]))
        for stream in streams:
            fill(connection, stream.topic, range(EVENTS), _writer(registry, stream))
        ways = {f"{name} by hand": partial(_by_hand, bench, streams[0])}
        for stream in streams:
            shown = stream.name.replace("_", " ")
            ways[f"{shown} by mainstem"] = partial(_by_mainstem, bench, stream)
        yield in_turns(ways)
    bench.close()


def _by_mainstem(bench: Bench, source: Definition) -> Used:
    return bench.run(*bench.derive(QUERY.format(name=source.name), [source]))


def _by_hand(bench: Bench, source: Definition) -> Used:
    definition, _ = bench.derive(QUERY.format(name=source.name), [source])
    session = flow_session(bench.machinery.spark, 2)
    servers = {"kafka.bootstrap.servers": bench.connection.servers}
    raw = (
        session.readStream.format("kafka")
        .options(**servers, subscribe=source.topic, startingOffsets="earliest")
        .option("maxOffsetsPerTrigger", BATCH)
        .load()
    )
    _rows_by_hand(raw, source).createOrReplaceTempView(source.name)
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
    return used_by(query)


def _rows_by_hand(raw: DataFrame, source: Definition) -> DataFrame:
    match source.name:
        case "json":
            row = F.from_json(F.col("value").cast("string"), row_schema(source))
        case "avro":
            row = from_avro(F.expr("substring(value, 6)"), json.dumps(_schema(0)))
        case _:
            return protobuf_by_hand.rows(raw)
    return raw.select(row.alias("row")).select("row.*")


def _writer(registry: MemoryRegistry, source: Definition) -> Callable[[int], Outgoing]:
    """What makes the records of a stream."""
    match source.name:
        case "json":
            return _json
        case "avro":
            return _avro(registry, source, 0)
        case "protobuf":
            return protobuf_by_hand.writer(registry, source.topic, _row)
    versions = [_avro(registry, source, number) for number in range(len(VERSIONS))]
    return lambda i: versions[i % len(versions)](i)


def _schema(number: int) -> Mapping[str, Any]:
    fields = [{"name": name, "type": type_} for name, type_ in VERSIONS[number]]
    return {"type": "record", "name": "click", "fields": fields}


def _avro(registry: MemoryRegistry, source: Definition, number: int) -> Callable[[int], Outgoing]:
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
