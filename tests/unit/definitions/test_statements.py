"""Statements that parse, and what they become."""

import pytest

from mainstem.definitions.model import (
    Create,
    Describe,
    Drop,
    Explain,
    InsertValues,
    Kind,
    Lane,
    Listing,
    Pause,
    Resume,
    Select,
    Show,
    StartBackfill,
)
from mainstem.definitions.parse import parse, parse_one
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column


def definition(sql):
    statement = parse_one(sql)
    assert isinstance(statement, Create)
    return statement.definition


def test_a_declared_stream_with_all_options():
    made = definition(
        "CREATE STREAM clicks (user STRING, page STRING, at TIMESTAMP) WITH (topic = 'web.clicks',"
        " format = 'json', key = 'USER', event_time = 'AT', watermark = '10 min', partitions = 3,"
        " retention = '7 days', comment = 'it''s web traffic')"
    )
    assert (made.name, made.kind, made.topic) == ("clicks", Kind.STREAM, "web.clicks")
    assert made.columns == (
        Column("user", "string"),
        Column("page", "string"),
        Column("at", "timestamp"),
    )
    assert made.key == ("user",)
    assert (made.event_time, made.watermark, made.partitions) == ("at", "10 minutes", 3)
    assert (made.retention, made.comment) == ("7 days", "it's web traffic")
    assert not made.derived


@pytest.mark.parametrize(
    ("written", "simple"),
    [
        ("STRING", "string"),
        ("integer", "int"),
        ("LONG", "bigint"),
        ("real", "float"),
        ("DECIMAL", "decimal(10,0)"),
        ("numeric(12)", "decimal(12,0)"),
        ("Decimal(10, 2)", "decimal(10,2)"),
        ("TIMESTAMP_NTZ", "timestamp_ntz"),
        ("TIMESTAMP_LTZ", "timestamp"),
        ("ARRAY<ARRAY<INT>>", "array<array<int>>"),
        ("MAP<STRING, ARRAY<DOUBLE>>", "map<string,array<double>>"),
        ("STRUCT<a: INT, b ARRAY<STRUCT<c:DATE>>>", "struct<a:int,b:array<struct<c:date>>>"),
        ("STRUCT<`a b`: INT>", "struct<`a b`:int>"),
    ],
)
def test_types_become_sparks_short_form(written, simple):
    assert definition(f"CREATE STREAM s (a {written}, b INT)").columns[0] == Column("a", simple)


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT)", ("a",)),
        ("CREATE TABLE t (a INT, b INT, PRIMARY KEY (B, a))", ("b", "a")),
        ("CREATE TABLE t (a INT, b INT) WITH (key = 'a, b')", ("a", "b")),
        ("CREATE TABLE t (PRIMARY KEY (a)) AS SELECT a, b FROM s", ("a",)),
        ("CREATE TABLE t WITH (key = 'a') AS SELECT a, b FROM s", ("a",)),
        ("CREATE TABLE t AS SELECT count(*) AS n FROM s", ()),
    ],
)
def test_primary_keys(sql, key):
    made = definition(sql)
    assert (made.kind, made.key) == (Kind.TABLE, key)


def test_a_derived_definition_keeps_its_query_as_written():
    query = "SELECT  page, -- the page\n  upper( user ) AS u FROM shop.clicks WHERE page <> ';'"
    text = f"CREATE OR REPLACE STREAM loud WITH (latency = 'realtime', start='latest') AS\n{query}"
    statement = parse_one(f"-- first\n{text} ;\n-- last")
    made = statement.definition
    assert statement.or_replace
    assert (made.query.text, made.text) == (query, text)
    assert (made.lane, made.start, made.topic) == (Lane.REAL_TIME, "latest", "loud")
    assert made.query.inputs == ("shop.clicks",)
    assert (made.location.line, made.location.column) == (2, 1)
    assert (made.query.location.line, made.query.location.column) == (3, 1)


def test_names():
    assert definition("CREATE STREAM shop.orders (a INT)").name == "shop.orders"
    assert definition("CREATE STREAM `shop`.`orders` (a INT)").name == "shop.orders"
    assert definition("CREATE STREAM `shop.orders` (`a b` INT)").columns[0].name == "a b"
    assert definition("CREATE STREAM `my-orders` (a INT)").topic == "my-orders"


