"""What functions over DataFrames may do, told from Spark's plan; no broker is asked."""

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import TypeAdapter
from pyspark.sql import SparkSession

from mainstem.config import SparkSettings
from mainstem.definitions.flow import check_flow
from mainstem.definitions.model import Definition, Query
from mainstem.definitions.project import load_definitions
from mainstem.engine.answers import Answers
from mainstem.errors import MainstemError
from mainstem.log.connection import Connection

SQL = """
CREATE STREAM s (id INT, n INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 minute');
CREATE STREAM r (id INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 minute');
CREATE TABLE t (id INT PRIMARY KEY, name STRING);
CREATE TABLE u (id INT PRIMARY KEY, t INT);
"""
HEAD = """
from mainstem import stream, table
from pyspark.sql import Window, functions as F

"""
NONE: Any = None
ANYWHERE = Connection("127.0.0.1:1")


def inspect(spark: SparkSession, mark: str, parameters: str, body: str) -> Query:
    text = f"{HEAD}{mark}\ndef made({parameters}):\n    return {body}\n"
    *known, made = load_definitions([("p.sql", SQL), ("pipeline/p.py", text)])
    assert made.query is not None
    by_name = {definition.name: definition for definition in known}
    inputs = [by_name[name] for name in made.query.inputs]
    check_flow(made, inputs)
    answers = Answers(spark, ANYWHERE, SparkSettings(), NONE, NONE, NONE, NONE)
    [inspected] = answers("inspect", _payload(made, inputs))
    query = TypeAdapter(Query).validate_python(inspected["query"])
    planned = TypeAdapter(Definition).dump_python(made, mode="json")
    planned["query"] = inspected["query"]
    list(answers("analyse", {**_payload(made, inputs), "definition": planned}))
    return query


def _payload(definition: Definition, inputs: Sequence[Definition]) -> dict[str, Any]:
    dump = TypeAdapter(Definition).dump_python
    given = [dump(source, mode="json") for source in inputs]
    return {"definition": dump(definition, mode="json"), "inputs": given}


KEYS = {
    's.agg(F.count("*").alias("n"))': (),
    's.groupBy((F.col("id") % 2).alias("odd")).agg(F.collect_list("n"))': ("odd",),
    's.groupBy(F.window("at", "9 minutes", "3 minutes"), "id").count()': ("window", "id"),
    's.groupBy(F.window("_event_time", "1 hour")).count().select("window.end", "count")': ("end",),
    't.select(F.col("id").alias("key"), "name").where("key > 1")': ("key",),
    't.select("name").distinct()': ("name",),
    't.orderBy("name").limit(3)': ("id",),
    't.select("name")': None,
    't.crossJoin(t.sparkSession.createDataFrame([(1,)], "n int"))': None,
}


@pytest.mark.parametrize("body", KEYS)
def test_the_plan_tells_the_key(spark: SparkSession, body: str) -> None:
    assert inspect(spark, "@table", body[0], body).row_key == KEYS[body]


REFUSED = [
    ("@table", "s", 's.groupBy("id").count().where("count > 1")', "a filter over an aggregate"),
    ("@table", "s", 's.groupBy("id").count().groupBy("count").count()', "an aggregate of an"),
    ("@table", "s", 's.cube("id", "n").count()', "cube, rollup"),
    ("@table", "s", 's.groupBy(F.session_window("at", "1 hour"), "id").count()', "session window"),
    ("@table", "s", 's.groupBy("id").agg(F.count_distinct("n").alias("n"))', "approx_count"),
    ("@stream", "s", 's.groupBy("id").count()', "an aggregate in a @stream"),
    ("@stream(final=True)", "s", 's.groupBy("id").count()', "without watermark"),
    ("@stream", "s", "s.limit(3)", "limit is not supported in a function over streams"),
    ("@stream", "s", "s.repartition(3)", "repartition"),
    ("@stream", "s", 's.select(F.lag("n").over(Window.orderBy("at")))', "a window of rows"),
    ("@stream", "s", 's.groupBy("id").applyInPandas(lambda p: p, s.schema)', "applyInPandas"),
    ("@stream", "s, r", 's.join(r, "id", "left").select(s.id)', "LeftOuter join"),
    ("@stream", "s, r", 's.select("id").distinct().union(r.select("id"))', "a union of"),
    ("@stream", "s", "s.where(s.n > s.count())", "it asks for rows"),
    ("@stream", "s, t", 's.join(t, "id", "right").select(t.id)', "a right outer join"),
    ("@stream", "s, t", 's.select("id").union(t.select("id"))', "union"),
    ("@stream", "s, t", 's.join(t, "id").select("id").union(s.select("id"))', "more than once"),
    ("@stream", "s, t", "s", 'does not come from the input "t"'),
    (
        "@stream",
        "s, t",
        's.join(t, "id").join(getattr(s.sparkSession, "read").text("/etc/hosts"))',
        "something else",
    ),
    ("@table", "t", "t.limit(3)", "limit without orderBy"),
    ("@table", "t, u", 't.where("id IN (SELECT t FROM u)").limit(3)', "limit without orderBy"),
    (
        "@table",
        "t, u",
        't.orderBy("id").where("id IN (SELECT t FROM u LIMIT 2)").limit(3)',
        "limit without orderBy",
    ),
    (
        "@table",
        "s",
        's.groupBy(F.struct(s.id.alias("start"), s.n.alias("end")).alias("span")).count()'
        '.select("span.start", "count")',
        "primary key",
    ),
    ("@table", "t", "t.sample(0.5)", "sample"),
    ("@table(key='n')", "s", 's.groupBy("id").agg(F.max("n").alias("n"))', "grouping columns"),
    ("@stream", "s", "s.foo", "foo"),
    ("@stream", "s", "exit(3)", "SystemExit"),
]


@pytest.mark.parametrize(("mark", "parameters", "body", "words"), REFUSED)
def test_what_cannot_be_is_refused(
    spark: SparkSession, mark: str, parameters: str, body: str, words: str
) -> None:
    with pytest.raises(MainstemError) as caught:
        inspect(spark, mark, parameters, body)
    assert words in caught.value.message, caught.value.render()
    assert caught.value.hint
    location = caught.value.location
    assert location is not None and location.file == "pipeline/p.py" and location.line in (6, 7)
    assert not spark.streams.active
