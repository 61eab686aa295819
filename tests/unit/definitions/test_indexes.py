"""CREATE INDEX: its text, whose it is, and what it may not be."""

from __future__ import annotations

import pytest

from mainstem.definitions.compared import compared
from mainstem.definitions.indexes import check_indexes
from mainstem.definitions.model import Create, CreateIndex, DropIndex
from mainstem.definitions.names import written
from mainstem.definitions.parse import parse_one
from mainstem.definitions.project import load_definitions
from mainstem.errors import MainstemError

TABLE = (
    "CREATE TABLE Visits (id BIGINT, page STRING, `the day` DATE, tags ARRAY<STRING>,"
    " PRIMARY KEY (id));"
)


def code_of(text: str) -> tuple[str, int]:
    with pytest.raises(MainstemError) as caught:
        for definition in load_definitions([("a.sql", text)]):
            check_indexes(definition)
    assert caught.value.location is not None
    return caught.value.code, caught.value.location.line


def test_statements() -> None:
    made = parse_one("CREATE INDEX by_page ON Visits (page, `the day`)")
    assert isinstance(made, CreateIndex)
    assert (made.index.name, made.index.columns) == ("by_page", ("page", "the day"))
    unnamed = parse_one("create index if not exists on shop.orders (Customer)")
    assert isinstance(unnamed, CreateIndex)
    assert (unnamed.index.name, unnamed.if_not_exists) == ("orders_customer", True)
    dropped = parse_one("DROP INDEX IF EXISTS by_page")
    assert isinstance(dropped, DropIndex)
    assert (dropped.name, dropped.if_exists) == ("by_page", True)


def test_an_index_belongs_to_its_table_in_whichever_order() -> None:
    files = [("a.sql", "CREATE INDEX by_page ON visits (page);"), ("b.sql", TABLE)]
    (definition,) = load_definitions(files)
    assert [(i.name, i.table, i.columns) for i in definition.indexes] == [
        ("by_page", "Visits", ("page",))
    ]
    check_indexes(definition)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{TABLE}\nCREATE INDEX ON visit (page);", ("UNKNOWN_RELATION", 2)),
        (f"{TABLE}\nCREATE INDEX ON visits (pages);", ("UNKNOWN_COLUMN", 2)),
        (f"{TABLE}\nCREATE INDEX ON visits (tags);", ("NOT_SUPPORTED", 2)),
        (f"{TABLE}\nCREATE INDEX ON visits (page, PAGE);", ("DUPLICATE_COLUMN", 2)),
        (f"{TABLE}\nCREATE INDEX ON visits ();", ("SQL_SYNTAX", 2)),
        (f"{TABLE}\nCREATE INDEX ON visits;", ("SQL_SYNTAX", 2)),
        (f"{TABLE}\nCREATE UNIQUE INDEX ON visits (page);", ("SQL_SYNTAX", 2)),
        (
            f"{TABLE}\nCREATE INDEX a ON visits (page);\nCREATE INDEX A ON visits (id);",
            ("DUPLICATE_NAME", 3),
        ),
        (
            "CREATE STREAM s (a INT);\nCREATE INDEX ON s (a);",
            ("WRONG_KIND", 2),
        ),
    ],
)
def test_refusals(text: str, expected: tuple[str, int]) -> None:
    assert code_of(text) == expected


def test_names_as_they_are_written() -> None:
    assert written("visits") == "visits"
    assert written("shop.orders") == "shop.orders"
    assert written("the day") == "`the day`"
    assert written("order") == "`order`"


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        ("(page = '/home'::text)", ("page",)),
        ("((id > 5) AND (page = 'a'::text) AND (id < 9))", ("page", "id")),
        ("(\"the day\" = '2026-11-16'::date)", ("the day",)),
        ("(page = ANY ('{a,b}'::text[]))", ("page",)),
        ("(page ~~ '%x%'::text)", ()),
        ("((page = 'a'::text) OR (id = 3))", ()),
        ("(lower(page) = 'a'::text)", ()),
        ("(page = id::text)", ()),
        ("(hashed SubPlan 1)", ()),
    ],
)
def test_columns_that_an_index_helps(condition: str, columns: tuple[str, ...]) -> None:
    table = parse_one(TABLE.rstrip(";"))
    assert isinstance(table, Create)
    assert compared(condition, table.definition) == columns
