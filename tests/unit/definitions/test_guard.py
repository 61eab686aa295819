"""Attempts to get at more than streams and tables. Each must be refused before Spark sees it."""

import pytest

from mainstem.definitions.functions import functions, reference
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError

CALLS = [
    "SELECT reflect('java.lang.System', 'exit', 1)",
    "SELECT rEfLeCt('a', 'b')",
    "SELECT `reflect`('a', 'b')",
    "SELECT `REFLECT` ('a', 'b')",
    "SELECT reflect /* x */ ('a', 'b')",
    "SELECT reflect\n--x\n('a', 'b')",
    "SELECT system.builtin.reflect('a', 'b')",
    "SELECT builtin.`java_method`('a', 'b')",
    "SELECT system.builtin.count(*) FROM s",
    "SELECT try_reflect('a', 'b')",
    "SELECT a FROM s WHERE b IN (SELECT java_method('a', 'b'))",
    "WITH x AS (SELECT reflect('a', 'b') AS c) SELECT c FROM x",
    "WITH reflect(a) AS (SELECT 1) SELECT reflect('a', 'b') FROM reflect",
    "SELECT * FROM (SELECT 1) AS reflect(a) WHERE reflect('a', 'b')",
    "SELECT transform(a, x -> reflect('a', x)) FROM s",
    "SELECT c FROM s LATERAL VIEW reflect('a', 'b') t AS c",
    "SELECT c FROM s LATERAL VIEW my.java.Udtf(a) t AS c",
    "SELECT * FROM s, LATERAL reflect('a', 'b')",
    "SELECT * FROM reflect('a', 'b')",
    "SELECT * FROM read_files('/etc')",
    "SELECT * FROM range(10)",
    "SELECT * FROM python_worker_logs()",
    "SELECT * FROM STREAM(s)",
    "SELECT CASE WHEN reflect('a', 'b') THEN 1 END",
    "SELECT -reflect('a', 'b')",
    "SELECT a FROM s ORDER BY reflect('a', 'b')",
    "SELECT a[reflect('a', 'b')] FROM s",
    "SELECT count(*) FILTER (WHERE reflect('a', 'b')) FROM s",
    "SELECT sum(a) OVER (PARTITION BY reflect('a', 'b')) FROM s",
    "SELECT 'a' || r'\\' || reflect('a', 'b') || '\\''",
    "SELECT input_file_name(), version()",
    "SELECT current_user()",
    "SELECT current_user",
    "SELECT CURRENT_CATALOG",
    "SELECT session_user",
    "SELECT from_avro(a, 'x', map('avroSchemaUrl', 'file:/etc/passwd')) FROM s",
    "SELECT from_xml(a, 'x STRING', map('rowValidationXSDPath', '/etc/passwd')) FROM s",
    "SELECT http_get('x')",
    "SELECT ai_query('x')",
    "SELECT \u017fum(a) FROM s",
    "INSERT INTO s VALUES (reflect('a', 'b'))",
]
OTHERS = [
    "SELECT * FROM parquet.`/etc/passwd`",
    "SELECT * FROM json.`/x`",
    "SELECT * FROM TEXT.`x`",
    "SELECT * FROM `text`.`x`",
    "SELECT * FROM delta.x",
    "SELECT * FROM csv.`hdfs://h/x`",
    "SELECT * FROM `/etc/passwd`",
    "SELECT * FROM `json.x`",
    "SELECT * FROM spark_catalog.default.x",
    "SELECT * FROM system.information_schema.tables",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM global_temp.x",
    "SELECT * FROM a.b.c",
    "SELECT * FROM a.b.c.d",
    "SELECT * FROM _mainstem.catalog",
    "SELECT * FROM s WHERE a IN (SELECT b FROM orc.`x`)",
    "WITH x AS (SELECT * FROM avro.`x`) SELECT * FROM x",
    "SELECT * FROM IDENTIFIER('parquet.x')",
    "SELECT * FROM IDENTIFIER(:x)",
    "SELECT IDENTIFIER('reflect')('a')",
    "SELECT TRANSFORM(a) USING 'sh' AS (b) FROM s",
    "SELECT TRANSFORM(a) USING r'sh' FROM s",
    "SELECT TRANSFORM(a) USING ? FROM s",
    "SELECT '${env:HOME}'",
    "SELECT a FROM ${x}",
    "SELECT /* ${spark:x} */ 1",
    "SELECT `${x}` FROM s",
    "SELECT $x",
    "SELECT @@x",
    "SELECT /*+ BROADCAST(s) */ a FROM s",
    "SELECT * FROM s VERSION AS OF 1",
    "CREATE STREAM x AS SELECT * FROM s TIMESTAMP AS OF '2026-01-01'",
    "SELECT * FROM s AS OF TIMESTAMP '${env:HOME}'",
    "SELECT * FROM s AS OF TIMESTAMP now() /* ${env:HOME} */ - INTERVAL 1 HOUR",
    "SELECT * FROM s AS OF TIMESTAMP reflect('a', 'b')",
    "SELECT * FROM s TABLESAMPLE (1 ROWS)",
    "SELECT * FROM s PIVOT (sum(a) FOR b IN (1, 2))",
    "SELECT * FROM VALUES (1), (2) AS t(a)",
    "SELECT a INTO x FROM s",
    "WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT 1 FROM x) SELECT * FROM x",
    "INSERT INTO s VALUES ((SELECT 1))",
    "INSERT INTO s VALUES (1) UNION SELECT 1",
    "CREATE STREAM x AS SELECT a FROM s WHERE a = ?",
]
TWO_READINGS = [
    # what a reader of one rule sees as comment or string, a reader of the other sees as code
    "SELECT 1 /* /* */ , reflect('a') /* */ */",
    "SELECT 1 -- \\\n, '\n, reflect('a') -- '",
    "SELECT r'\\', reflect('a'), '\\''",
    "SELECT 1 // reflect('a')",
    "SELECT a\u00a0FROM s",
    "SELECT a\x0bFROM s",
    "SELECT 1\x00",
    "SELECT * FROM s3://bucket/path",
    "SELECT * FROM s |> WHERE a = 1",
    "MAP a USING 'sh' FROM s",
]


