"""Classes of Spark's JVM by their full names, each looked up once.

py4j takes `jvm.org.apache...` for a walk: for each part of the name Java looks into all jars for a
class of that name, in vain until the last. PySpark asks for a few classes without their packages,
with each mention of a column; for these Java looks everywhere, too.
"""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext

_ASKED_BY_PYSPARK = (
    "org.apache.spark.sql.functions",
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
)


def java_class(name: str) -> Any:
    """The class of that name, for its static methods and as a constructor."""
    view: Any = SparkContext._jvm
    found = vars(view).get(name)
    if found is None:
        found = getattr(view, name)
        setattr(view, name, found)
    return found


def keep_known_classes() -> None:
    """PySpark finds the classes that it asks for most without asking Java."""
    for name in _ASKED_BY_PYSPARK:
        setattr(SparkContext._jvm, name.rpartition(".")[2], java_class(name))
