"""AS OF: which moment is that of which table, and what Spark gets."""

from __future__ import annotations

import pytest

from mainstem.definitions.model import Select
from mainstem.definitions.parse import parse_one
from mainstem.definitions.project import load_definitions
from mainstem.definitions.resolve import classify
from mainstem.errors import MainstemError


def _select(text: str) -> Select:
    statement = parse_one(text)
    assert isinstance(statement, Select)
    return statement


@pytest.mark.parametrize(
    ("text", "left", "times"),
    [
        (
            "SELECT * FROM t AS OF TIMESTAMP '2026-01-31' WHERE a = 1",
            "SELECT * FROM t WHERE a = 1",
            ["'2026-01-31'"],
        ),
        (
            "SELECT * FROM t x AS OF TIMESTAMP now() - INTERVAL 1 HOUR",
            "SELECT * FROM t x",
            ["now() - INTERVAL 1 HOUR"],
        ),
        (
            "SELECT * FROM t TIMESTAMP AS OF '2026-01-31' AS x",
            "SELECT * FROM t AS x",
            ["'2026-01-31'"],
        ),
        (
            "SELECT * FROM t FOR SYSTEM_TIME AS OF CAST('2026' AS TIMESTAMP) x",
            "SELECT * FROM t x",
            ["CAST('2026' AS TIMESTAMP)"],
        ),
        # one moment is that of all tables, wherever it stands
        (
            "SELECT * FROM a AS OF TIMESTAMP '2026' JOIN shop.b USING (id)",
            "SELECT * FROM a JOIN shop.b USING (id)",
            ["'2026'", "'2026'"],
        ),
        (
            "SELECT * FROM a, b WHERE a.id IN (SELECT id FROM c) AS OF TIMESTAMP '2026'",
            "SELECT * FROM a, b WHERE a.id IN (SELECT id FROM c)",
            ["'2026'"] * 3,
        ),
        (
            "SELECT * FROM t AS OF TIMESTAMP '2025' a JOIN t AS OF TIMESTAMP '2026' b USING (id)",
            "SELECT * FROM t a JOIN t b USING (id)",
            ["'2025'", "'2026'"],
        ),
        ("SELECT timestamp AS of, a AS of FROM t", "SELECT timestamp AS of, a AS of FROM t", []),
    ],
)
def test_the_moment_of_each_table(text: str, left: str, times: list[str]) -> None:
    select = _select(text)
    assert " ".join(select.query.text.split()) == left
    assert [moment.time for moment in select.moments] == times


def test_offsets_are_those_of_one_table() -> None:
    select = _select("""SELECT * FROM a AS OF OFFSETS '{"1": 7, "0": 5}'""")
    assert [moment.offsets for moment in select.moments] == [((0, 5), (1, 7))]


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("SELECT * FROM a AS OF TIMESTAMP", "SQL_SYNTAX", 32),
        ("SELECT * FROM a AS OF TIMESTAMP b", "SQL_SYNTAX", 33),
        ("SELECT * FROM a AS OF OFFSETS '[1]'", "SQL_SYNTAX", 31),
        ("""SELECT * FROM a AS OF OFFSETS '{"0": -1}'""", "SQL_SYNTAX", 31),
        ("""SELECT * FROM a AS OF OFFSETS '{"0": 1.5}'""", "SQL_SYNTAX", 31),
        ("SELECT * FROM a AS OF OFFSETS", "SQL_SYNTAX", 30),
        ("SELECT x AS OF TIMESTAMP '2026' FROM a", "SQL_SYNTAX", 10),
        ("""SELECT * FROM a AS OF OFFSETS '{"0": 1}', b""", "SQL_SYNTAX", 43),
        ("SELECT * FROM a AS OF TIMESTAMP '2026' EMIT CHANGES", "NOT_SUPPORTED", 17),
        ("SELECT * FROM a AS OF TIMESTAMP '2026' WHERE nope(1) = 1", "FUNCTION_NOT_ALLOWED", 46),
        ("CREATE TABLE t AS SELECT * FROM a AS OF TIMESTAMP '2026'", "SQL_SYNTAX", None),
    ],
)
def test_mistakes_have_their_place(text: str, code: str, column: int | None) -> None:
    with pytest.raises(MainstemError) as raised:
        parse_one(text)
    assert raised.value.code == code
    place = raised.value.location
    assert place is not None
    assert place.snippet == text
    if column is not None:
        assert place.column == column


def test_lines_stay_where_they_are() -> None:
    text = "SELECT *\nFROM a AS OF\nTIMESTAMP '2026'\nWHERE nope(1) = 1"
    with pytest.raises(MainstemError) as raised:
        parse_one(text)
    place = raised.value.location
    assert place is not None
    assert (place.line, place.column, place.snippet) == (4, 7, "WHERE nope(1) = 1")
    good = _select(text.replace("nope(1)", "1"))
    assert good.query.text.count("\n") == 3


def test_only_tables_have_a_past() -> None:
    text = "CREATE STREAM s (id INT); CREATE TABLE t (id INT PRIMARY KEY);"
    known = {d.name: d for d in load_definitions([("case.sql", text)])}
    assert classify(_select("SELECT * FROM t AS OF TIMESTAMP '2026'"), known.get) == "past"
    with pytest.raises(MainstemError) as raised:
        classify(_select("SELECT * FROM s AS OF TIMESTAMP '2026'"), known.get)
    assert raised.value.code == "WRONG_KIND"
