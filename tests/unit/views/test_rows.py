"""SQL texts: names and literals cannot break out of their quotes."""

from __future__ import annotations

import sqlglot

from mainstem.definitions.model import Definition, Kind
from mainstem.schemas.codec import Codec
from mainstem.schemas.known import KnownSchemas
from mainstem.testing.registry import MemoryRegistry
from mainstem.views.batch import ViewWriter
from mainstem.views.observe import lag
from mainstem.views.rows import key_object, literal, quoted, table
from mainstem.vocabulary import Column, SourceLocation


def definition(*key: str) -> Definition:
    columns = tuple(Column(name, "string") for name in ("a", 'b"; DROP', "c'"))
    here = SourceLocation("x.sql", 1, 1)
    return Definition("shop.orders", Kind.TABLE, "t", here, "", columns, key)


def test_quoting() -> None:
    assert table("shop.orders") == 'public."shop.orders"'
    assert quoted('b"; DROP') == '"b""; DROP"'
    assert literal("c' OR 1") == "'c'' OR 1'"


def test_statements_keep_names_inside_quotes() -> None:
    writer = ViewWriter(definition('b"; DROP', "c'"), Codec(KnownSchemas(MemoryRegistry())))
    for statement in (writer._upsert, writer._upsert_and_delete, writer._bad_keys):
        assert len(sqlglot.parse(statement, dialect="postgres")) == 1


def test_plain_key_gives_the_only_key_column() -> None:
    assert "jsonb_build_object('a', s.key)" in key_object(definition("a"))
    assert "jsonb_build_object" not in key_object(definition("a", "c'"))


def test_lag_counts_partitions_that_were_not_begun() -> None:
    assert lag({0: 5}, {0: 7, 1: 3}) == 5
    assert lag({0: 9}, {0: 7}) == 0
