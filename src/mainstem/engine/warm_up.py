"""What a Spark session does before the first flow needs it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession


def warm_up(spark: SparkSession) -> None:
    """Loads what the first batch of the first flow would otherwise wait for."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"rows": [sum(b.num_rows for b in batches)]})

    rows = spark.range(0, 1000, 1, 2).selectExpr(
        "from_json(to_json(struct(id)), 'id BIGINT').id AS id", "CAST(id AS STRING) AS text"
    )
    rows.mapInArrow(count, "rows long").collect()
    rows.groupBy("text").count().collect()
