"""Columns, followed from object to object."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from mainstem.catalog.column_lineage import Reached, column_lineage
from mainstem.catalog.entry import Catalog, Entry
from mainstem.definitions.parse import parse
from mainstem.vocabulary import Column

COLUMNS = {"clean": "order_id Amount", "totals": "order_id total", "copies": "total", "other": "n"}
SQL = """
CREATE STREAM Orders (order_id STRING, amount INT, note STRING);
CREATE STREAM clean AS SELECT order_id, Amount FROM orders;
CREATE TABLE totals AS SELECT order_id, sum(amount) AS total FROM clean GROUP BY order_id;
CREATE STREAM copies AS SELECT total FROM totals;
CREATE STREAM other AS SELECT length(note) AS n FROM orders;
"""


def catalog() -> Catalog:
    entries = {}
    for statement in parse(SQL):
        definition = statement.definition  # type: ignore[union-attr]
        if definition.derived:
            names = COLUMNS[definition.name].split()
            columns = tuple(Column(name, "string") for name in names)
            definition = replace(definition, columns=columns)
        entries[definition.name.lower()] = Entry(definition, "f")
    return Catalog(entries)


def of(name: str):
    known = catalog()
    return column_lineage(known, known.entries[name].definition)


def test_back_to_where_it_was_declared() -> None:
    found = of("totals")
    assert found.made_of["total"] == [
        Reached("clean", "Amount", False, 1),
        Reached("Orders", "amount", False, 2),
    ]
    assert found.made_of["order_id"] == [
        Reached("clean", "order_id", True, 1),
        Reached("Orders", "order_id", True, 2),
    ]
    assert found.goes_into == {"order_id": [], "total": [Reached("copies", "total", True, 1)]}
    assert found.not_followed == []


def test_what_python_makes_is_named() -> None:
    known = catalog()
    clean = known.entries["clean"].definition
    assert clean.query is not None
    made = replace(clean, query=replace(clean.query, python=cast(Any, object())))
    entries = {**known.entries, "clean": Entry(made, "f")}
    found = column_lineage(Catalog(entries), entries["totals"].definition)
    assert found.made_of["total"] == [Reached("clean", "Amount", False, 1)]
    assert found.not_followed == ["clean"]


def test_forth_to_all_that_is_made_of_it() -> None:
    found = of("orders")
    assert found.goes_into["amount"] == [
        Reached("clean", "Amount", True, 1),
        Reached("totals", "total", False, 2),
        Reached("copies", "total", False, 3),
    ]
    assert found.goes_into["note"] == [Reached("other", "n", False, 1)]
    assert not any(found.made_of.values())
