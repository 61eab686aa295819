"""Streams joined to tables: which queries work record by record, and by which columns they join."""

import pytest

from mainstem.definitions.flow import check_flow, flow_kind
from mainstem.definitions.join_keys import JoinKey, join_keys
from mainstem.definitions.model import FlowKind
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError

INPUTS = {
    d.name: d
    for d in (
        parse_one(text).definition
        for text in (
            "CREATE STREAM s (id INT, c INT, x STRING)",
            "CREATE STREAM r (id INT)",
            "CREATE TABLE t (id INT PRIMARY KEY, region STRING, y INT)",
            "CREATE TABLE u (region STRING PRIMARY KEY, boss STRING)",
        )
    )
}


def check(query):
    made = parse_one(f"CREATE STREAM o AS {query}").definition
    inputs = [INPUTS[name] for name in made.query.inputs]
    assert flow_kind(inputs) is FlowKind.ENRICH
    check_flow(made, inputs)
    return join_keys(made.query, inputs)


KEYS = [
    (
        "SELECT s.id FROM s JOIN t ON s.c = t.id",
        [JoinKey("t", ("id",), "s", ("c",))],
    ),
    (
        "SELECT s.id FROM s LEFT JOIN t AS b ON b.id = s.c AND b.region = s.x AND b.y > 3",
        [JoinKey("t", ("id", "region"), "s", ("c", "x"))],
    ),
    ("SELECT id FROM t JOIN s USING (id)", [JoinKey("t", ("id",), "s", ("id",))]),
    (
        "SELECT s.id FROM s JOIN t ON c = t.id LEFT JOIN u ON u.region = t.region",
        [JoinKey("t", ("id",), "s", ("c",)), JoinKey("u", ("region",), "t", ("region",))],
    ),
    ("SELECT s.id FROM s, t WHERE s.c = t.id AND y > 1", [JoinKey("t", ("id",), "s", ("c",))]),
    # nothing is proven: another relation, an expression, a table that stands twice
    ("SELECT s.id FROM s JOIN t ON s.c > t.id", []),
    ("SELECT s.id FROM s JOIN t ON s.c + 1 = t.id", []),
    ("SELECT s.id FROM s JOIN t ON s.c = t.id OR t.y = 1", []),
    ("SELECT s.id FROM s JOIN t a ON s.c = a.id JOIN t b ON b.id = a.y", []),
    ("SELECT s.id FROM s JOIN (SELECT id FROM t WHERE y > 1) q ON s.c = q.id", []),
    ("SELECT id FROM s WHERE c IN (SELECT id FROM t)", []),
    # a condition behind an outer join says nothing about which rows it needs
    ("SELECT s.id FROM s LEFT JOIN t ON t.y = 1 WHERE t.id = s.c", []),
]


@pytest.mark.parametrize(("query", "keys"), KEYS)
def test_join_keys(query, keys):
    assert check(query) == keys


@pytest.mark.parametrize(
    "query",
    [
        "WITH q AS (SELECT * FROM s WHERE c > 1) SELECT q.id FROM q JOIN t ON q.c = t.id",
        "SELECT id FROM (SELECT s.id, t.y FROM s JOIN t ON s.c = t.id) WHERE y > 1",
        "SELECT s.id FROM s LEFT SEMI JOIN t ON s.c = t.id",
        "SELECT s.id FROM s LEFT ANTI JOIN t ON s.c = t.id",
        "SELECT s.id FROM t RIGHT JOIN s ON s.c = t.id",
        "SELECT s.id, (SELECT max(y) FROM t) AS m FROM s",
        "SELECT s.id FROM s JOIN (SELECT region, count(*) AS n FROM t GROUP BY region) q"
        " ON s.x = q.region",
    ],
)
def test_what_works_record_by_record(query):
    check(query)


REFUSED = [
    (49, "SELECT t.y FROM s RIGHT JOIN t ON s.c = t.id"),
    (48, "SELECT t.y FROM s FULL JOIN t ON s.c = t.id"),
    (48, "SELECT t.y FROM t LEFT JOIN s ON s.c = t.id"),
    (59, "SELECT t.y FROM s JOIN t ON s.c = t.id ORDER BY t.y"),
    (59, "SELECT t.y FROM s JOIN t ON s.c = t.id LIMIT 3"),
    (27, "SELECT DISTINCT t.y FROM s JOIN t ON s.c = t.id"),
    (27, "SELECT count(*) AS n FROM s JOIN t ON s.c = t.id"),
    (27, "SELECT rank() OVER (ORDER BY t.y) AS n FROM s JOIN t ON s.c = t.id"),
    (63, "SELECT y FROM t WHERE id IN (SELECT c FROM s)"),
    (44, "SELECT s.id FROM s JOIN r ON s.id = r.id JOIN t ON t.id = s.c"),
]


@pytest.mark.parametrize(("column", "query"), REFUSED)
def test_what_does_not(column, query):
    with pytest.raises(MainstemError) as caught:
        check(query)
    error = caught.value
    assert (error.code, error.location.column) == ("NOT_SUPPORTED", column), error.render()
    assert error.hint
