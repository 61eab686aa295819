"""Tables made of tables and streams joined to tables, from the first record to the served row."""

from __future__ import annotations

import pytest


@pytest.fixture
def towns(shop):
    shop.do(
        "CREATE TABLE residents (id INT PRIMARY KEY, city STRING)",
        "CREATE STREAM fares (id INT, resident INT, amount INT) WITH (key = 'id')",
        "CREATE STREAM city_fares AS SELECT f.id, f.amount, r.city"
        " FROM fares f LEFT JOIN residents r ON f.resident = r.id",
        "CREATE TABLE fares_by_city AS SELECT city, count(*) AS n, sum(amount) AS amount"
        " FROM city_fares GROUP BY city",
        "CREATE TABLE best_city AS SELECT city, amount FROM fares_by_city"
        " ORDER BY amount DESC, city LIMIT 1",
    )
    yield shop
    shop.do("DROP STREAM fares CASCADE", "DROP TABLE residents CASCADE")


def test_a_chain_of_tables_follows_its_inputs(towns):
    towns.write("residents", {"id": 1, "city": "Rome"}, {"id": 2, "city": "Oslo"})
    towns.wait_for_rows("SELECT id, city FROM residents", [[1, "Rome"], [2, "Oslo"]])
    fares = [(1, 1, 10), (2, 2, 20), (3, 9, 5)]
    towns.write("fares", *({"id": i, "resident": r, "amount": a} for i, r, a in fares))
    towns.wait_for_rows("SELECT * FROM best_city", [["Oslo", 20]])
    towns.wait_for_rows("SELECT city, n FROM fares_by_city WHERE city IS NULL", [[None, 1]])
    towns.write("fares", {"id": 4, "resident": 1, "amount": 15})
    towns.wait_for_rows("SELECT * FROM best_city", [["Rome", 25]])
    explained = towns.sql("EXPLAIN best_city").ok().out
    assert "table over tables" in explained
    assert "stream joined to tables" in towns.sql("EXPLAIN city_fares").ok().out
