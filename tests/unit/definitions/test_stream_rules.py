"""Joins, unions, filters, final windows and duplicates over streams: what runs, what is refused."""

import pytest

from mainstem.definitions.flow import check_flow
from mainstem.definitions.parse import parse_one
from mainstem.definitions.state import keeps_state, output_mode
from mainstem.errors import MainstemError

WITH_WATERMARK = "WITH (event_time = 'at', watermark = '10 minutes')"


def checked(text, options=WITH_WATERMARK):
    """The definition, checked over streams of the names that it reads, and these streams."""
    made = parse_one(text).definition
    streams = [
        parse_one(f"CREATE STREAM {name} (id INT, a INT, {name}_only INT, at TIMESTAMP) {options}")
        for name in made.query.inputs
    ]
    inputs = [statement.definition for statement in streams]
    check_flow(made, inputs)
    return made, inputs


NEAR = "ON a.id = b.id AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR"
BOTH = "(SELECT * FROM s UNION ALL SELECT * FROM r)"
TUMBLING = "count(*) AS n FROM s GROUP BY window(at, '1 minute')"
SESSION = "count(*) AS n FROM s GROUP BY session_window(at, '1 minute')"
WINDOW = "GROUP BY window(a.at, '1 minute')"

# keeps state, output mode, text
ALLOWED = f"""
yes append CREATE STREAM t AS SELECT a.id FROM s a JOIN r b ON a.id = b.id
yes append CREATE STREAM t AS SELECT a.id FROM s a, r b WHERE a.id = b.id
yes append CREATE STREAM t AS SELECT id FROM s JOIN r USING (id)
yes append CREATE STREAM t AS SELECT a.id FROM s a JOIN r b ON upper(a.id) <=> b.id + 1
yes append CREATE STREAM t AS SELECT 1 AS x FROM s JOIN r ON s_only = r_only
yes append CREATE STREAM t AS SELECT a.id FROM s a LEFT JOIN r b {NEAR}
yes append CREATE STREAM t AS SELECT a.id FROM s a RIGHT JOIN r b {NEAR}
yes append CREATE STREAM t AS SELECT a.id FROM s a FULL OUTER JOIN r b {NEAR}
yes append CREATE STREAM t AS SELECT a.id FROM s a LEFT SEMI JOIN r b {NEAR}
yes append CREATE STREAM t AS SELECT a.id FROM s a JOIN s b {NEAR}
yes append CREATE STREAM t AS SELECT a.id FROM s a JOIN r b {NEAR} JOIN q c ON c.id = b.id
yes append CREATE STREAM t AS SELECT x.id FROM (SELECT id FROM s) x JOIN r ON x.id = r.id
no  append CREATE STREAM t AS SELECT id FROM s UNION ALL SELECT id FROM r UNION ALL SELECT id FROM q
no  append CREATE STREAM t AS SELECT id FROM {BOTH} WHERE id > 1
yes update CREATE TABLE t AS SELECT a.id, 1 AS n FROM s a JOIN r b ON a.id = b.id GROUP BY a.id
yes update CREATE TABLE t AS SELECT c FROM s LEFT JOIN LATERAL explode(a) AS v(c) GROUP BY c
yes append CREATE STREAM t AS SELECT DISTINCT id, at FROM s
yes append CREATE STREAM t AS SELECT DISTINCT id FROM (SELECT id FROM s UNION ALL SELECT id FROM r)
yes append CREATE STREAM t WITH (deduplicate = 'id') AS SELECT id, at FROM s
yes append CREATE STREAM t WITH (deduplicate = 'id', within = '1 hour') AS SELECT id, at FROM s
no  append CREATE STREAM t AS SELECT id FROM s EMIT CHANGES
yes update CREATE TABLE t AS SELECT id, count(*) AS n FROM s GROUP BY id EMIT CHANGES
yes update CREATE TABLE t AS SELECT id, count(*) AS n FROM s GROUP BY id HAVING count(*) > 1
yes update CREATE TABLE t AS SELECT * FROM (SELECT id FROM s GROUP BY id) AS x WHERE id > 1
yes update CREATE TABLE t AS SELECT id, max(at) AS m FROM {BOTH} GROUP BY id
yes append CREATE TABLE t AS SELECT window.start, {TUMBLING} EMIT FINAL
yes append CREATE STREAM t AS SELECT window.start, {TUMBLING} EMIT FINAL
yes append CREATE TABLE t AS SELECT session_window.start, {SESSION} EMIT FINAL
yes append CREATE TABLE t AS SELECT window.start FROM s a JOIN r b {NEAR} {WINDOW} EMIT FINAL
"""
RUNS = [line.split(None, 2) for line in ALLOWED.strip().splitlines()]


