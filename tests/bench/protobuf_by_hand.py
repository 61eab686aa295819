"""Clicks as Protobuf: how they are written, and how PySpark reads them without Mainstem.

Spark's own functions for it do not exist for this version of Spark, so the way by hand is the usual
one of Python: a function over Arrow batches with the classes that the compiler of Protobuf makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from mainstem.log.producer import Outgoing
from mainstem.schemas import wire
from mainstem.schemas.model import Schema, SchemaType
from mainstem.schemas.protobuf_parse import parse_protobuf
from mainstem.schemas.protobuf_read import protobuf_reading
from mainstem.testing.registry import MemoryRegistry

_TEXT = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
message click {
  string user_id = 1;
  string page = 2;
  string country = 3;
  int64 n = 4;
  google.protobuf.Timestamp at = 5;
}
"""
_COLUMNS = "user_id STRING, page STRING, country STRING, n BIGINT, at TIMESTAMP"


def writer(
    registry: MemoryRegistry, topic: str, row: Callable[[int], Mapping[str, Any]]
) -> Callable[[int], Outgoing]:
    """What makes the records."""
    parsed = parse_protobuf(Schema(SchemaType.PROTOBUF, _TEXT), registry.resolve)
    id = registry.register(f"{topic}-value", parsed.schema).id
    head, message = wire.header(id) + wire.FIRST_MESSAGE, parsed.message_class()

    def make(i: int) -> Outgoing:
        fields = dict(row(i))
        fields["at"] = {"seconds": fields["at"] // 1_000_000}
        made = message(**fields)
        return Outgoing(key=b"u%d" % (i % 1000), value=head + made.SerializeToString())

    return make


def rows(raw: DataFrame) -> DataFrame:
    """The columns of records from Kafka."""
    parsed = parse_protobuf(Schema(SchemaType.PROTOBUF, _TEXT), MemoryRegistry().resolve)
    reading = protobuf_reading(0, parsed)
    begin = wire.HEADER_BYTES + len(wire.FIRST_MESSAGE)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parse: Callable[[bytes], Any] = reading.parsed().message_class().FromString
        for batch in batches:
            found = [parse(value[begin:]) for value in batch.column(0).to_pylist()]
            times = [m.at.seconds * 1_000_000 + m.at.nanos // 1000 for m in found]
            yield pa.record_batch(
                {
                    "user_id": [m.user_id for m in found],
                    "page": [m.page for m in found],
                    "country": [m.country for m in found],
                    "n": pa.array([m.n for m in found], pa.int64()),
                    "at": pa.array(times, pa.timestamp("us", "UTC")),
                }
            )

    return raw.select("value").mapInArrow(read, _COLUMNS)
