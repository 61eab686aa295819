"""By which keys a table over tables is kept up to date, or why it is asked whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mainstem.definitions.affected import Affected, affected
from mainstem.definitions.project import load_definitions
from mainstem.vocabulary import Column

TABLES = """
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, product STRING, amount DOUBLE);
CREATE TABLE customers (id BIGINT PRIMARY KEY, region STRING, tags ARRAY<STRING>);
CREATE TABLE products (sku STRING PRIMARY KEY, category STRING);
CREATE TABLE visits (person BIGINT, day DATE, n INT, PRIMARY KEY (person, day));
"""
JOIN = "FROM orders o JOIN customers c ON o.customer = c.id"


def _affected(query: str, *columns: str, key: str | None = None) -> Affected | str:
    sources = load_definitions([("tables.sql", TABLES)])
    [result] = load_definitions([("q.sql", f"CREATE TABLE r AS {query}")])
    assert result.query is not None
    inputs = [d for d in sources if d.name in result.query.inputs]
    typed = tuple(Column(n, t) for n, _, t in (c.partition(" ") for c in columns))
    keys = tuple(key.split()) if key else (typed[0].name,)
    return affected(replace(result, columns=typed, key=keys), inputs)


@pytest.mark.parametrize(
    ("query", "columns", "keys"),
    [
        ("SELECT id, upper(region) AS r FROM customers", ["id bigint", "r string"], "id"),
        ("SELECT region, count(*) AS n FROM customers GROUP BY 1", ["region string"], "region"),
        ("SELECT DISTINCT region FROM customers", ["region string"], "region"),
        (f"SELECT o.id, c.region {JOIN}", ["id bigint", "region string"], "id"),
        (
            "SELECT customer, rank() OVER (PARTITION BY customer ORDER BY id) AS n FROM orders",
            ["customer bigint", "n int"],
            "customer",
        ),
        ("SELECT id FROM customers UNION SELECT customer FROM orders", ["id bigint"], "id"),
        (
            "SELECT id, t FROM customers LATERAL VIEW explode(tags) AS t",
            ["id bigint", "t string"],
            "id",
        ),
        (
            "SELECT upper(sku) AS k, category FROM products",
            ["k string", "category string"],
            "category",
        ),
    ],
)
def test_keys(query: str, columns: list[str], keys: str) -> None:
    """A plain column that all that shares in a row has in common."""
    how = _affected(query, *columns)
    assert isinstance(how, Affected), how
    assert how.keys == (keys,)


@pytest.mark.parametrize(
    ("query", "columns", "why"),
    [
        ("SELECT id FROM orders ORDER BY amount LIMIT 3", ["id bigint"], "LIMIT"),
        ("SELECT count(*) AS n FROM orders", ["n bigint"], "plain column"),
        (
            f"SELECT c.region, count(*) AS n {JOIN} GROUP BY ROLLUP (c.region)",
            ["region string"],
            "several ways",
        ),
        ("SELECT id FROM orders WHERE id IN (SELECT id FROM customers)", ["id bigint"], "subquery"),
        ("SELECT id, now() AS t FROM orders", ["id bigint"], "now()"),
        ("SELECT id, rank() OVER (ORDER BY id) AS n FROM orders", ["id bigint"], "plain column"),
        ("SELECT o.id FROM orders o JOIN customers c ON o.id > c.id", ["id bigint"], "customers"),
        ("SELECT o.id FROM orders o FULL JOIN customers c ON o.id = c.id", ["id bigint"], "plain"),
        ("SELECT amount FROM orders GROUP BY amount", ["amount double"], "by its value"),
        (
            "SELECT c.region, count(*) AS n FROM orders o LEFT JOIN customers c "
            "ON o.customer = c.id GROUP BY c.region",
            ["region string"],
            "plain column",
        ),
    ],
)
def test_why_whole(query: str, columns: list[str], why: str) -> None:
    """What the text does not prove is asked whole, and EXPLAIN says why."""
    how = _affected(query, *columns)
    assert isinstance(how, str)
    assert why in how


def test_a_change_finds_its_way_over_other_tables() -> None:
    """A product touches the regions of those who ordered it."""
    query = f"SELECT c.region, count(*) AS n {JOIN} JOIN products p ON p.sku = o.product GROUP BY 1"
    how = _affected(query, "region string", "n bigint")
    assert isinstance(how, Affected)
    ways = {route.use.table: [hop.use.table for hop in route.hops] for route in how.routes}
    assert ways == {
        "orders": ["customers"],
        "customers": [],
        "products": ["orders", "customers"],
    }


def test_an_equal_column_spares_a_table() -> None:
    """What is known at the changed row is not looked up."""
    query = f"SELECT o.customer, count(c.region) AS n {JOIN} GROUP BY o.customer"
    how = _affected(query, "customer bigint", "n bigint")
    assert isinstance(how, Affected)
    assert all(not route.hops for route in how.routes)
    assert [n.keys for n in how.narrowings] == [(("customer", "customer"),), (("id", "customer"),)]


def test_an_outer_join_leads_one_way() -> None:
    """The kept side has its rows whatever the other holds, so only that one's changes are felt."""
    query = "SELECT c.id FROM orders o RIGHT JOIN customers c ON o.customer = c.id"
    how = _affected(query, "id bigint")
    assert isinstance(how, Affected)
    assert all(not route.hops for route in how.routes)
    query = "SELECT o.id FROM orders o RIGHT JOIN customers c ON o.customer = c.id"
    assert isinstance(_affected(query, "id bigint"), str)


def test_a_with_query_used_twice_is_narrowed_by_what_suits_both() -> None:
    """Its tables are read once, for two purposes."""
    query = """WITH s AS (SELECT customer, count(*) AS n FROM orders GROUP BY customer)
        SELECT c.id, a.n, b.n AS m FROM customers c
        LEFT JOIN s a ON a.customer = c.id LEFT JOIN s b ON b.customer = c.id + 1"""
    assert isinstance(_affected(query, "id bigint"), str)
    query = query.replace("c.id + 1", "c.id")
    how = _affected(query, "id bigint")
    assert isinstance(how, Affected)
    assert {n.keys for n in how.narrowings} == {(("id", "id"),), (("customer", "id"),)}


@pytest.mark.parametrize(
    ("query", "columns", "key", "expected"),
    [
        ("SELECT id, upper(region) AS r FROM customers WHERE region <> 'x'", "id r", "id", True),
        ("SELECT id AS k, count(*) AS n FROM customers GROUP BY id", "k n", "k", True),
        ("SELECT id, t FROM customers LATERAL VIEW explode(tags) AS t", "id t", "id t", True),
        ("SELECT person, day, n + 1 AS n FROM visits", "person day n", "person day", True),
        ("SELECT person, sum(n) AS n FROM visits GROUP BY person", "person n", "person", False),
        (
            "SELECT region, count(*) AS n FROM customers GROUP BY region",
            "region n",
            "region",
            False,
        ),
        ("SELECT id FROM customers UNION SELECT id FROM customers", "id", "id", False),
        ("SELECT a.id FROM customers a JOIN customers b ON a.id = b.id", "id", "id", False),
        (f"SELECT o.id, c.region {JOIN}", "id region", "id", False),
    ],
)
def test_rows_that_are_made_of_one_row(query: str, columns: str, key: str, expected: bool) -> None:
    """Then no other rows of the table are looked through for a change."""
    how = _affected(query, *(f"{name} bigint" for name in columns.split()), key=key)
    assert isinstance(how, Affected), how
    assert how.row_by_row is expected
