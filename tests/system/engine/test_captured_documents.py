"""Captured changes of MongoDB's documents and SQL Server's rows: what Spark makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from mainstem.connect.capture import Captured
from mainstem.connect.planned import PlannedConnectors
from mainstem.connect.secrets import Secrets
from mainstem.testing.changes import document_value, given, sqlserver_value, told
from mainstem.testing.driver import Driver, Event
from mainstem.vocabulary import Column

pytestmark = pytest.mark.spark

ANNE = (
    '{"_id": {"$oid": "596e275826f08b2730779e1f"},"name": "Anne \\"$oid\\" ü",'
    '"born": {"$date": -1000},"price": {"$numberDecimal": "12.30"},"size": {"$numberLong": "5"},'
    '"ratio": 0.5,"ok": true,"tags": ["a",{"$numberLong": "5"}],'
    '"home": {"city": "Bonn","size": {"$numberLong": "7"}},'
    '"data": {"$binary": "AP8=","$type": "00"},"rest": {"$timestamp": {"t": 1,"i": 2}}}'
)
FIELDS = (
    Column("_id", "string"),
    Column("name", "string"),
    Column("born", "timestamp"),
    Column("price", "decimal(10,2)"),
    Column("size", "bigint"),
    Column("ratio", "double"),
    Column("ok", "boolean"),
    Column("tags", "array<string>"),
    Column("home", "struct<city:string,size:bigint>"),
    Column("data", "binary"),
    Column("rest", "string"),
    Column("missing", "int"),
)
ID = "596e275826f08b2730779e1f"
KEY = json.dumps({"id": json.dumps({"$oid": ID})})
OTHER = ID[:-1] + "0"


class Place:
    """What a source finds."""

    def __init__(
        self, driver: Driver, columns: tuple[Column, ...], key: str, *, whole: bool
    ) -> None:
        self.name = driver.prefix.replace("-", "_").rstrip(".") + "_orders"
        self.changes = f"{self.name}_changes"
        topic = f"{driver.prefix}shop.dbo.orders"
        self._found = Captured("dbo.orders", topic, columns, (key,), whole=whole, home="dbo")
        secrets = Secrets(driver.folder, {"SHOP": "postgresql://shop"})
        driver.connectors = PlannedConnectors(secrets, lambda _: self, lambda *_: None)
        driver.apply(
            "CREATE SOURCE shop WITH (connector = 'postgres-cdc', url = '${env:SHOP}',"
            f" tables = 'orders', prefix = '{self.name.removesuffix('orders')}');"
            f" CREATE STREAM copy WITH (partitions = 1) AS SELECT * FROM {self.changes};"
        )

    def look(self, name: str, options: Mapping[str, Any]) -> tuple[Captured, ...]:
        return (self._found,)


def test_documents(driver: Driver) -> None:
    place = Place(driver, FIELDS, "_id", whole=False)
    other = json.dumps({"id": json.dumps({"$oid": OTHER})})
    second = ANNE.replace(ID, OTHER).replace("Anne", "Berta")
    values = [
        (KEY, document_value("r", ANNE, 1)),
        (other, document_value("c", second, 2)),
        (KEY, document_value("u", ANNE.replace("Bonn", "Köln"), 3)),
        (other, document_value("d", None, 4)),
        (other, document_value("c", second.replace("true", '"no"'), 5)),
        (other, document_value("c", "{", 6)),
    ]
    driver.send(Event(place.changes, raw=value, key=key) for key, value in values)
    driver.run()
    seen = driver.rows("copy")
    assert [row["op"] for row in seen] == ["r", "c", "u", "d"]
    # whoever reads without Spark sees the same
    for row, (key, value) in zip(seen, values, strict=False):
        changes = driver.entry(place.changes).definition
        assert json.loads(driver.codec.text(changes, value, key.encode())) == _plain(row)
    assert [row["before"] for row in seen] == [None, None, {"_id": ID}, {"_id": OTHER}]
    [row] = driver.rows(place.name)
    assert (row["_id"], row["name"], row["home"]) == (
        ID, 'Anne "$oid" ü', {"city": "Köln", "size": 7},
    )  # fmt: skip
    assert len(driver.quarantine()) == 2


def test_rows_of_sql_server(driver: Driver) -> None:
    columns = [
        given("id", "bigint", "int64"),
        given("price", "decimal(10,2)", "string", **told("decimal", 10, 2)),
        given("at", "timestamp_ntz", "int64", "io.debezium.time.MicroTimestamp"),
    ]
    typed = tuple(Column(column.name, column.type) for column in columns)
    place = Place(driver, typed, "id", whole=True)
    first, second = {"id": 7, "price": "1.50", "at": 0}, {"id": 8, "price": None, "at": None}
    values = [
        sqlserver_value(columns, "r", first, number=1),
        sqlserver_value(columns, "c", second, number=2),
        sqlserver_value(columns, "u", {**first, "price": "2.00"}, first, 3),
        sqlserver_value(columns, "d", None, second, 4),
    ]
    driver.send(Event(place.changes, raw=value, key="k") for value in values)
    driver.run()
    changes = driver.entry(place.changes).definition
    for row, value in zip(driver.rows("copy"), values, strict=True):
        assert json.loads(driver.codec.text(changes, value)) == _plain(row)
    [row] = driver.rows(place.name)
    assert (row["id"], float(row["price"])) == (7, 2.0)


def _plain(row: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(row, default=float))