@pytest.mark.parametrize(("state", "mode", "text"), RUNS)
def test_what_runs_over_streams(state, mode, text):
    made, inputs = checked(text)
    assert keeps_state(made, inputs) == (state == "yes")
    assert output_mode(made) == mode


# column of the caret, text
REFUSED = f"""
47 CREATE STREAM t AS SELECT 1 AS x FROM s CROSS JOIN r
41 CREATE STREAM t AS SELECT a.id FROM s a JOIN r b ON a.id > b.id
41 CREATE STREAM t AS SELECT a.id FROM s a JOIN r b ON a.id = 1 AND b.id = 2
51 CREATE STREAM t AS SELECT a.id FROM s a LEFT ANTI JOIN r b {NEAR}
54 CREATE STREAM t AS SELECT a.id FROM s a JOIN (SELECT id FROM r GROUP BY id) b ON a.id = b.id
37 CREATE STREAM t AS SELECT id FROM s INTERSECT SELECT id FROM r
37 CREATE STREAM t AS SELECT id FROM s UNION SELECT id FROM r
55 CREATE STREAM t AS SELECT id FROM s JOIN r USING (id) UNION ALL SELECT id FROM q
43 CREATE STREAM t AS SELECT id FROM (SELECT DISTINCT id FROM s)
46 CREATE STREAM t WITH (deduplicate = 'id') AS SELECT DISTINCT id FROM s
64 CREATE STREAM t AS SELECT id FROM s UNION ALL SELECT id FROM r ORDER BY id
26 CREATE TABLE t AS SELECT a.id, count(*) AS n FROM s a LEFT JOIN r b {NEAR} GROUP BY a.id
19 CREATE TABLE t AS SELECT id FROM s EMIT FINAL
"""
NOT = [line.split(None, 1) for line in REFUSED.strip().splitlines()]


@pytest.mark.parametrize(("column", "text"), NOT)
def test_what_does_not_run_over_streams(column, text):
    with pytest.raises(MainstemError) as caught:
        checked(text)
    assert caught.value.code == "NOT_SUPPORTED"
    assert caught.value.location.column == int(column), caught.value.render()
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        f"CREATE STREAM t AS SELECT a.id FROM s a LEFT JOIN r b {NEAR}",
        "CREATE TABLE t AS SELECT window.start, count(*) AS n FROM s"
        " GROUP BY window(at, '1 minute') EMIT FINAL",
    ],
)
def test_what_needs_a_watermark_says_so(text):
    checked(text)
    with pytest.raises(MainstemError) as caught:
        checked(text, options="")
    assert caught.value.code == "NOT_SUPPORTED"
    assert '"s"' in caught.value.message
    assert "watermark" in caught.value.hint


def test_what_must_wait_for_the_end_of_a_window_says_so():
    for query in (
        "SELECT session_window.start FROM s GROUP BY session_window(at, '1 minute')",
        "SELECT window(w, '1 hour') AS w FROM (SELECT window AS w FROM s"
        " GROUP BY window(at, '1 minute')) GROUP BY window(w, '1 hour')",
    ):
        with pytest.raises(MainstemError) as caught:
            checked(f"CREATE TABLE t AS {query}")
        assert "EMIT FINAL" in caught.value.hint
        checked(f"CREATE TABLE t AS {query} EMIT FINAL")


def test_an_ambiguous_name_in_having_is_refused():
    with pytest.raises(MainstemError) as caught:
        checked("CREATE TABLE t AS SELECT id, max(a) AS a FROM s GROUP BY id HAVING a > 1")
    assert (caught.value.code, caught.value.location.column) == ("NOT_SUPPORTED", 68)
    checked("CREATE TABLE t AS SELECT id, max(a) AS a FROM s GROUP BY id HAVING max(a) > 1")
    checked("CREATE TABLE t AS SELECT id, max(a) AS m FROM s GROUP BY id HAVING m > 1")


def test_within_needs_columns_to_deduplicate_by():
    with pytest.raises(MainstemError) as caught:
        parse_one("CREATE STREAM t WITH (within = '1 hour') AS SELECT id FROM s")
    assert caught.value.code == "INVALID_OPTION"
