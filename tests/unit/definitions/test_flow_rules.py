"""Which queries can be definitions, and which output columns become a table's key."""

import pytest

from mainstem.definitions.flow import check_flow
from mainstem.definitions.functions import functions
from mainstem.definitions.parse import parse_one
from mainstem.definitions.resolve import resolve
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column

TWO_ARGUMENTS = ("max_by", "min_by", "corr", "covar_pop", "covar_samp")

KEYS = [
    ("SELECT page, count(*) AS n FROM s GROUP BY page", ("page",)),
    ("SELECT count(*) AS n, s.Page FROM s GROUP BY page", ("Page",)),
    ("SELECT page AS p, count(*) AS n FROM s AS t GROUP BY t.page", ("p",)),
    ("SELECT upper(page) AS p, count(*) AS n FROM s GROUP BY UPPER( page )", ("p",)),
    ("SELECT upper(page) AS p, count(*) AS n FROM s GROUP BY p", ("p",)),
    ("SELECT user, upper(page) AS p, count(*) AS n FROM s GROUP BY 2, 1", ("user", "p")),
    (
        "SELECT page, window.start AS minute, count(*) AS n FROM s"
        " GROUP BY page, window(at, '1 minute')",
        ("page", "minute"),
    ),
    (
        "SELECT window.start, window.end, count(*) AS n FROM s GROUP BY window(at, '1 minute')",
        ("start", "end"),
    ),
    ("SELECT window, count(*) AS n FROM s GROUP BY window(at, '1 minute')", ("window",)),
    (
        "SELECT window(at, '1 minute').start AS m, count(*) AS n FROM s"
        " GROUP BY window(at, '1 minute')",
        ("m",),
    ),
    (
        "SELECT window_time(window) AS t, count(*) AS n FROM s GROUP BY window(at, '1 minute')",
        ("t",),
    ),
    ("SELECT max(at) AS last FROM s", ()),
    ("SELECT max(n) AS most FROM (SELECT page, count(*) AS n FROM s GROUP BY page)", ()),
    (
        "WITH x AS (SELECT page AS p, count(*) AS n FROM s GROUP BY page) SELECT p AS q, n FROM x",
        ("q",),
    ),
    ("SELECT * FROM (SELECT page, count(*) AS n FROM s GROUP BY page)", ("page",)),
    (
        "SELECT page, count(*) AS n FROM (SELECT page FROM s WHERE a = 1) GROUP BY page",
        ("page",),
    ),
]


@pytest.mark.parametrize(("query", "key"), KEYS)
def test_grouping_columns_are_the_key(query, key):
    made = parse_one(f"CREATE TABLE t AS {query}").definition
    assert made.key == key
    assert made.query.aggregates


