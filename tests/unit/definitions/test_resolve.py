"""Definitions against each other, and queries against the catalog."""

from itertools import pairwise

import pytest

from mainstem.definitions.model import Kind
from mainstem.definitions.parse import parse, parse_one
from mainstem.definitions.relations import narrow_stars, replace_relations
from mainstem.definitions.resolve import classify, order, resolve
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column


def definitions(sql):
    return [statement.definition for statement in parse(sql, "f.sql")]


def failure(call, *args):
    with pytest.raises(MainstemError) as caught:
        call(*args)
    return caught.value


def test_definitions_come_behind_what_they_read():
    made = definitions(
        "CREATE TABLE c AS SELECT count(*) AS n FROM b;"
        "CREATE STREAM b AS SELECT x FROM A WHERE x > 1;"
        "CREATE STREAM a (x INT);"
    )
    assert [d.name for d in order(made, {})] == ["a", "b", "c"]


def test_existing_objects_can_be_read():
    (old,) = definitions("CREATE STREAM a (x INT)")
    new = definitions("CREATE STREAM b AS SELECT x FROM a")
    assert [d.name for d in order(new, {"a": old})] == ["b"]


def test_unknown_relation_at_its_place_with_a_suggestion():
    made = definitions(
        "CREATE STREAM clicks (x INT);\nCREATE STREAM b AS\n  SELECT x\n  FROM click WHERE x > 1"
    )
    error = failure(order, made, {})
    assert (error.code, str(error.location)) == ("UNKNOWN_RELATION", "f.sql:4:8")
    assert error.location.snippet == "  FROM click WHERE x > 1"
    assert '"clicks"' in error.params["suggestion"]


def test_circles_are_named():
    made = definitions(
        "CREATE STREAM a AS SELECT x FROM c;"
        "CREATE STREAM b AS SELECT x FROM a;"
        "CREATE STREAM c AS SELECT x FROM b"
    )
    error = failure(order, made, {})
    assert error.code == "CYCLE"
    names = error.params["cycle"].split(" -> ")
    assert names[0] == names[-1]
    assert sorted(names[:-1]) == ["a", "b", "c"]
    reads = {"a": "c", "b": "a", "c": "b"}
    assert all(reads[name] == read for name, read in pairwise(names))


def test_an_object_cannot_read_itself():
    assert failure(order, definitions("CREATE STREAM a AS SELECT x FROM a"), {}).code == "CYCLE"


def test_resolving_fills_in_columns_in_their_spelling():
    (made,) = definitions(
        "CREATE STREAM b WITH (key = 'USER', event_time = 'AT') AS SELECT User, At FROM a"
    )
    resolved = resolve(made, (Column("User", "string"), Column("At", "timestamp")))
    assert (resolved.key, resolved.event_time) == (("User",), "At")
    assert resolved.column("user") == Column("User", "string")


@pytest.mark.parametrize(
    ("sql", "columns", "code"),
    [
        ("CREATE STREAM b AS SELECT a, A FROM s", "a:int A:int", "DUPLICATE_COLUMN"),
        ("CREATE STREAM b AS SELECT a FROM s", "a:void", "INVALID_QUERY"),
        ("CREATE STREAM b AS SELECT a FROM s", "a:array<interval>", "INVALID_QUERY"),
        ("CREATE STREAM b AS SELECT a FROM s", "a:struct<x:void>", "INVALID_QUERY"),
        ("CREATE STREAM b AS SELECT _key FROM s", "_key:string", "RESERVED_NAME"),
        ("CREATE TABLE b WITH (key='x') AS SELECT a FROM s", "a:int", "KEY_NOT_A_COLUMN"),
        ("CREATE STREAM b WITH (event_time='a') AS SELECT a FROM s", "a:int", "INVALID_OPTION"),
        ("CREATE STREAM b WITH (event_time='x') AS SELECT a FROM s", "a:int", "INVALID_OPTION"),
    ],
)
def test_outputs_that_cannot_be(sql, columns, code):
    (made,) = definitions(sql)
    found = tuple(Column(*part.split(":", 1)) for part in columns.split())
    assert failure(resolve, made, found).code == code


def test_group_by_of_an_alias_that_is_an_input_column_is_refused():
    source, made = definitions(
        "CREATE STREAM s (at TIMESTAMP, hour INT);"
        "CREATE TABLE t AS SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM s"
        " GROUP BY hour"
    )
    columns = (Column("hour", "timestamp"), Column("n", "bigint"))
    assert resolve(made, columns).key == ("hour",)
    assert failure(resolve, made, columns, [source]).code == "INVALID_QUERY"


