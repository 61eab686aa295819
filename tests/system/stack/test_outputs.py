"""Formats, exit codes and the words of SHOW, DESCRIBE and EXPLAIN."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import signal

import pytest

from mainstem.testing.waiting import eventually


@pytest.fixture(scope="module")
def prices(shop):
    """A declared table with rows of every awkward kind."""
    shop.do(
        "CREATE TABLE prices (item STRING PRIMARY KEY, price DECIMAL(38,2), tags ARRAY<STRING>)",
        "INSERT INTO prices VALUES ('a,\"b\"', 12345678901234567890.10, array('x', 'y')),"
        " ('naïve', NULL, NULL)",
    )
    shop.wait_for_rows("SELECT count(*) FROM prices", [[2]])
    yield "SELECT * FROM prices ORDER BY item"
    shop.do("DROP TABLE prices")


def test_json_is_one_document_and_keeps_all_digits(shop, prices):
    ran = shop.sql(prices, "-o", "json").ok()
    assert [row["item"] for row in ran.json] == ['a,"b"', "naïve"]
    assert "12345678901234567890.10" in ran.out
    assert ran.json[0]["tags"] == ["x", "y"]
    assert ran.json[1]["price"] is None


def test_jsonl_is_one_document_a_line(shop, prices):
    assert [row["item"] for row in shop.sql(prices, "-o", "jsonl").ok().jsonl] == ['a,"b"', "naïve"]


def test_csv_reads_back(shop, prices):
    rows = list(csv.reader(io.StringIO(shop.sql(prices, "-o", "csv").ok().out)))
    assert rows == [
        ["item", "price", "tags"],
        ['a,"b"', "12345678901234567890.10", '["x", "y"]'],
        ["naïve", "", ""],
    ]


def test_data_goes_to_stdout_and_messages_to_stderr(shop, prices):
    ran = shop.sql(prices).ok()
    assert "2 rows" in ran.err and "rows" not in ran.out
    assert shop.sql(prices, "-q").ok().err == ""


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("SHOW STREAMS", "orders"),
        ("SHOW TABLES", "page_visits"),
        ("SHOW TOPICS", "orders"),
        ("SHOW FLOWS", "big_orders"),
    ],
)
def test_show(shop, statement, name):
    assert name in [row["name"] for row in shop.sql(statement, "-o", "jsonl").ok().jsonl]


def test_describe(shop):
    rows = shop.sql("DESCRIBE page_visits", "-o", "json").ok().json
    assert [(r["column"], r["type"], r["key"]) for r in rows] == [
        ("page", "string", True),
        ("minute", "timestamp", True),
        ("visits", "bigint", False),
    ]


def test_explain_says_lane_promise_and_inputs(shop):
    text = shop.sql("EXPLAIN sales_by_product").ok().out
    assert "stateful, micro-batch" in text
    assert "exactly once" in text
    assert "reads orders; writes topic sales_by_product" in text
    shop.sql("EXPLAIN orders").failed("NO_FLOW", 3)


def test_explain_says_what_windows_wait_for_and_late_records_are_taken_in(shop):
    text = shop.sql("EXPLAIN page_visits").ok().out
    assert "watermark" in text
    assert "APPLY LATE page_visits" in text
    assert "page_visits:" in shop.sql("APPLY LATE page_visits").ok().err
    shop.sql("APPLY LATE sales_by_product").failed("NOT_SUPPORTED", 3)


def test_explain_says_what_realtime_costs(shop):
    shop.do(
        "CREATE STREAM quick_orders WITH (latency = 'realtime')"
        " AS SELECT order_id FROM orders WHERE amount > 500"
    )
    try:
        text = shop.sql("EXPLAIN quick_orders").ok().out
        assert "stateless, realtime" in text and "at least once" in text
    finally:
        shop.do("DROP STREAM quick_orders")


def test_topics_and_consume(shop, prices):
    assert "prices" in [t["name"] for t in shop.cli("topics", "-o", "json").ok().json]
    read = shop.cli("consume", "prices", "-n", 2).ok().jsonl
    assert {r["key"] for r in read} == {'{"item":"a,\\"b\\""}', '{"item":"naïve"}'}
    shop.cli("consume", "pricez").failed("UNKNOWN_TOPIC")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("sql", "-e", "SHOW TABLES"), 0),
        (("drop", "orders"), 1),
        (("sql", "-e", "SELECT"), 3),
        (("sql", "--nonsense"), 64),
        (("nonsense",), 64),
        (("consume", "orders", "--from", "yesterday"), 64),
        (("--url", "http://127.0.0.1:1", "status"), 69),
    ],
)
def test_exit_codes(shop, arguments, code):
    ran = shop.cli(*arguments)
    assert ran.code == code
    assert code == 0 or "hint: " in ran.err


def test_ctrl_c_on_a_push_query_is_130_and_leaves_whole_json(shop, prices):
    with shop.running("sql", "-e", "SELECT item FROM prices EMIT CHANGES", "-o", "jsonl") as push:
        rows = [push.stdout.readline(), push.stdout.readline()]
        push.send_signal(signal.SIGINT)
        rest, words = push.communicate(timeout=120)
    assert push.returncode == 130, words
    assert sorted(rows) == ['{"_change": "upsert", "item": "a,\\"b\\""}\n',
                            '{"_change": "upsert", "item": "naïve"}\n']  # fmt: skip
    assert rest == ""
    # it may be stopped before it has counted what it has just printed
    assert re.search("stopped after [12] changes, position ", words)
    assert "Traceback" not in words


def test_a_reader_that_has_enough_ends_the_command_quietly(shop, prices):
    with shop.running("consume", "prices", "-F") as reader:
        reader.stdout.readline()
        reader.stdout.close()
        shop.do("INSERT INTO prices VALUES ('late', 1, NULL)")
        reader.wait(120)
        assert reader.stderr.read() == ""


def test_transforms_are_tried_and_then_done(shop, prices, tmp_path):
    transforms = "filter(price > 0), rename(item, name), drop(tags), mask(name, hash)"
    wrong = f"CREATE SINK priced FROM prices WITH (connector = 'files', folder = '{tmp_path}/out')"
    shop.sql(f"{wrong} TRANSFORM (filter(prise > 0))").failed("UNKNOWN_COLUMN", 3)
    rows = ['{"item": "a", "price": 12345678901234567890.10}', '{"item": "b"}', "{broken"]
    (tmp_path / "some.jsonl").write_text("\n".join(rows))
    asked = ("transform", "test", transforms, "--from", "prices", "-o", "jsonl")
    ran = shop.cli(*asked, "--file", tmp_path / "some.jsonl")
    assert ran.code == 4, ran
    assert [record["result"] for record in ran.jsonl] == ["passed", "left out", "bad"]
    hashed = hashlib.sha256(b"a").hexdigest()
    assert f'"after": {{"name": "{hashed}", "price": 12345678901234567890.10}}' in ran.out
    sink = wrong.replace("/out'", "/out', format = 'jsonl'")
    shop.do(f"{sink} TRANSFORM ({transforms})")

    def written():
        files = (tmp_path / "out").glob("*.jsonl")
        return {
            row["name"]: row["_deleted"]
            for file in files
            for row in map(json.loads, file.read_text().splitlines())
        }

    # what the filter leaves out of a table is deleted at the target
    wanted = {'a,"b"': False, "naïve": True}
    wanted = {hashlib.sha256(name.encode()).hexdigest(): gone for name, gone in wanted.items()}
    eventually(lambda: written().items() >= wanted.items(), 60, what="both rows")
    shop.do("DROP SINK priced")
