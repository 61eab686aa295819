"""Changes of tables touch no more of a result than the text proves, and all of what they do touch.

Random changes (seeded) are made to three small tables; then for each query: a row of the answer
that is not what it was has one of the touched keys, and the query over the narrowed tables gives
the rows with these keys, no more and no less.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.definitions.affected import Affected, affected
from mainstem.definitions.asked import Asked
from mainstem.definitions.model import Definition
from mainstem.definitions.project import load_definitions
from mainstem.definitions.relations import relations, table_name
from mainstem.engine.compile import columns_of, compile_empty, compile_mentions
from mainstem.engine.decode import row_schema
from mainstem.engine.touched import Moved, narrowed, touched_keys, with_keys

pytestmark = pytest.mark.spark

TABLES = """
CREATE TABLE orders (id INT PRIMARY KEY, customer INT, product STRING, amount INT);
CREATE TABLE customers (id INT PRIMARY KEY, region STRING, friend INT);
CREATE TABLE products (sku STRING PRIMARY KEY, category STRING);
"""
QUERIES = {
    "filter": "SELECT id, amount + 1 AS more FROM orders WHERE amount > 4",
    "groups": "SELECT customer, count(*) AS n FROM orders GROUP BY customer HAVING count(*) > 1",
    "distinct": "SELECT DISTINCT customer, product FROM orders",
    "left join": "SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON o.customer = c.id",
    "right join": "SELECT c.id, amount FROM orders RIGHT JOIN customers c ON customer = c.id",
    "anti join": "SELECT id FROM orders LEFT ANTI JOIN customers c ON customer = c.id",
    "chain": """SELECT c.region, p.category, sum(o.amount) AS total FROM orders o
        JOIN customers c ON o.customer = c.id JOIN products p ON o.product = p.sku
        GROUP BY c.region, p.category""",
    "group of a left join": """SELECT c.region, count(o.id) AS n FROM customers c
        LEFT JOIN orders o ON o.customer = c.id AND o.amount > 3 GROUP BY c.region""",
    "top of each": """SELECT customer, id FROM (SELECT *, row_number() OVER
        (PARTITION BY customer ORDER BY amount DESC, id) AS place FROM orders) WHERE place <= 2""",
    "top of a join": """SELECT region, id FROM (SELECT c.region, o.id, rank() OVER w AS place
        FROM orders o, customers c WHERE o.customer = c.id
        WINDOW w AS (PARTITION BY c.region ORDER BY o.amount, o.id)) WHERE place = 1""",
    "self join": """SELECT a.id, b.region FROM customers a
        LEFT JOIN customers b ON a.friend = b.id""",
    "with": """WITH spent AS (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer)
        SELECT c.id, s.total, f.total AS of_friend FROM customers c
        LEFT JOIN spent s ON s.customer = c.id LEFT JOIN spent f ON f.customer = c.friend""",
    "having in between": """SELECT c.id, s.n FROM customers c JOIN
        (SELECT customer, count(*) AS n FROM orders GROUP BY customer HAVING count(*) > 2) s
        ON s.customer = c.id AND s.n < 6""",
    "union": """SELECT id AS who FROM customers WHERE region = 'north'
        UNION SELECT customer FROM orders WHERE amount > 7""",
    "except": "SELECT customer FROM orders EXCEPT SELECT friend FROM customers",
    "union in a join": """SELECT u.who, p.category FROM
        (SELECT customer AS who, product FROM orders
         UNION ALL SELECT friend, region FROM customers) u
        JOIN products p ON p.sku = u.product""",
    "using": """SELECT id, count(*) AS n FROM customers
        LEFT JOIN (SELECT customer AS id, product FROM orders) USING (id) GROUP BY id""",
}
ROUNDS = 2


@pytest.fixture(scope="module")
def quick(spark: SparkSession) -> SparkSession:
    """A session that compiles nothing: there are many queries over few rows."""
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return session


@pytest.mark.parametrize("name", QUERIES)
def test_all_that_is_touched_is_found(quick: SparkSession, name: str) -> None:
    """For a few changes each."""
    spark = quick
    sources = load_definitions([("tables.sql", TABLES)])
    [result] = load_definitions([("q.sql", f"CREATE TABLE r AS {QUERIES[name]}")])
    query = result.query
    assert query is not None
    inputs = [d for d in sources if d.name in query.inputs]
    columns = columns_of(compile_empty(spark, query, inputs))
    result = replace(result, columns=columns, key=tuple(c.name for c in columns))
    how = affected(result, inputs)
    assert isinstance(how, Affected), how
    types = {c.name: c.type for c in columns}
    key_columns = {k: (k, types[k]) for k in how.keys}
    at = [[c.name for c in columns].index(k) for k in how.keys]
    mentions = [table_name(t) for t in relations(Asked.of(query).parsed.tree)]
    chosen = random.Random(name)
    state = {d.name: _some_rows(chosen, d, 30) for d in inputs}
    touched = 0
    for _ in range(ROUNDS):
        old = {n: dict(rows) for n, rows in state.items()}
        for d in chosen.sample(inputs, chosen.randint(1, len(inputs))):
            _change(chosen, d, state[d.name])
        moved = {d.name: _moved(spark, d, old[d.name], state[d.name]) for d in inputs}
        was = {d.name: _frame(spark, d, old[d.name].values()) for d in inputs}
        keys = touched_keys(how, result, moved)
        assert keys is not None
        kept = keys.localCheckpoint()
        values = {tuple(row) for row in kept.collect()}
        now = [moved[n].now for n in mentions]
        read = [lambda only, rows=rows: only(rows) for rows in now]
        part = compile_mentions(spark, query, narrowed(how, result, read, kept, []))
        before, after, found = _collect(
            compile_mentions(spark, query, [was[n] for n in mentions]),
            compile_mentions(spark, query, now),
            with_keys(part, kept, key_columns),
        )
        differing = [*((before - after) + (after - before))]
        assert {tuple(row[i] for i in at) for row in differing} <= values
        assert found == Counter(
            {row: n for row, n in after.items() if tuple(row[i] for i in at) in values}
        )
        touched += len(differing)
    assert touched


def _collect(*answers: DataFrame) -> list[Counter[tuple[Any, ...]]]:
    """The rows of some answers, each as often as it is there."""
    marked = [rows.withColumn("_answer", F.lit(n)) for n, rows in enumerate(answers)]
    found: list[Counter[tuple[Any, ...]]] = [Counter() for _ in answers]
    for row in reduce(DataFrame.union, marked).collect():
        found[row[-1]][tuple(row)[:-1]] += 1
    return found


def _some_rows(chosen: random.Random, table: Definition, count: int) -> dict[Any, tuple[Any, ...]]:
    rows = (_row(chosen, table) for _ in range(count))
    return {row[0]: row for row in rows}


def _row(chosen: random.Random, table: Definition) -> tuple[Any, ...]:
    few = [None, *range(8)]
    match table.name:
        case "orders":
            product = chosen.choice([None, "p1", "p2", "p3"])
            return chosen.randrange(40), chosen.choice(few), product, chosen.randrange(10)
        case "customers":
            return chosen.randrange(8), chosen.choice([None, "north", "south"]), chosen.choice(few)
        case _:
            return chosen.choice(["p1", "p2", "p3", "north"]), chosen.choice(["x", "y"])


def _change(chosen: random.Random, table: Definition, rows: dict[Any, tuple[Any, ...]]) -> None:
    for key in chosen.sample(sorted(rows), min(len(rows), chosen.randrange(3))):
        del rows[key]
    for _ in range(chosen.randint(1, 3)):
        row = _row(chosen, table)
        rows[row[0]] = row


def _moved(
    spark: SparkSession,
    table: Definition,
    old: dict[Any, tuple[Any, ...]],
    new: dict[Any, tuple[Any, ...]],
) -> Moved:
    before = [row for key, row in old.items() if new.get(key) != row]
    after = [row for key, row in new.items() if old.get(key) != row]
    now = _frame(spark, table, new.values())
    if not before and not after:
        return Moved(now)
    changed = [_frame(spark, table, rows) for rows in (before, after, before + after)]
    return Moved(now, *changed, frozenset(table.key))


def _frame(spark: SparkSession, table: Definition, rows: Iterable[tuple[Any, ...]]) -> DataFrame:
    schema = row_schema(table)
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    types = {"int": pa.int32(), "string": pa.string()}
    arrays = [
        pa.array(list(column), types[field.dataType.simpleString()])
        for column, field in zip(columns, schema, strict=True)
    ]
    return spark.createDataFrame(pa.table(arrays, names=schema.fieldNames()), schema)
