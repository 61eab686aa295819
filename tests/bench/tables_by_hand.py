"""What PySpark does by itself with tables that change: it reads the topic from its beginning, anew.

A stream joined to such a table reads it whole for each batch. A table over it is asked whole, too,
and what to take back from who has the last answer is left to the author.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from throughput import Bench

from mainstem.definitions.model import Definition, Kind
from mainstem.engine.compile import flow_session
from mainstem.engine.decode import row_schema


def enrichment(
    bench: Bench, definition: Definition, inputs: Sequence[Definition]
) -> StreamingQuery:
    """A stream joined to tables; into Spark's own sink, which is at least once."""
    session = flow_session(bench.machinery.spark, 2)
    for source in inputs:
        rows = (
            _table(session, bench, source)
            if source.kind is Kind.TABLE
            else bench.read_by_hand(session, source, checked=False)
        )
        rows.createOrReplaceTempView(source.name)
    return bench.write_by_hand(session, definition, "append", processingTime="200 milliseconds")


def answer(bench: Bench, definition: Definition, inputs: Sequence[Definition]) -> None:
    """The whole answer of a query over tables, written to its topic."""
    session = flow_session(bench.machinery.spark, 2)
    for source in inputs:
        _table(session, bench, source).createOrReplaceTempView(source.name)
    bench.records_by_hand(session, definition).write.format("kafka").options(
        **bench.sink_by_hand(definition)
    ).save()


def _table(session: SparkSession, bench: Bench, source: Definition) -> DataFrame:
    """The last record of each key."""
    raw = (
        session.read.format("kafka")
        .option("kafka.bootstrap.servers", bench.connection.servers)
        .option("subscribe", source.topic)
        .load()
    )
    parsed = F.from_json(F.col("value").cast("string"), row_schema(source))
    last = raw.groupBy("key").agg(F.max_by("value", "offset").alias("value"))
    return last.filter("value IS NOT NULL").select(parsed.alias("j")).select("j.*")
