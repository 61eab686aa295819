"""Captured changes of MongoDB and SQL Server, in the envelopes that Debezium documents."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from mainstem.connect.brought import definitions_of
from mainstem.connect.capture import Captured
from mainstem.definitions.model import Connection, Definition, Kind
from mainstem.errors import MainstemError
from mainstem.schemas.change_text import change_text
from mainstem.schemas.changes import NotAChange
from mainstem.schemas.documents import plain_document
from mainstem.testing.changes import document_value, given, sqlserver_value, told
from mainstem.vocabulary import Column, SourceLocation

ANNE = (
    '{"_id": {"$numberLong": "1004"},"first_name": "Anne \\"$oid\\" ü","born": {"$date": -1000},'
    '"price": {"$numberDecimal": "12.30"},"tags": ["a",{"$numberLong": "5"}],'
    '"home": {"city": "Bonn","at": {"$oid": "596e275826f08b2730779e1f"}},'
    '"data": {"$binary": "AP8=","$type": "00"},"rest": {"$timestamp": {"t": 1,"i": 2}}}'
)
COLUMNS = (
    Column("_id", "bigint"),
    Column("first_name", "string"),
    Column("born", "timestamp"),
    Column("price", "decimal(10,2)"),
    Column("tags", "array<string>"),
    Column("home", "struct<city:string,at:string>"),
    Column("data", "binary"),
    Column("rest", "string"),
    Column("missing", "int"),
)
ROW = {
    "_id": 1004,
    "first_name": 'Anne "$oid" ü',
    "born": "1969-12-31T23:59:59.000000Z",
    "price": 12.3,
    "tags": ["a", "5"],
    "home": {"city": "Bonn", "at": "596e275826f08b2730779e1f"},
    "data": "AP8=",
    "rest": '{"$timestamp":{"t":1,"i":2}}',
}


def stream(*columns: Column, key: str = "_id", whole: bool = False) -> Definition:
    """The stream of changes of a table with these columns."""
    place = SourceLocation("shop.sql", 1, 1)
    captures = Connection("mongodb-cdc", ())
    source = Definition("shop", Kind.SOURCE, "", place, "", captures=captures)
    table = Captured("shop.orders", "shop.shop.orders", columns, (key,), whole=whole, home="shop")
    changes, _ = definitions_of(source, [table])
    return changes


def read(definition: Definition, value: bytes, key: bytes | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(change_text(definition, value, key))
    return {name: told for name, told in found.items() if told is not None}


def test_a_document_is_read_by_its_columns() -> None:
    found = read(stream(*COLUMNS), document_value("c", ANNE, 31))
    assert {n: v for n, v in found["after"].items() if v is not None} == ROW
    assert (found["op"], found["position"]) == ("c", "1790000031:31")
    assert found["transaction"] == '{"id": 7}:31'
    assert found["at"] == "2026-09-21T14:13:51.000000Z"
    assert "before" not in found


@pytest.mark.parametrize(
    ("id_", "type_", "wanted"),
    [
        ("1004", "bigint", 1004),
        ('{"$oid": "596e275826f08b2730779e1f"}', "string", "596e275826f08b2730779e1f"),
        ('"C1"', "string", "C1"),
        ('{"a": 1}', "string", '{"a":1}'),
    ],
)
def test_what_is_gone_is_told_by_its_key(id_: str, type_: str, wanted: object) -> None:
    key = json.dumps({"id": id_}).encode()
    found = read(stream(Column("_id", type_), Column("n", "int")), document_value("d"), key)
    assert found["before"] == {"_id": wanted}
    assert "after" not in found


@pytest.mark.parametrize(
    "text", ["[1]", "{", '{"_id": {"$date": "soon"},"born": 1}', '{"born":"x"}']
)
def test_a_document_that_does_not_fit(text: str) -> None:
    definition = stream(Column("_id", "bigint"), Column("born", "timestamp"))
    with pytest.raises(NotAChange):
        change_text(definition, document_value("c", text))


def test_a_text_that_looks_like_a_value_stays_a_text() -> None:
    tricky = json.dumps({"a": '{"$numberLong": "5"}', 'b{"$oid': "{", "c": '{"'})
    assert plain_document(tricky) == tricky


def test_changes_of_sql_server() -> None:
    columns = [
        given("id", "bigint", "int64"),
        given("price", "decimal(10,2)", "string", **told("decimal", 10, 2)),
        given("at", "timestamp_ntz", "int64", "io.debezium.time.MicroTimestamp"),
        given("since", "timestamp", "string", "io.debezium.time.ZonedTimestamp"),
        given("clock", "string", "int64", "io.debezium.time.MicroTime"),
    ]
    definition = stream(*(Column(c.name, c.type) for c in columns), key="id", whole=True)
    row = {"id": 7, "price": "1.50", "at": 0, "since": "2026-01-01T00:00:00.5Z", "clock": 1_000_000}
    value = sqlserver_value(columns, "u", row, {**row, "price": "2"}, 5)
    found = json.loads(change_text(definition, value), parse_float=Decimal)
    assert found["after"] == {
        "id": 7,
        "price": Decimal("1.50"),
        "at": "1970-01-01T00:00:00.000000",
        "since": "2026-01-01T00:00:00.500000Z",
        "clock": "00:00:01",
    }
    assert found["before"]["price"] == 2
    assert found["position"] == "00000025:00000da0:0005:00000025:00000d98:0005:1"
    assert found["transaction"] == "00000025:00000da0:0005"
    other = [*columns, given("more", "string", "string")]
    with pytest.raises(MainstemError) as caught:
        change_text(definition, sqlserver_value(other, "c", row))
    assert caught.value.code == "SOURCE_CHANGED"
