"""Queries in PostgreSQL's words: names in the catalog's spelling, parameters, jsonb."""

import pytest

from mainstem.definitions.parse import parse, parse_one
from mainstem.definitions.to_postgres import push_condition, to_postgres
from mainstem.errors import MainstemError

CATALOG = {
    statement.definition.name.lower(): statement.definition
    for statement in parse(
        """
        CREATE TABLE Visits (Page STRING, n BIGINT, tags ARRAY<STRING>, PRIMARY KEY (Page),
                             addr STRUCT<City:STRING,zip:INT,geo:STRUCT<x:DOUBLE>>);
        CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, customer STRING,
                                  items ARRAY<STRUCT<Sku:STRING,n:INT>>);
        CREATE STREAM clicks (user STRING, Page STRING);
        """
    )
}
V = '"visits"'


@pytest.mark.parametrize(
    ("sql", "postgres"),
    [
        (
            "SELECT * FROM VISITS WHERE PAGE = '/home'",
            f'SELECT {V}."Page", {V}."n", {V}."tags", {V}."addr" FROM "Visits" AS {V}'
            f" WHERE {V}.\"Page\" = '/home'",
        ),
        (
            "SELECT v.page, N AS Cnt FROM visits v WHERE n > 1 ORDER BY cnt",
            'SELECT "v"."Page", "v"."n" AS "Cnt" FROM "Visits" AS "v" WHERE "v"."n" > 1'
            ' ORDER BY "Cnt" NULLS FIRST',
        ),
        (
            "SELECT shop.orders.ID, Orders.customer FROM shop.orders",
            'SELECT "orders"."id", "orders"."customer" FROM "shop.orders" AS "orders"',
        ),
        (
            "SELECT * EXCEPT (addr, tags) FROM visits",
            f'SELECT {V}."Page", {V}."n" FROM "Visits" AS {V}',
        ),
        (
            "WITH X AS (SELECT page P FROM visits) SELECT x.*, y.p FROM x JOIN X AS Y ON x.p = y.P",
            f'WITH "x" AS (SELECT {V}."Page" AS "P" FROM "Visits" AS {V})'
            ' SELECT "x"."P", "y"."P" FROM "x" JOIN "x" AS "y" ON "x"."P" = "y"."P"',
        ),
        (
            "SELECT * FROM (SELECT page, n FROM visits) WHERE N > 1",
            f'SELECT "Page", "n" FROM (SELECT {V}."Page", {V}."n" FROM "Visits" AS {V})'
            ' WHERE "n" > 1',
        ),
        (
            "SELECT addr.city, v.addr.zip + 1 AS z, addr.geo, tags[0] AS t FROM visits v",
            'SELECT JSONB_EXTRACT_PATH_TEXT("v"."addr", \'City\') AS "city",'
            ' CAST(JSONB_EXTRACT_PATH_TEXT("v"."addr", \'zip\') AS INT) + 1 AS "z",'
            ' JSONB_EXTRACT_PATH("v"."addr", \'geo\') AS "geo",'
            ' JSONB_EXTRACT_PATH_TEXT("v"."tags", \'0\') AS "t" FROM "Visits" AS "v"',
        ),
        (
            "SELECT items[0].sku, size(items) AS s FROM shop.orders WHERE items[1].n > 2",
            'SELECT JSONB_EXTRACT_PATH_TEXT("orders"."items", \'0\', \'Sku\') AS "Sku",'
            ' JSONB_ARRAY_LENGTH("orders"."items") AS "s" FROM "shop.orders" AS "orders" WHERE'
            " CAST(JSONB_EXTRACT_PATH_TEXT(\"orders\".\"items\", '1', 'n') AS INT) > 2",
        ),
        (
            "SELECT n FROM visits WHERE array_contains(tags, :tag)",
            f'SELECT {V}."n" FROM "Visits" AS {V} WHERE'
            f' ({V}."tags" @> TO_JSONB(CAST(%(tag)s AS TEXT)))',
        ),
        (
            "SELECT page FROM visits WHERE n IN (SELECT id FROM shop.orders WHERE customer = PAGE)",
            f'SELECT {V}."Page" FROM "Visits" AS {V} WHERE {V}."n" IN (SELECT "orders"."id" FROM'
            f' "shop.orders" AS "orders" WHERE "orders"."customer" = {V}."Page")',
        ),
        (
            "SELECT page FROM visits UNION ALL SELECT customer FROM shop.orders ORDER BY PAGE",
            f'SELECT {V}."Page" FROM "Visits" AS {V} UNION ALL SELECT "orders"."customer" FROM'
            ' "shop.orders" AS "orders" ORDER BY "Page" NULLS FIRST',
        ),
        (
            "SELECT n FROM visits WHERE page LIKE '%a' AND n % 2 = 0",
            f'SELECT {V}."n" FROM "Visits" AS {V} WHERE {V}."Page" LIKE \'%a\' AND {V}."n" % 2 = 0',
        ),
        (
            "SELECT n FROM visits WHERE page = ? AND page LIKE '%a' AND n = :count",
            f'SELECT {V}."n" FROM "Visits" AS {V} WHERE {V}."Page" = %s AND'
            f' {V}."Page" LIKE \'%%a\' AND {V}."n" = %(count)s',
        ),
        ('SELECT "text" AS t, 1 + 1', "SELECT 'text' AS \"t\", 1 + 1"),
    ],
)
def test_translation(sql, postgres):
    assert to_postgres(parse_one(sql), CATALOG) == postgres