@pytest.mark.parametrize(
    ("sql", "type_", "fields"),
    [
        (
            "drop table if exists shop.x cascade",
            Drop,
            {"name": "shop.x", "kind": Kind.TABLE, "if_exists": True, "cascade": True},
        ),
        ("DROP STREAM x", Drop, {"name": "x", "kind": Kind.STREAM, "if_exists": False}),
        ("PAUSE x", Pause, {"name": "x"}),
        ("PAUSE SOURCE x", Pause, {"name": "x"}),
        ("PAUSE source", Pause, {"name": "source"}),
        ("RESUME `x`", Resume, {"name": "x"}),
        ("show flows", Show, {"what": Listing.FLOWS}),
        ("DESCRIBE shop.x", Describe, {"name": "shop.x"}),
        ("EXPLAIN shop.x", Explain, {"target": "shop.x"}),
        (
            "INSERT INTO s (a, `b`) VALUES (1, 'x;y'), (2, now())",
            InsertValues,
            {"columns": ("a", "b"), "values": "VALUES (1, 'x;y'), (2, now())"},
        ),
        ("INSERT INTO shop.s VALUES (1)", InsertValues, {"name": "shop.s", "columns": ()}),
        ("SELECT * FROM t", Select, {"emit_changes": False, "parameters": ()}),
        ("SELECT a FROM t WHERE b = ? AND c = :d", Select, {"parameters": ("?", "d")}),
        ("SELECT * FROM t EMIT CHANGES", Select, {"emit_changes": True}),
    ],
)
def test_other_statements(sql, type_, fields):
    statement = parse_one(sql)
    assert isinstance(statement, type_)
    assert {name: getattr(statement, name) for name in fields} == fields


def test_explain_of_statements():
    assert isinstance(parse_one("EXPLAIN SELECT 1").target, Select)
    assert isinstance(parse_one("EXPLAIN CREATE STREAM s (a INT)").target, Create)


def test_emit_changes_is_no_part_of_the_query():
    assert parse_one("SELECT a FROM t EMIT CHANGES;").query.text == "SELECT a FROM t"


def test_statements_are_split_at_real_semicolons_only():
    text = """
    SELECT ';' AS a, ";" AS b, `;` FROM t; -- one; comment
    /* two; */ PAUSE x;;
    RESUME r
    """
    assert [type(statement) for statement in parse(text)] == [Select, Pause, Resume]


@pytest.mark.parametrize(
    ("query", "inputs", "aggregates", "columns_read"),
    [
        ("SELECT a, b.c FROM s", ("s",), False, ("a", "b", "c")),
        ("SELECT * FROM s", ("s",), False, ("*",)),
        ("SELECT count(*) FROM s", ("s",), True, ()),
        ("SELECT kurtosis(a) FROM s", ("s",), True, ("a",)),
        ("SELECT collect_list(a), string_agg(b) FROM s", ("s",), True, ("a", "b")),
        ("SELECT a FROM s GROUP BY a", ("s",), True, ("a",)),
        ("SELECT rank() OVER (ORDER BY a) FROM s", ("s",), False, ("a",)),
        ("SELECT sum(a) OVER (ORDER BY b) FROM s", ("s",), False, ("a", "b")),
        ("WITH s AS (SELECT A FROM S) SELECT a FROM s", ("S",), False, ("a",)),
        ("WITH x AS (SELECT 1 AS a), y AS (SELECT a FROM x) SELECT a FROM y", (), False, ("a",)),
        ("SELECT a FROM y.b JOIN x USING (k)", ("y.b", "x"), False, ("a", "k")),
        ("SELECT a FROM x WHERE EXISTS (SELECT 1 FROM y)", ("x", "y"), False, ("a",)),
        ("SELECT x.* FROM (SELECT a FROM y) x", ("y",), False, ("*", "a", "x")),
        ("SELECT c FROM s LATERAL VIEW explode(a) t AS c", ("s",), False, ("a", "c")),
        ("SELECT window, page FROM s", ("s",), False, ("page", "window")),
    ],
)
def test_facts_of_a_query(query, inputs, aggregates, columns_read):
    facts = parse_one(query).query
    assert (facts.inputs, facts.aggregates) == (inputs, aggregates)
    assert facts.columns_read == columns_read


@pytest.mark.parametrize(
    ("text", "since", "rate"),
    [
        ("BACKFILL t", None, None),
        ("backfill `t` from beginning rate 50;", None, 50),
        ("BACKFILL t FROM '2026-01-31' RATE 7", "2026-01-31", 7),
    ],
)
def test_backfill(text: str, since: str | None, rate: int | None) -> None:
    statement = parse_one(text)
    assert isinstance(statement, StartBackfill)
    assert (statement.name, statement.since, statement.rate) == ("t", since, rate)


@pytest.mark.parametrize(
    "text",
    ["BACKFILL", "BACKFILL t FROM", "BACKFILL t FROM 5", "BACKFILL t RATE 0", "BACKFILL t u"],
)
def test_backfill_that_is_none(text: str) -> None:
    with pytest.raises(MainstemError) as refused:
        parse_one(text)
    assert refused.value.code == "SQL_SYNTAX"
