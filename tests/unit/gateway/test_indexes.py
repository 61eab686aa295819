"""CREATE INDEX and DROP INDEX against a catalog."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.gateway.world import ENTRIES

from mainstem.catalog.entry import Catalog, Entry
from mainstem.definitions.model import CreateIndex, DropIndex
from mainstem.definitions.parse import parse_one
from mainstem.errors import MainstemError
from mainstem.gateway.indexes import shown_indexes, with_index, without_index


def create(catalog: Catalog, text: str) -> Catalog:
    statement = parse_one(text)
    assert isinstance(statement, CreateIndex)
    table = catalog.get(statement.index.table)
    assert table is not None
    return changed(catalog, with_index(catalog, table, statement))


def changed(catalog: Catalog, entries: list[Entry]) -> Catalog:
    for entry in entries:
        catalog = catalog.with_entry(entry)
    return catalog


def drop(catalog: Catalog, text: str) -> Catalog:
    statement = parse_one(text)
    assert isinstance(statement, DropIndex)
    return changed(catalog, without_index(catalog, statement))


@pytest.fixture
def catalog() -> Catalog:
    return Catalog({e.name.lower(): e for e in ENTRIES}, 5)


def test_it_comes_and_goes(catalog: Catalog) -> None:
    with_it = create(catalog, "CREATE INDEX by_name ON Users (name)")
    _, rows = shown_indexes(with_it, {("users", "by_name"): "ready"})
    assert rows == [["by_name", "users", "name", "ready"]]
    assert drop(with_it, "DROP INDEX By_Name").entries == catalog.entries


def test_a_source_keeps_what_is_made_for_its_tables(catalog: Catalog) -> None:
    users, clicks = catalog.entries["users"], catalog.entries["clicks"]
    theirs = replace(users, definition=replace(users.definition, source="clicks"))
    catalog = changed(catalog, [theirs])  # whichever kind it is, it is called as a source is
    with_it = create(catalog, "CREATE INDEX by_name ON users (name)")
    assert [i.name for i in with_it.entries["clicks"].definition.indexes] == ["by_name"]
    assert drop(with_it, "DROP INDEX by_name").entries["clicks"] == clicks


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE INDEX by_name ON users (id)", "DUPLICATE_NAME"),
        ("CREATE INDEX ON users (nam)", "UNKNOWN_COLUMN"),
        ("CREATE INDEX ON clicks (user)", "WRONG_KIND"),
        ("DROP INDEX by_nam", "UNKNOWN_RELATION"),
    ],
)
def test_refusals(catalog: Catalog, text: str, code: str) -> None:
    catalog = create(catalog, "CREATE INDEX by_name ON users (name)")
    with pytest.raises(MainstemError) as caught:
        (create if text.startswith("CREATE") else drop)(catalog, text)
    assert caught.value.code == code
    assert caught.value.location is not None
