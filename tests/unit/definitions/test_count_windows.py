"""Windows of so many events: how a query is taken apart, and what is refused."""

import pytest

from mainstem.definitions.count_windows import count_window_of
from mainstem.definitions.flow import check_flow
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError


def checked(text, name="s"):
    """The definition, checked over a stream; a name that begins with t is a table."""
    made = parse_one(text).definition
    inputs = [
        parse_one(
            f"CREATE {'TABLE' if name.startswith('t') else 'STREAM'} {name}"
            " (id INT, a INT, at TIMESTAMP) WITH (key = 'id')"
        ).definition
        for name in made.query.inputs
    ]
    check_flow(made, inputs)
    return made


def parts(text):
    return count_window_of(parse_one(text).query)


def test_the_call_becomes_a_column_and_all_else_keeps_its_place():
    text = "SELECT id, count_window(3).end AS n FROM s WHERE a > 1 GROUP BY id, count_window(3)"
    counts = parts(text)
    assert (counts.size, counts.step) == (3, 3)
    assert counts.checked.text == text.replace("count_window(3)", "count_window   ")
    assert counts.asked.text == counts.checked.text.replace("WHERE a > 1", " " * 11)
    assert counts.numbered.text == (
        "SELECT *, _topic, _partition, _offset, (id) AS _mainstem_key0 FROM s WHERE a > 1 "
    )
    assert len(counts.written.text) > len(counts.asked.text) == len(text)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SELECT 1 AS x FROM s GROUP BY count_window(3)", []),
        ("SELECT id FROM s GROUP BY id, count_window(3), s.a", ["id", "s.a"]),
        ("SELECT if(a = 1, 2, 3) AS b FROM s GROUP BY b, count_window(3)", ["if(a = 1, 2, 3)"]),
        ("SELECT a[1, 2] b, count_window(3) w FROM s GROUP BY 1, w HAVING b > 1", ["a[1, 2]"]),
        ("SELECT a FROM s GROUP BY count_window(3), a ORDER BY a LIMIT 1", ["a"]),
        ("SELECT DISTINCT a % 2 FROM s GROUP BY 1, Count_Window(3)", ["a % 2"]),
        ("SELECT a IS DISTINCT FROM id AS d FROM s GROUP BY d, count_window(3)", None),
    ],
)
def test_what_events_are_counted_by(text, keys):
    counts = parts(text)
    wanted = ["a IS DISTINCT FROM id"] if keys is None else keys
    listed = "".join(f", ({key}) AS _mainstem_key{i}" for i, key in enumerate(wanted))
    assert f"_offset{listed} FROM s" in counts.numbered.text
    assert len(counts.keys) == len(wanted)


def test_other_queries_have_none():
    assert parts("SELECT count_window, id FROM s") is None
    assert parts("SELECT 'count_window(3)' AS x FROM s") is None


RUNS = """
CREATE TABLE x AS SELECT id, count_window.start, sum(a) AS n FROM s GROUP BY id, count_window(3)
CREATE TABLE x AS SELECT count_window(3, 1) AS w, count(DISTINCT a) AS n FROM s GROUP BY w
CREATE STREAM x AS SELECT id, sum(a) AS n FROM s GROUP BY id, count_window(10000, 10) EMIT FINAL
CREATE TABLE x AS SELECT count_window.end FROM s GROUP BY count_window(1) HAVING count(*) > 1
"""


@pytest.mark.parametrize("text", RUNS.strip().splitlines())
def test_what_runs(text):
    made = checked(text)
    assert {"_topic", "_partition", "_offset"} <= set(made.query.columns_read)


def test_the_window_is_part_of_the_key():
    text = "CREATE TABLE x AS SELECT id, count(*) AS n FROM s GROUP BY id, count_window(3)"
    with pytest.raises(MainstemError) as caught:
        parse_one(text)
    assert caught.value.code == "MISSING_PRIMARY_KEY"
    with_it = text.replace("SELECT id", "SELECT id, count_window.start AS first")
    assert parse_one(with_it).definition.key == ("id", "first")


NOT = """
67 CREATE TABLE x AS SELECT a, count_window.start FROM s GROUP BY a, count_window(3, 4)
69 CREATE TABLE x AS SELECT count_window.start, 1 AS n FROM s GROUP BY count_window(0)
69 CREATE TABLE x AS SELECT count_window.start, 1 AS n FROM s GROUP BY count_window(10001)
69 CREATE TABLE x AS SELECT count_window.start, 1 AS n FROM s GROUP BY count_window(2000, 1)
72 CREATE TABLE x AS SELECT count_window(3) AS w FROM s GROUP BY w HAVING count_window(4).end > 1
26 CREATE TABLE x AS SELECT count_window(3) AS w, window FROM s GROUP BY w, window(at, '1 m')
43 CREATE TABLE x WITH (key = 'w') AS SELECT count_window(3) AS w FROM s
54 CREATE TABLE x AS SELECT count_window(3) AS w FROM s WHERE count_window(3).start > 1 GROUP BY w
59 CREATE TABLE x AS SELECT count_window(3) AS w FROM s JOIN r ON s.id = r.id GROUP BY w
26 CREATE TABLE x AS SELECT count_window(3) AS w FROM (SELECT * FROM s) GROUP BY w
26 CREATE TABLE x AS SELECT count_window(3) AS w FROM s, LATERAL explode(a) AS e(b) GROUP BY w
26 CREATE TABLE x AS SELECT count_window(3) AS w FROM s AS e(b, c, d) GROUP BY w
54 CREATE TABLE x AS SELECT count_window(3) AS w FROM s GROUP BY ROLLUP (id, count_window(3))
26 CREATE TABLE x AS SELECT count_window(3) AS w FROM t GROUP BY w
27 CREATE STREAM x AS SELECT id FROM s GROUP BY id, count_window(3)
"""


@pytest.mark.parametrize(
    ("column", "text"), [line.split(None, 1) for line in NOT.strip().splitlines()]
)
def test_what_is_refused(column, text):
    with pytest.raises(MainstemError) as caught:
        checked(text)
    assert caught.value.code == "NOT_SUPPORTED", caught.value.render()
    assert caught.value.location.column == int(column), caught.value.render()
    assert caught.value.hint


@pytest.mark.parametrize("arguments", ["", "x", "3, 2, 1", "'3'", "-1", "2 + 1", "3.5", "3,"])
def test_arguments_are_whole_numbers(arguments):
    text = f"SELECT count(*) AS n FROM s GROUP BY count_window({arguments})"
    with pytest.raises(MainstemError) as caught:
        parts(text)
    assert caught.value.code in ("FUNCTION_ARGUMENTS", "SQL_SYNTAX")


def test_it_does_not_run_in_real_time():
    with pytest.raises(MainstemError) as caught:
        checked(
            "CREATE TABLE x WITH (latency = 'realtime') AS"
            " SELECT count_window(3) AS w FROM s GROUP BY w"
        )
    assert caught.value.code == "REALTIME_NOT_POSSIBLE"
