"""JSON -> a struct, as code that Spark compiles into the query.

Spark's own `from_json` stands beside the code that is generated for a query: there each row is
written out, with the struct and the bytes that it was made of, and what follows reads it again. The
parser is the same here; it is called as Spark calls those of its functions that are compiled.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.types import DataType

from mainstem.engine.java import java_class

STRICT = {"mode": "FAILFAST"}
"""A parser that fails is caught (`attempt`): one that is asked for the text of a bad record copies
each good one, field by field, to a row that has room for it."""
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_TYPES = "org.apache.spark.sql.types"


def from_json(text: SparkColumn, schema: DataType) -> SparkColumn:
    """The struct that a text holds; fails where it holds none, or a field does not fit."""
    kind = java_class(f"{_TYPES}.DataType").fromJson(schema.json()).asNullable()
    settings = java_class("org.apache.spark.sql.internal.SQLConf").get()
    scala = java_class("org.apache.spark.api.python.PythonUtils")
    parser = java_class(f"{_EXPRESSIONS}.json.JsonToStructsEvaluator")(
        scala.toScalaMap(STRICT),
        kind,
        settings.columnNameOfCorruptRecord(),
        java_class("scala.Option").apply(settings.sessionLocalTimeZone()),
        False,  # no name twice in a variant
    )
    of_parser = java_class(f"{_TYPES}.ObjectType")(parser.getClass())
    made = java_class("org.apache.spark.sql.classic.ExpressionUtils")
    classic: Any = text
    called = java_class(f"{_EXPRESSIONS}.objects.Invoke")(
        java_class(f"{_EXPRESSIONS}.Literal")(parser, of_parser),
        "evaluate",
        kind,
        scala.toSeq([made.expression(classic._jc)]),
        scala.toSeq([]),
        True,  # NULL of NULL
        True,  # NULL where there is no value in the text
        True,  # always the same of the same text
    )
    return ClassicColumn(made.column(called))
