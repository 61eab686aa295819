"""Wrong and wicked SQL: each its code, a place, a hint; the rest goes on."""

from __future__ import annotations

import pytest

WRONG = [
    # statement, error, what stands at the caret (None: it stands at the statement)
    ("SELEC * FROM orders", "SQL_SYNTAX", "SELEC"),
    ("SELECT * FROM orders WHERE (amount > 1", "SQL_SYNTAX", None),
    ("SELECT 'open FROM orders", "SQL_SYNTAX", "'open"),
    ("SELECT * FROM orderz", "UNKNOWN_RELATION", None),
    ("SELECT prodct FROM sales_by_product", "UNKNOWN_COLUMN", "prodct"),
    ("SELECT prodct FROM orders", "UNKNOWN_COLUMN", "prodct"),
    ("CREATE STREAM bad AS SELECT prodct FROM orders", "UNKNOWN_COLUMN", "prodct"),
    ("CREATE STREAM bad AS SELECT order_id + at AS x FROM orders", "TYPE_MISMATCH", "order_id"),
    ("INSERT INTO orders VALUES ('o', 'u', 'p', 'much', now())", "TYPE_MISMATCH", None),
    ("INSERT INTO orders (order_id, colour) VALUES ('o', 'red')", "UNKNOWN_COLUMN", None),
    ("INSERT INTO orders VALUES ('o')", "INVALID_QUERY", None),
    ("INSERT INTO big_orders VALUES ('o', 'u', 'p', 1, now())", "WRONG_KIND", None),
    ("CREATE TABLE bad (a STRING)", "MISSING_PRIMARY_KEY", "bad"),
    ("CREATE TABLE bad AS SELECT product FROM orders", "MISSING_PRIMARY_KEY", None),
    ("CREATE STREAM orders (a STRING)", "DUPLICATE_NAME", None),
    ("CREATE STREAM bad (a STRING, A INT)", "DUPLICATE_COLUMN", None),
    ("CREATE STREAM select (a STRING)", "RESERVED_NAME", "select"),
    ("CREATE STREAM _mainstem (a STRING)", "RESERVED_NAME", "_mainstem"),
    ("CREATE STREAM bad (a STRNG)", "UNKNOWN_TYPE", None),
    ("CREATE STREAM bad (a STRING) WITH (retetion = '1 day')", "UNKNOWN_OPTION", None),
    ("DROP STREAM nothing", "UNKNOWN_RELATION", None),
    ("PAUSE orders", "NO_FLOW", None),
]
WICKED = [
    ("SELECT reflect('java.lang.System', 'exit', 1) FROM orders", "FUNCTION_NOT_ALLOWED"),
    ("SELECT java_method('java.lang.Runtime', 'getRuntime') FROM orders", "FUNCTION_NOT_ALLOWED"),
    ("SELECT try_reflect('java.lang.System', 'getenv') FROM orders", "FUNCTION_NOT_ALLOWED"),
    ("SELECT pg_read_file('/etc/passwd') FROM sales_by_product", "FUNCTION_NOT_ALLOWED"),
    ("SELECT pg_sleep(100) FROM sales_by_product", "FUNCTION_NOT_ALLOWED"),
    ("CREATE STREAM bad AS SELECT reflect('a', 'b') AS x FROM orders", "FUNCTION_NOT_ALLOWED"),
    ("INSERT INTO clicks VALUES (reflect('a', 'b'), '/', 'CH', now())", "FUNCTION_NOT_ALLOWED"),
    ("SELECT * FROM parquet.`/etc/passwd`", "SQL_NOT_ALLOWED"),
    ("SELECT * FROM `/etc/passwd`", "SQL_NOT_ALLOWED"),
    ("CREATE STREAM bad AS SELECT * FROM text.`/etc/passwd`", "SQL_NOT_ALLOWED"),
    ("SELECT * FROM pg_catalog.pg_authid", "UNKNOWN_RELATION"),
    ("SELECT * FROM pg_authid", "UNKNOWN_RELATION"),
    ("SET spark.sql.shuffle.partitions = 1", "SQL_NOT_ALLOWED"),
    ("ADD JAR '/tmp/evil.jar'", "SQL_NOT_ALLOWED"),
    ("CREATE FUNCTION f AS 'evil.Class'", "SQL_NOT_ALLOWED"),
]


@pytest.mark.parametrize(("statement", "code", "at"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_sql(shop, statement, code, at):
    answer = shop.http.post("/v1/sql", json={"sql": statement})
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json", problem
    assert 400 <= answer.status_code < 500 and problem["hint"]
    assert problem["title"] == code, problem
    if at is not None:
        place = problem["location"]
        assert place["snippet"][place["column"] - 1 :].startswith(at)


@pytest.mark.parametrize(("statement", "code"), WICKED, ids=lambda value: str(value)[:40])
def test_wicked_sql(shop, statement, code):
    answer = shop.http.post("/v1/sql", json={"sql": statement})
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["title"] == code, answer.text


def test_the_caret_of_the_command_line_stands_under_the_mistake(shop):
    failed = shop.sql("SHOW TABLES;\nSELECT prodct\n  FROM orders").failed("UNKNOWN_COLUMN", 3)
    lines = failed.err.splitlines()
    where = next(i for i, line in enumerate(lines) if "UNKNOWN_COLUMN" in line)
    assert lines[where].startswith("<-e>:2:8: ")
    assert lines[where + 1 : where + 3] == ["  SELECT prodct", "         ^"]
    assert 'Did you mean "product"?' in failed.err


def test_a_mistake_in_the_last_statement_stops_the_first(shop):
    shop.sql("CREATE STREAM early (a STRING); SELEC 1").failed("SQL_SYNTAX", 3)
    shop.sql("DESCRIBE early").failed("UNKNOWN_RELATION", 3)


def test_one_request_takes_one_statement(shop):
    shop.refused(
        "ONE_STATEMENT_EXPECTED",
        "POST",
        "/v1/sql",
        json={"sql": "SELECT 1 FROM sales_by_product; DROP STREAM orders CASCADE"},
    )
    assert "orders" in {row[0] for row in shop.rows("SHOW STREAMS")}


def test_a_pull_query_cannot_write(shop):
    for statement in (
        "WITH gone AS (DELETE FROM sales_by_product RETURNING *) SELECT * FROM gone",
        "SELECT * INTO copied FROM sales_by_product",
        "DELETE FROM sales_by_product",
        "COPY sales_by_product TO '/tmp/x'",
    ):
        assert 400 <= shop.http.post("/v1/sql", json={"sql": statement}).status_code < 500


def test_after_all_that_everything_runs(shop):
    document = shop.http.get("/v1/status").json()
    assert document["engine"]["state"] == "running"
    states = {flow["flow"]: flow["state"] for flow in document["flows"]}
    assert set(states.values()) == {"running"}, states
    assert all(flow["restarts"] == 0 for flow in document["flows"])
