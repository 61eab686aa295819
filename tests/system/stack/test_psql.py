"""The served tables as psql sees them, and what its role may not do."""

from __future__ import annotations

import os
import re
import subprocess

import pandas
import pytest
import sqlalchemy

from mainstem.local.postgres_place import psql_program
from mainstem.testing.waiting import eventually

FORBIDDEN = [
    "INSERT INTO sales_by_product (product) VALUES ('x')",
    "DELETE FROM sales_by_product",
    "CREATE TABLE mine (a int)",
    "SET default_transaction_read_only = off; DELETE FROM sales_by_product",
    "SET default_transaction_read_only = off; CREATE TABLE mine (a int)",
    "SET default_transaction_read_only = off; CREATE TEMP TABLE mine (a int)",
    "SELECT rolpassword FROM pg_authid",
    "SELECT pg_read_file('/etc/passwd')",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "SET ROLE mainstem",
    "ALTER ROLE reader PASSWORD 'x'",
]


@pytest.fixture(scope="module")
def psql(shop):
    place = shop.info["postgres"]

    def run(sql: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *(psql_program(), "-X", "-w", "-v", "ON_ERROR_STOP=1", "-h", place["host"]),
                *("-p", str(place["port"]), "-U", place["reader"], place["database"]),
            ],
            input=sql,
            env={**os.environ, "PGPASSFILE": place["passfile"], "PAGER": "cat"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_columns_have_types_and_tables_a_key(shop, psql):
    shop.do(
        "CREATE TABLE kinds (id BIGINT, part STRING, price DECIMAL(10,2), at TIMESTAMP, day DATE,"
        " ok BOOLEAN, ratio DOUBLE, raw BINARY, tags ARRAY<STRING>, more STRUCT<a: INT>,"
        " PRIMARY KEY (id, part))"
    )
    try:
        shop.wait_for_rows("SELECT count(*) FROM kinds", [[0]])
        shown = psql("\\d kinds").stdout
    finally:
        shop.do("DROP TABLE kinds")
    for column, kind in {
        "id": "bigint",
        "part": "text",
        "price": "numeric",
        "at": "timestamp with time zone",
        "day": "date",
        "ok": "boolean",
        "ratio": "double precision",
        "raw": "bytea",
        "tags": "jsonb",
        "more": "jsonb",
    }.items():
        assert re.search(rf"^ {column} +\| {re.escape(kind)}", shown, re.MULTILINE), shown
    assert re.search(r"PRIMARY KEY|UNIQUE", shown)
    eventually(lambda: "kinds" not in psql("\\dt").stdout)


def test_the_reader_sees_the_tables_only(psql):
    shown = psql("\\dt").stdout
    assert "page_visits" in shown and "sales_by_product" in shown
    assert "_mainstem" not in shown
    assert psql("SELECT count(*) FROM page_visits").returncode == 0


def test_tools_find_tables_columns_and_keys(shop):
    """By reflection, as SQLAlchemy and all that stands on it do; and a frame of pandas."""
    place = shop.info["postgres"]
    url = sqlalchemy.URL.create(
        "postgresql+psycopg", place["reader"], None, place["host"], place["port"], place["database"]
    )
    engine = sqlalchemy.create_engine(url, connect_args={"passfile": place["passfile"]})
    try:
        inspector = sqlalchemy.inspect(engine)
        served = {row[0] for row in shop.rows("SHOW TABLES")}
        eventually(lambda: set(sqlalchemy.inspect(engine).get_table_names()) == served)
        columns = {c["name"]: str(c["type"]) for c in inspector.get_columns("sales_by_product")}
        described = [row[0] for row in shop.rows("DESCRIBE sales_by_product")]
        assert list(columns) == described
        (unique,) = [i for i in inspector.get_indexes("sales_by_product") if i["unique"]]
        assert unique["column_names"] == ["product"]
        frame = pandas.read_sql("SELECT * FROM sales_by_product", engine)
        assert list(frame.columns) == described
    finally:
        engine.dispose()


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_the_reader_can_only_read(psql, statement):
    done = psql(statement)
    assert done.returncode != 0
    refusal = r"ERROR: .*(permission denied|read-only|must|cannot)"
    assert re.search(refusal, done.stderr), done.stderr


def test_the_password_is_needed(shop, psql):
    place = shop.info["postgres"]
    for role in ("reader", "mainstem", "postgres"):
        done = subprocess.run(
            ["psql", "-X", "-w", "-h", place["host"], "-p", str(place["port"]), "-U", role,
             place["database"], "-c", "SELECT 1"],
            env={**os.environ, "PGPASSFILE": os.devnull}, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode != 0
