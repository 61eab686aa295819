"""Queries whose rows say which records they are made of."""

from __future__ import annotations

import re

import pytest

from mainstem.definitions.model import Explain, ExplainRow, Query, Select
from mainstem.definitions.origins import InTheWay, traced
from mainstem.definitions.parse import parse_one
from mainstem.definitions.query import reparse
from mainstem.errors import MainstemError


def _query(text: str) -> Query:
    statement = parse_one(text)
    assert isinstance(statement, Select)
    return statement.query


def _short(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("_mainstem_origin", "$"))


ALL = "flatten(max_by({0}, coalesce(try_element_at({0}, 1).o, 0L), 9)) AS $"
BOTH = "concat(coalesce(`a`.$, array()), coalesce(`b`.$, array()))"


@pytest.mark.parametrize(
    ("text", "wanted", "exact"),
    [
        ("SELECT id FROM s WHERE n > 1", "SELECT id , $ AS $ FROM s WHERE n > 1", True),
        ("SELECT * FROM s", "SELECT * EXCEPT ($) , $ AS $ FROM s", True),
        ("SELECT * EXCEPT (n) FROM s", "SELECT * EXCEPT ($, n) , $ AS $ FROM s", True),
        (
            "SELECT a.*, b.y FROM a LEFT JOIN b ON a.id = b.id",
            f"SELECT a.* EXCEPT ($), b.y , {BOTH} AS $ FROM a LEFT JOIN b ON a.id = b.id",
            True,
        ),
        (
            "SELECT * FROM s a JOIN s b USING (id)",
            f"SELECT * EXCEPT (`a`.$, `b`.$) , {BOTH} AS $ FROM s a JOIN s b USING (id)",
            True,
        ),
        (
            "SELECT k, count(*) AS n FROM s GROUP BY k",
            f"SELECT k, count(*) AS n , {ALL.format('$')} FROM s GROUP BY k",
            True,
        ),
        (
            "SELECT k, sum(n) FROM s GROUP BY k",
            f"SELECT k, sum(n) , {ALL.format('$')} FROM s GROUP BY k",
            False,
        ),
        (
            "SELECT k, max(n + 1) FROM s GROUP BY k",
            "SELECT k, max(n + 1) , array_distinct(concat("
            "coalesce(max_by($, n + 1), any_value($)))) AS $ FROM s GROUP BY k",
            False,
        ),
        (
            "SELECT k, max_by(v, at) FROM s GROUP BY k HAVING count(*) > 1",
            f"SELECT k, max_by(v, at) , {ALL.format('$')} FROM s GROUP BY k HAVING count(*) > 1",
            False,
        ),
        ("SELECT k FROM s GROUP BY k", "SELECT k , any_value($) AS $ FROM s GROUP BY k", False),
        ("SELECT DISTINCT k FROM s", "SELECT k , $ AS $ FROM s", True),
        (
            "SELECT k FROM a UNION SELECT k FROM b",
            "SELECT k , $ AS $ FROM a UNION ALL SELECT k , $ AS $ FROM b",
            True,
        ),
        (
            "WITH x AS (SELECT k FROM s) SELECT * FROM x",
            "WITH x AS (SELECT k , $ AS $ FROM s) SELECT * EXCEPT ($) , $ AS $ FROM x",
            True,
        ),
        (
            "SELECT id, t FROM s LATERAL VIEW explode(tags) AS t",
            "SELECT id, t , $ AS $ FROM s LATERAL VIEW explode(tags) AS t",
            True,
        ),
    ],
)
def test_rows_have_their_origin(text: str, wanted: str, exact: bool) -> None:
    made = traced(_query(text), 9)
    assert _short(made.query.text) == wanted
    assert made.exact is exact
    reparse(made.query)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT k, row_number() OVER (ORDER BY n) AS r FROM s", "window function"),
        ("SELECT k FROM a EXCEPT SELECT k FROM b", "EXCEPT"),
        ("SELECT k FROM a WHERE k IN (SELECT k FROM b)", "inside a condition"),
        ("SELECT (SELECT max(n) FROM b) AS m FROM a", "inside a condition"),
        ("SELECT a.k FROM a LEFT SEMI JOIN b ON a.k = b.k", "SEMI join"),
        ("SELECT k FROM a NATURAL JOIN b", "NATURAL join"),
        ("SELECT count(*) AS n FROM (SELECT DISTINCT k FROM s)", "DISTINCT inside"),
        ("SELECT count(*) AS n FROM (SELECT k FROM a UNION SELECT k FROM b)", "UNION inside"),
        ("SELECT struct(*) AS r FROM s", "star inside"),
        (
            "SELECT k, count_window.start AS w, sum(n) AS n FROM s GROUP BY k, count_window(2)",
            "counts",
        ),
        ("WITH x(a) AS (SELECT k FROM s) SELECT a FROM x", "other names"),
    ],
)
def test_what_is_in_the_way_is_said(text: str, why: str) -> None:
    with pytest.raises(InTheWay, match=why):
        traced(_query(text), 9)


def test_explain_row_is_a_condition_on_one_table() -> None:
    statement = parse_one("EXPLAIN ROW shop.visits WHERE page = '/home' AND n > 1")
    assert isinstance(statement, ExplainRow)
    assert statement.query.inputs == ("shop.visits",)
    assert statement.query.text == "SELECT*FROM shop.visits WHERE page = '/home' AND n > 1"
    assert isinstance(parse_one("EXPLAIN row"), Explain)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("EXPLAIN ROW visits", "SQL_SYNTAX"),
        ("EXPLAIN ROW visits WHERE", "SQL_SYNTAX"),
        ("EXPLAIN ROW visits WHERE a = 1 ORDER BY b", "NOT_SUPPORTED"),
        ("EXPLAIN ROW visits WHERE a IN (SELECT a FROM b)", "NOT_SUPPORTED"),
        ("EXPLAIN ROW visits WHERE a = ?", "NOT_SUPPORTED"),
        ("EXPLAIN ROW visits WHERE reflect('a', 'b') = 1", "FUNCTION_NOT_ALLOWED"),
    ],
)
def test_mistakes_in_explain_row(text: str, code: str) -> None:
    with pytest.raises(MainstemError) as raised:
        parse_one(text)
    assert raised.value.code == code
    assert raised.value.location is not None
    assert raised.value.location.snippet == text