@pytest.mark.parametrize(
    ("sql", "code", "place"),
    [
        ("SELECT pag FROM visits", "UNKNOWN_COLUMN", "1:8"),
        ("SELECT page\nFROM visits\nWHERE  nn > 1", "UNKNOWN_COLUMN", "3:8"),
        ("SELECT x.page FROM visits v", "UNKNOWN_COLUMN", "1:8"),
        ("SELECT x.* FROM visits v", "UNKNOWN_COLUMN", "1:8"),
        (
            "SELECT page FROM visits UNION SELECT page FROM visits ORDER BY q",
            "UNKNOWN_COLUMN",
            "1:64",
        ),
        ("SELECT page FROM visit", "UNKNOWN_RELATION", "1:18"),
        ("SELECT c FROM visits LATERAL VIEW explode(tags) t AS c", "NOT_SUPPORTED", "1:1"),
    ],
)
def test_refusals(sql, code, place):
    with pytest.raises(MainstemError) as caught:
        to_postgres(parse_one(sql, "q"), CATALOG)
    assert (caught.value.code, str(caught.value.location)) == (code, f"q:{place}")


@pytest.mark.parametrize(
    ("sql", "projection", "condition"),
    [
        ("SELECT * FROM clicks EMIT CHANGES", '"r"."user", "r"."Page"', "TRUE"),
        (
            "SELECT c.page P, _offset FROM clicks c WHERE c.user = 'u' AND _partition = 1"
            " EMIT CHANGES",
            '"r"."Page" AS "P", "r"."_offset"',
            '"r"."user" = \'u\' AND "r"."_partition" = 1',
        ),
        ("SELECT shop.orders.id FROM shop.orders EMIT CHANGES", '"r"."id"', "TRUE"),
    ],
)
def test_push_conditions(sql, projection, condition):
    select = parse_one(sql)
    definition = CATALOG[select.query.inputs[0].lower()]
    assert push_condition(select, definition) == (projection, condition)


def test_tables_have_no_metadata_columns():
    select = parse_one("SELECT _offset FROM visits EMIT CHANGES")
    with pytest.raises(MainstemError) as caught:
        push_condition(select, CATALOG["visits"])
    assert caught.value.code == "UNKNOWN_COLUMN"
