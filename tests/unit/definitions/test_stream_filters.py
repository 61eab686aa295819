"""Filters over aggregates become hidden columns, and DISTINCT leaves the text."""

import pytest

from mainstem.definitions.parse import parse_one
from mainstem.definitions.stream_filters import without_distinct, without_filters

K = "_mainstem_kept"

FILTERS = [
    ("SELECT a FROM s GROUP BY a", None),
    ("SELECT a FROM s WHERE a > 1 GROUP BY a", None),
    ("SELECT a FROM s", None),
    (
        "SELECT a, count(*) AS n FROM s GROUP BY a HAVING count(*) > 1 AND (a < 3)",
        f"SELECT a, count(*) AS n , (count(*) > 1 AND (a < 3)) AS {K}_0 FROM s GROUP BY a ",
    ),
    (
        "SELECT extract(YEAR FROM at) AS y FROM s GROUP BY 1 HAVING max(b) > 1",
        f"SELECT extract(YEAR FROM at) AS y , (max(b) > 1) AS {K}_0 FROM s GROUP BY 1 ",
    ),
    (
        "SELECT * FROM (SELECT a, count(*) AS n FROM s GROUP BY a) AS x WHERE n > 1",
        f"SELECT * , (n > 1) AS {K}_0 FROM (SELECT a, count(*) AS n FROM s GROUP BY a) AS x ",
    ),
    (
        "SELECT b FROM (SELECT a AS b FROM s WHERE a > 1 GROUP BY a HAVING max(a) > 2) WHERE b > 3",
        f"SELECT b , {K}_0, (b > 3) AS {K}_1 FROM (SELECT a AS b , (max(a) > 2) AS {K}_0 FROM s"
        " WHERE a > 1 GROUP BY a ) ",
    ),
    (
        "WITH x AS (SELECT a, count(*) AS n FROM s GROUP BY a HAVING n > 1 -- often\n)"
        " SELECT a FROM x",
        f"WITH x AS (SELECT a, count(*) AS n , (n > 1) AS {K}_0 FROM s GROUP BY a  -- often\n)"
        f" SELECT a , {K}_0 FROM x",
    ),
]


@pytest.mark.parametrize(("text", "expected"), FILTERS)
def test_a_filter_becomes_a_hidden_column(text, expected):
    assert without_filters(parse_one(text).query).text == (text if expected is None else expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT DISTINCT a FROM s", "SELECT  a FROM s"),
        ("select distinct 1 AS a FROM s", "select  1 AS a FROM s"),
        (
            "WITH x AS (SELECT a FROM s) SELECT /* all */ DISTINCT * FROM x",
            "WITH x AS (SELECT a FROM s) SELECT /* all */  * FROM x",
        ),
    ],
)
def test_distinct_is_taken_out(text, expected):
    assert without_distinct(parse_one(text).query).text == expected