CATALOG = {
    d.name.lower(): d
    for d in definitions(
        "CREATE STREAM s (a INT);"
        "CREATE TABLE t (a INT PRIMARY KEY);CREATE TABLE u (a INT PRIMARY KEY)"
    )
}


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT * FROM t JOIN U USING (a)", "pull"),
        ("SELECT 1", "pull"),
        ("SELECT count(*) FROM S", "history"),
        ("SELECT a FROM s WHERE a > 1 EMIT CHANGES", "push"),
        ("SELECT * FROM t EMIT CHANGES", "push"),
        ("SELECT * FROM s, t", "NOT_SUPPORTED"),
        ("SELECT * FROM x", "UNKNOWN_RELATION"),
        ("SELECT count(*) FROM s EMIT CHANGES", "NOT_SUPPORTED"),
        ("SELECT a FROM s GROUP BY a EMIT CHANGES", "NOT_SUPPORTED"),
        ("SELECT a FROM s ORDER BY a EMIT CHANGES", "NOT_SUPPORTED"),
        ("SELECT a FROM s LIMIT 1 EMIT CHANGES", "NOT_SUPPORTED"),
        ("SELECT DISTINCT a FROM s EMIT CHANGES", "NOT_SUPPORTED"),
        ("SELECT * FROM t, u EMIT CHANGES", "NOT_SUPPORTED"),
        ("SELECT a FROM (SELECT a FROM s) EMIT CHANGES", "NOT_SUPPORTED"),
        ("SELECT a FROM s UNION SELECT a FROM s EMIT CHANGES", "NOT_SUPPORTED"),
        ("SELECT 1 EMIT CHANGES", "NOT_SUPPORTED"),
    ],
)
def test_queries_are_classified(sql, answer):
    try:
        found = classify(parse_one(sql), lambda name: CATALOG.get(name.lower()))
    except MainstemError as error:
        found = error.code
    assert found == answer
    assert {d.kind for d in CATALOG.values()} == {Kind.STREAM, Kind.TABLE}


@pytest.mark.parametrize(
    ("sql", "replaced"),
    [
        (
            "SELECT a FROM s -- x\n WHERE s.a = 's'",
            "SELECT a FROM <s> AS `s` -- x\n WHERE s.a = 's'",
        ),
        ("SELECT x.a FROM Shop.Orders x", "SELECT x.a FROM <Shop.Orders> x"),
        (
            "SELECT shop.orders.id, orders.n FROM shop.orders",
            "SELECT `orders`.id, orders.n FROM <shop.orders> AS `orders`",
        ),
        (
            "WITH s AS (SELECT * FROM s) SELECT * FROM s",
            "WITH s AS (SELECT * FROM <s> AS `s`) SELECT * FROM s",
        ),
        ("SELECT * FROM `a-b` JOIN `a.b` c", "SELECT * FROM <a-b> AS `a-b` JOIN <a.b> c"),
    ],
)
def test_names_of_relations_can_be_replaced(sql, replaced):
    assert replace_relations(sql, lambda name: f"<{name}>") == replaced


@pytest.mark.parametrize(
    ("sql", "narrowed"),
    [
        ("SELECT *, _key AS k FROM s", "SELECT * EXCEPT (_key), _key AS k FROM s"),
        ("SELECT t.*, count(*) FROM s AS t", "SELECT t.* EXCEPT (_key), count(*) FROM s AS t"),
        ("SELECT * EXCEPT (a) FROM s", "SELECT * EXCEPT (_key, a) FROM s"),
        ("SELECT * FROM (SELECT * FROM s)", "SELECT * FROM (SELECT * EXCEPT (_key) FROM s)"),
        (
            "WITH c AS (SELECT *, _key AS k FROM s) SELECT * FROM c",
            "WITH c AS (SELECT * EXCEPT (_key), _key AS k FROM s) SELECT * FROM c",
        ),
        (
            "SELECT * FROM S a JOIN shop.r ON a.x = r.x",
            "SELECT * EXCEPT (`a`._key, `r`._key) FROM S a JOIN shop.r ON a.x = r.x",
        ),
        (
            "SELECT a.*, R.* EXCEPT (x) FROM s a JOIN shop.r ON a.x = r.x",
            "SELECT a.* EXCEPT (_key), R.* EXCEPT (_key, x) FROM s a JOIN shop.r ON a.x = r.x",
        ),
        (
            "SELECT *, u.* FROM s JOIN u ON s.x = u.x",
            "SELECT * EXCEPT (_key), u.* FROM s JOIN u ON s.x = u.x",
        ),
        (
            "SELECT *, t.* FROM s JOIN (SELECT 1) t",
            "SELECT * EXCEPT (_key), t.* FROM s JOIN (SELECT 1) t",
        ),
    ],
)
def test_a_star_leaves_out_metadata_columns(sql, narrowed):
    assert narrow_stars(sql, ["_key"], ["s", "shop.r"]) == narrowed
