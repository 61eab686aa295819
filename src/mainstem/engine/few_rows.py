"""Few rows, held by the driver itself: no job of Spark is needed to read or to make them.

A job costs the same however few rows it is about: clients of Kafka are opened, a plan becomes
code, tasks are sent around. Few records are fetched here instead, by one client that knows how
large they are. Spark computes projections and filters over rows that its planner holds while it
plans, with the same expressions as a task would; what is left are the finished rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from mainstem.engine.java import java_class
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.vocabulary import Offsets, Record

MOST_ROWS = 1_000
"""More of them are cheaper in tasks."""
_MOST_BYTES = 4 * 1024 * 1024
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_COLUMNS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("headers", _HEADERS),
    ]
)


def span(start: Offsets, end: Offsets) -> int:
    """How many records there are between two positions, at most."""
    return sum(max(0, offset - start.get(p, 0)) for p, offset in end.items())


def few_records(
    connection: Connection, topic: str, start: Offsets, end: Offsets, most: int = MOST_ROWS
) -> list[Record] | None:
    """The committed records between two positions; None when they are many, or large."""
    if span(start, end) > most:
        return None
    records: list[Record] = []
    size = 0
    for some in read_range(connection, topic, start, end):
        records += some
        size += sum(len(r.key or b"") + len(r.value or b"") for r in some)
        if size > _MOST_BYTES:
            return None
    return records


def as_rows(spark: SparkSession, records: Sequence[Record]) -> DataFrame:
    """Records in the columns of Spark's source for Kafka."""
    rows = [
        {
            "key": record.key,
            "value": record.value,
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp * 1_000,
            "headers": [{"key": k, "value": v} for k, v in record.headers] or None,
        }
        for record in records
    ]
    made: DataFrame = spark.createDataFrame(pa.Table.from_pylist(rows, _COLUMNS))
    return made


def here(rows: DataFrame) -> DataFrame:
    """Few rows, made once."""
    execution = rows._jdf.queryExecution()
    made = execution.executedPlan().executeCollect()
    data = java_class("scala.collection.immutable.ArraySeq").unsafeWrapArray(made)
    return _held(rows.sparkSession, execution.analyzed().output(), data)


def joined(some: Sequence[DataFrame]) -> DataFrame:
    """All rows of some that are held here, with the same columns."""
    plans = [rows._jdf.queryExecution().analyzed() for rows in some]
    data = plans[0].data()
    for plan in plans[1:]:
        data = data.appendedAll(plan.data())
    return _held(some[0].sparkSession, plans[0].output(), data)


def _held(session: SparkSession, columns: Any, data: Any) -> DataFrame:
    held = java_class("org.apache.spark.sql.catalyst.plans.logical.LocalRelation")
    relation = held(columns, data, False, java_class("scala.Option").empty())
    datasets = java_class("org.apache.spark.sql.classic.Dataset")
    return DataFrame(datasets.ofRows(session._jsparkSession, relation), session)
