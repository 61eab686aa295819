"""Classes of Spark's JVM by their full names, each looked up once.

py4j takes `jvm.org.apache...` for a walk: for each part of the name Java looks into all jars for a
class of that name, in vain until the last. PySpark asks for a few classes without their packages,
with each mention of a column; for these Java looks everywhere, too. Of each error of Java it asks a
dozen times what kind of error it is, each time with such a walk.
"""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext

_ASKED_BY_PYSPARK = (
    "org.apache.spark.sql.functions",
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
    "org.apache.spark.api.python.SimplePythonFunction",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.classic.SparkSession$",
)
_WALKED_BY_PYSPARK = ("py4j", "reflection", "TypeUtil")


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
    place: Any = SparkContext._jvm
    for part in _WALKED_BY_PYSPARK:
        found = getattr(place, part)
        setattr(place, part, found)
        place = found