# code, column of the caret, text
REFUSED = """
MISSING_PRIMARY_KEY 19 CREATE TABLE t AS SELECT a FROM s
MISSING_PRIMARY_KEY 42 CREATE TABLE t AS SELECT count(*) FROM s GROUP BY a
MISSING_PRIMARY_KEY 50 CREATE TABLE t AS SELECT a, count(*) AS n FROM s GROUP BY a, b
MISSING_PRIMARY_KEY 50 CREATE TABLE t AS SELECT a, count(*) AS n FROM s GROUP BY a, window(b, '1d')
MISSING_PRIMARY_KEY 55 CREATE TABLE t AS SELECT upper(a) AS a, 1 AS n FROM s GROUP BY a
MISSING_PRIMARY_KEY 52 CREATE TABLE t AS SELECT upper(a), count(*) FROM s GROUP BY upper(a)
INVALID_OPTION      36 CREATE TABLE t WITH (key = 'b') AS SELECT a, count(*) AS b FROM s GROUP BY a
NOT_SUPPORTED       27 CREATE STREAM t AS SELECT count(*) FROM s
NOT_SUPPORTED       27 CREATE STREAM t AS SELECT a FROM s GROUP BY a
NOT_SUPPORTED       36 CREATE STREAM t AS SELECT a FROM s ORDER BY a
NOT_SUPPORTED       36 CREATE STREAM t AS SELECT a FROM s SORT BY a
NOT_SUPPORTED       36 CREATE STREAM t AS SELECT a FROM s LIMIT 3
NOT_SUPPORTED       36 CREATE STREAM t AS SELECT a FROM s UNION SELECT a FROM r
NOT_SUPPORTED       36 CREATE STREAM t AS SELECT a FROM s EXCEPT SELECT a FROM r
NOT_SUPPORTED       35 CREATE STREAM t AS SELECT a FROM s, r
NOT_SUPPORTED       27 CREATE STREAM t AS SELECT rank() OVER (ORDER BY a) AS r FROM s
NOT_SUPPORTED       48 CREATE STREAM t AS SELECT a FROM s WHERE a IN (SELECT b FROM r)
NOT_SUPPORTED       28 CREATE STREAM t AS SELECT (SELECT 1) AS a FROM s
NOT_SUPPORTED       20 CREATE STREAM t AS SELECT 1 AS a
NOT_SUPPORTED       25 CREATE STREAM t AS WITH x AS (SELECT a FROM r) SELECT a FROM s
NOT_SUPPORTED       29 CREATE TABLE t AS SELECT a, count(DISTINCT b) AS n FROM s GROUP BY a
NOT_SUPPORTED       50 CREATE TABLE t AS SELECT a, count(*) AS n FROM s GROUP BY ROLLUP (a)
NOT_SUPPORTED       50 CREATE TABLE t AS SELECT a, count(*) AS n FROM s GROUP BY CUBE (a)
NOT_SUPPORTED       50 CREATE TABLE t AS SELECT a, count(*) AS n FROM s GROUP BY GROUPING SETS ((a))
NOT_SUPPORTED       50 CREATE TABLE t AS SELECT a, count(*) AS n FROM s GROUP BY ALL
NOT_SUPPORTED       26 CREATE TABLE t AS SELECT max(n) AS m FROM (SELECT count(*) AS n FROM s)
"""
TABLE = [line.split(None, 2) for line in REFUSED.strip().splitlines()]


def over_streams(text):
    """The definition in a text, checked as a flow over streams of the names that it reads."""
    made = parse_one(text).definition
    streams = [parse_one(f"CREATE STREAM {name} (a INT)").definition for name in made.query.inputs]
    check_flow(made, streams)
    return resolve(made, [Column("a", "int"), Column("n", "bigint")], streams)


@pytest.mark.parametrize(("code", "column", "text"), TABLE)
def test_what_no_flow_can_run(code, column, text):
    with pytest.raises(MainstemError) as caught:
        over_streams(text)
    assert (caught.value.code, caught.value.location.column) == (code, int(column))
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM t AS SELECT *, upper(a) AS b FROM s WHERE a LIKE 'x%'",
        "CREATE STREAM t AS WITH x AS (SELECT a FROM s) SELECT a FROM x WHERE a > 1",
        "CREATE STREAM t AS SELECT y.a FROM (SELECT a FROM s) AS y",
        "CREATE STREAM t AS SELECT c FROM s LATERAL VIEW explode(a) v AS c",
        "CREATE STREAM t AS SELECT c FROM s, LATERAL explode(a) AS v(c)",
        "CREATE TABLE t WITH (key = 'A') AS SELECT a, count(*) AS n FROM s GROUP BY a",
        "CREATE TABLE t AS SELECT count(*) FILTER (WHERE a > 1) AS n FROM s",
    ],
)
def test_what_flows_can_run(text):
    assert over_streams(text).query.inputs == ("s",)


@pytest.mark.parametrize("name", sorted(functions().aggregates))
def test_every_aggregate_is_known_as_one(name):
    call = f"{name}(a, b)" if name in TWO_ARGUMENTS else f"{name}(a)"
    if name.startswith("percentile_") and name != "percentile_approx":
        call = f"{name}(0.5) WITHIN GROUP (ORDER BY a)"
    assert parse_one(f"SELECT 1 + {call} AS x FROM s").query.aggregates
    assert not parse_one(f"SELECT {call} OVER (PARTITION BY a) AS x FROM s").query.aggregates
