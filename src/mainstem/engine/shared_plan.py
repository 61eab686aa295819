"""What the flows of a shared scan make of the same records: decoded once, one plan for all.

The records are few, so they go into the plan itself: Spark decodes them while it optimises it, and
the queries of the flows find rows, not records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.definitions.model import Definition, Query
from mainstem.engine.compile import compile_each
from mainstem.engine.decode import bad_among, decode_records, good_among, mentioned_metadata
from mainstem.engine.encode import encode
from mainstem.engine.formats import Formats
from mainstem.vocabulary import Record

_FLOW = "flow"
_BAD = -1
"""In place of the number of a flow: a record that nobody can read."""
_RECORD = [
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", "UTC")),
]
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Made(NamedTuple):
    """What became of some records."""

    rows: Sequence[pa.Table]
    """Keys and values to write, by flow."""
    bad: int
    """How many of the records nobody can read."""


class SharedPlan:
    """Of one stream. For one thread at a time."""

    def __init__(self, session: SparkSession, stream: Definition, formats: Formats) -> None:
        self._session = session
        self._stream = stream
        self._formats = formats

    def make(self, flows: Sequence[Definition], records: Sequence[Record]) -> Made:
        """The rows of each flow, in the order of the records of each partition."""
        queries = [_query_of(flow) for flow in flows]
        columns = {column for query in queries for column in query.columns_read}
        metadata = mentioned_metadata(columns)
        raw = self._session.createDataFrame(_table(records, headers="_headers" in metadata))
        decoded = _fixed(decode_records(raw, self._stream, metadata))
        good = good_among(decoded, self._stream, metadata)
        parts = [bad_among(decoded).select(F.lit(_BAD).alias(_FLOW), *_nothing())]
        made = compile_each(self._session, queries, self._stream, good, metadata)
        for number, (flow, rows) in enumerate(zip(flows, made, strict=True)):
            encoded = encode(rows, flow, self._formats)
            parts.append(encoded.select(F.lit(number).alias(_FLOW), "key", "value"))
        all_rows = _union(parts).coalesce(1).toArrow()
        numbers = all_rows.column(_FLOW)
        pairs = all_rows.select(["key", "value"])
        return Made(
            [pairs.filter(pc.equal(numbers, number)) for number in range(len(flows))],
            pc.sum(pc.equal(numbers, _BAD)).as_py() or 0,
        )


def _query_of(flow: Definition) -> Query:
    assert flow.query is not None
    return flow.query


def _nothing() -> list[Any]:
    return [F.lit(None).cast("binary").alias(name) for name in ("key", "value")]


def _fixed(rows: DataFrame) -> DataFrame:
    """The same rows with all that Spark could compute beforehand already computed."""
    return _dataset(rows.sparkSession, rows._jdf.queryExecution().optimizedPlan())


def _union(parts: Sequence[DataFrame]) -> DataFrame:
    """All rows. Spark looks once at the whole; put together one by one, it would each time."""
    session = parts[0].sparkSession
    jvm: Any = session._jvm
    plans = jvm.PythonUtils.toSeq([part._jdf.queryExecution().analyzed() for part in parts])
    union = jvm.org.apache.spark.sql.catalyst.plans.logical.Union(plans, False, False)
    return _dataset(session, union)


def _dataset(session: SparkSession, plan: Any) -> DataFrame:
    jvm: Any = session._jvm
    dataset = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
    return DataFrame(dataset, session)


def _table(records: Sequence[Record], *, headers: bool) -> pa.Table:
    """The records in Kafka's columns."""
    fields = [*_RECORD, ("headers", _HEADERS)] if headers else _RECORD
    columns: list[list[Any]] = [
        [r.key for r in records],
        [r.value for r in records],
        [r.topic for r in records],
        [r.partition for r in records],
        [r.offset for r in records],
        [r.timestamp * 1000 for r in records],
    ]
    if headers:
        pairs = [[{"key": n, "value": v} for n, v in r.headers] for r in records]
        columns.append([some or None for some in pairs])
    arrays = [pa.array(c, kind) for c, (_, kind) in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in fields])