def refusal(sql):
    with pytest.raises(MainstemError) as caught:
        parse_one(sql)
    assert caught.value.location is not None
    return caught.value.code


@pytest.mark.parametrize("sql", CALLS)
def test_functions_off_the_list(sql):
    assert refusal(sql) == "FUNCTION_NOT_ALLOWED"


@pytest.mark.parametrize("sql", OTHERS)
def test_other_ways_out(sql):
    assert refusal(sql) in ("SQL_NOT_ALLOWED", "SQL_SYNTAX", "FUNCTION_NOT_ALLOWED")


@pytest.mark.parametrize("sql", TWO_READINGS)
def test_texts_with_two_readings(sql):
    assert refusal(sql) in (
        "SQL_SYNTAX",
        "SQL_NOT_ALLOWED",
        "FUNCTION_NOT_ALLOWED",
        "NOT_SUPPORTED",
    )


@pytest.mark.parametrize("name", sorted(functions().names))
def test_every_allowed_function_passes(name):
    shapes = {
        "cast": "cast(x AS INT)",
        "try_cast": "try_cast(x AS INT)",
        "extract": "extract(YEAR FROM x)",
        "position": "position('a' IN x)",
        "overlay": "overlay(x PLACING 'a' FROM 1)",
        "timestampadd": "timestampadd(HOUR, 1, x)",
        "timestampdiff": "timestampdiff(HOUR, x, x)",
        "dateadd": "dateadd(HOUR, 1, x)",
        "date_diff": "date_diff(x, x)",
        "percentile_cont": "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
        "percentile_disc": "percentile_disc(0.5) WITHIN GROUP (ORDER BY x)",
        "between": "x BETWEEN 1 AND 2",
        "div": "x DIV 2",
        "like": "x LIKE 'a'",
        "ilike": "x ILIKE 'a'",
        "rlike": "x RLIKE 'a'",
        "regexp": "x REGEXP 'a'",
        "when": "CASE WHEN x THEN 1 END",
        "collate": "collate(x, 'UTF8_LCASE')",
    }
    tried = []
    for call in (
        shapes.get(name, f"{name}(x)"),
        f"{name}()",
        f"{name}(x, x)",
        f"{name}('a', x)",
        f"{name}(x, x, x)",
    ):
        try:
            parse_one(f"SELECT {call} FROM s")
        except MainstemError as error:
            assert error.code == "SQL_SYNTAX"  # sqlglot wants another number of arguments
            tried.append(call)
        else:
            return
    pytest.fail(f"no shape of {name} passes: {tried}")


@pytest.mark.parametrize("name", sorted(functions().random))
def test_random_functions_are_for_single_queries(name):
    parse_one(f"SELECT {name}(x, x) FROM s")
    assert refusal(f"CREATE STREAM t AS SELECT {name}(x, x) AS a FROM s") == "FUNCTION_NOT_ALLOWED"


@pytest.mark.parametrize("name", sorted(functions().refused))
def test_refused_functions(name):
    assert refusal(f"SELECT {name}() FROM s") == "FUNCTION_NOT_ALLOWED"


def test_lists_do_not_overlap():
    known = functions()
    assert not known.names & known.random
    assert not (known.names | known.random) & set(known.refused)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT user, `user`, s.user FROM s",
        "SELECT X'1F', 1L, 1.5BD, 1e3, .5, a.b[0], m['k'], cast(a AS ARRAY<ARRAY<INT>>) FROM s",
        "SELECT 'it''s', \"a;\", r'\\d+', date'2026-01-01', INTERVAL 1 DAY, a::INT FROM s",
        "SELECT a FROM s WHERE (a) IN (1, 2) AND NOT (b OR c) AND d BETWEEN (1) AND (2)",
        "SELECT * EXCEPT (a) FROM s",
        "WITH x(a, b) AS (SELECT 1, 2) SELECT t.c FROM (SELECT a FROM x) AS t(c)",
        "SELECT t.c FROM s, LATERAL explode(a) AS t(c)",
        "SELECT c FROM s LATERAL VIEW OUTER posexplode(a) t AS p, c",
        "SELECT sum(a) OVER w FROM s WINDOW w AS (PARTITION BY b ORDER BY c)",
        "SELECT a FROM s JOIN t USING (k) LEFT JOIN u ON (s.a = u.a)",
        "(SELECT a FROM s) UNION ALL (SELECT a FROM t) ORDER BY a LIMIT 3",
        "SELECT transform(a, x -> x + 1), filter(a, (x, i) -> i > 1) FROM s",
        "SELECT cast(a AS DECIMAL(10, 2)), cast(a AS VARCHAR(3)) FROM s",
        "SELECT timestamp'2026-01-01 00:00:00' AS at, current_timestamp AS now FROM s",
    ],
)
def test_ordinary_queries_pass(sql):
    assert parse_one(sql).query.text == sql


def test_the_reference_page_is_up_to_date(pytestconfig):
    page = pytestconfig.rootpath / "docs" / "functions.md"
    assert page.read_text("utf-8") == reference()
