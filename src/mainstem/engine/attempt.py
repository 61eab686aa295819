"""An expression that gives NULL for a row for which it fails, where Spark would fail the query."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql.classic.column import Column as ClassicColumn

from mainstem.engine.java import java_class


def attempt(column: SparkColumn) -> SparkColumn:
    """The same expression, with NULL for each row that makes it fail.

    Spark has this for some of its functions only (`try_cast`, `try_add`).
    """
    made = java_class("org.apache.spark.sql.classic.ExpressionUtils")
    try_eval = java_class("org.apache.spark.sql.catalyst.expressions.TryEval")
    classic: Any = column
    return ClassicColumn(made.column(try_eval(made.expression(classic._jc))))
