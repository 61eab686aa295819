"""An expression that gives NULL for a row for which it fails, where Spark would fail the query."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column as SparkColumn
from pyspark.sql.classic.column import Column as ClassicColumn


def attempt(column: SparkColumn) -> SparkColumn:
    """The same expression, with NULL for each row that makes it fail.

    Spark has this for some of its functions only (`try_cast`, `try_add`).
    """
    jvm: Any = SparkContext._active_spark_context._jvm  # type: ignore[union-attr]
    made = jvm.org.apache.spark.sql.classic.ExpressionUtils
    classic: Any = column
    tried = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(made.expression(classic._jc))
    return ClassicColumn(made.column(tried))
