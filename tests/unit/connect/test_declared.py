"""Sources whose columns are declared: SQL Server and MongoDB."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from mainstem.connect.captures import capture_of
from mainstem.connect.carrier import Around
from mainstem.connect.carriers import carrier_of
from mainstem.connect.catalogue import spec_of
from mainstem.connect.spec import Role
from mainstem.errors import MainstemError

TABLES = {
    "sqlserver-cdc": "orders (id BIGINT PRIMARY KEY, price DECIMAL(10, 2)), sales.items (a INT "
    "PRIMARY KEY, b STRING PRIMARY KEY, c DATE)",
    "mongodb-cdc": "orders (item STRING, at TIMESTAMP), other.people (_id BIGINT, tags "
    "ARRAY<STRING>)",
}


@pytest.fixture
def port() -> Iterator[int]:
    """Somebody listens there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def options(connector: str, url: str, **written: str) -> dict[str, Any]:
    given = {"url": "${env:U}", "tables": TABLES[connector], **written}
    return {**spec_of(Role.SOURCE, connector).validate(given), "url": url}


def refused(connector: str, url: str, **written: str) -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        capture_of(connector).look("x", options(connector, url, **written))
    return caught.value


def config(connector: str, url: str, *tables: str, **written: str) -> Any:
    secrets: dict[str, str] = {}

    def put_away(key: str, value: str) -> str:
        secrets[key] = value
        return "${file:/run/x:" + key + "}"

    around = Around("mainstem.p.x", {"bootstrap.servers": "broker:9092"})
    configure = carrier_of(connector).config
    return configure("x", options(connector, url, **written), tables, put_away, around), secrets


def test_tables_of_sql_server(port: int) -> None:
    url = f"sqlserver://me@127.0.0.1:{port}/shop"
    orders, items = capture_of("sqlserver-cdc").look("x", options("sqlserver-cdc", url))
    assert (orders.table, orders.topic, orders.key) == ("dbo.orders", "x.shop.dbo.orders", ("id",))
    assert [column.type for column in orders.columns] == ["bigint", "decimal(10,2)"]
    assert (items.topic, items.key, items.whole) == ("x.shop.sales.items", ("a", "b"), True)
    assert not items.joins


def test_collections_of_mongodb(port: int) -> None:
    url = f"mongodb://127.0.0.1:1,127.0.0.1:{port}/shop?replicaSet=rs0"
    orders, people = capture_of("mongodb-cdc").look("x", options("mongodb-cdc", url))
    assert (orders.table, orders.topic, orders.key) == ("shop.orders", "x.shop.orders", ("_id",))
    assert (orders.columns[0].name, orders.columns[0].type) == ("_id", "string")
    assert [(c.name, c.type) for c in people.columns] == [
        ("_id", "bigint"), ("tags", "array<string>"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("connector", "url", "tables", "code", "option"),
    [
        ("sqlserver-cdc", "sqlserver://127.0.0.1:1/shop", None, "CONNECTOR_UNREACHABLE", "url"),
        ("sqlserver-cdc", "sqlserver://127.0.0.1:1", None, "INVALID_OPTION", "url"),
        ("sqlserver-cdc", "mysql://127.0.0.1:1/shop", None, "INVALID_OPTION", "url"),
        ("sqlserver-cdc", "sqlserver://h/shop", "orders (id INT)", "SOURCE_NO_KEY", "tables"),
        ("sqlserver-cdc", "sqlserver://h/shop", "orders", "INVALID_OPTION", "tables"),
        ("sqlserver-cdc", "sqlserver://h/shop", "o (a INT), o (b INT)", "INVALID_OPTION", "tables"),
        ("sqlserver-cdc", "sqlserver://h/shop", "o (a INT, A INT)", "INVALID_OPTION", "tables"),
        ("sqlserver-cdc", "sqlserver://h/shop", "o (a ARRAY<INT>)", "SOURCE_COLUMN", "tables"),
        ("sqlserver-cdc", "sqlserver://h/shop", "`o o` (a INT)", "INVALID_NAME", "tables"),
        ("mongodb-cdc", "mongodb://127.0.0.1:1/shop", None, "CONNECTOR_UNREACHABLE", "url"),
        ("mongodb-cdc", "mongodb://127.0.0.1:x/shop", None, "INVALID_OPTION", "url"),
        ("mongodb-cdc", "mongodb://127.0.0.1:1", None, "INVALID_OPTION", "url"),
        ("mongodb-cdc", "mongodb://h/s", "o (a ARRAY<TIMESTAMP>)", "SOURCE_COLUMN", "tables"),
        ("mongodb-cdc", "mongodb://h/s", "o (a DATE)", "SOURCE_COLUMN", "tables"),
    ],
)
def test_what_is_refused(
    connector: str, url: str, tables: str | None, code: str, option: str
) -> None:
    error = refused(connector, url, **({} if tables is None else {"tables": tables}))
    assert (error.code, error.params["option"]) == (code, option)


def test_the_configuration_for_sql_server() -> None:
    url = "sqlserver://me:pass%20word@db.example/shop"
    made, secrets = config("sqlserver-cdc", url, "shop.dbo.orders", "shop.sales.items")
    wanted = {
        "database.hostname": "db.example",
        "database.port": "1433",
        "database.names": "shop",
        "database.user": "me",
        "database.encrypt": "true",
        "database.trustServerCertificate": "false",
        "table.include.list": r"dbo\.orders,sales\.items",
        "topic.prefix": "x",
        "exactly.once.support": "required",
        "schema.history.internal.kafka.topic": "_mainstem.history.x",
        "snapshot.mode": "initial",
    }
    assert wanted.items() <= made.items()
    assert made["column.include.list"].split(",") == [
        r"dbo\.orders\.id", r"dbo\.orders\.price",
        r"sales\.items\.a", r"sales\.items\.b", r"sales\.items\.c",
    ]  # fmt: skip
    assert secrets == {"database.password": "pass word"}
    assert "pass word" not in str(made)


def test_the_configuration_for_mongodb() -> None:
    url = "mongodb://me:pw@db.example:27017/shop?replicaSet=rs0"
    made, secrets = config("mongodb-cdc", url, "shop.orders", snapshot="none")
    wanted = {
        "collection.include.list": r"shop\.orders",
        "capture.mode": "change_streams_update_full",
        "capture.scope": "database",
        "capture.target": "shop",
        "exactly.once.support": "required",
        "snapshot.mode": "no_data",
    }
    assert wanted.items() <= made.items()
    assert made["mongodb.connection.string"] == "mongodb://db.example:27017/shop?replicaSet=rs0"
    assert (made["mongodb.user"], secrets) == ("me", {"mongodb.password": "pw"})
    assert "pw" not in str(made)
    both, secrets = config(
        "mongodb-cdc", "mongodb://h/shop", "shop.orders", "other.people",
        user="me", password="${env:P}",
    )  # fmt: skip
    assert "capture.scope" not in both
    assert (both["mongodb.user"], both["mongodb.authsource"]) == ("me", "admin")
    assert secrets["mongodb.password"] == "${env:P}"
