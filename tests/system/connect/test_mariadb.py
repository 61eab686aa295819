"""Looking into a MariaDB before its changes are captured, and at its binary log afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mainstem.connect.captures import capture_of
from mainstem.connect.connectors.mariadb_cdc import SPEC
from mainstem.connect.mysql_logs import log_state
from mainstem.errors import MainstemError
from mainstem.testing.source_mariadb import PASSWORD, SourceMariaDb
from mainstem.testing.waiting import eventually

CLERK = "clerk secret"
RIGHTS = "RELOAD, REPLICATION SLAVE, REPLICATION CLIENT"


@pytest.fixture
def clerk(market: SourceMariaDb) -> Iterator[str]:
    """The URL of a user who may capture, and a table."""
    market.run(
        "CREATE TABLE orders (id int PRIMARY KEY, note varchar(9), place point)",
        f"CREATE USER clerk@'%' IDENTIFIED BY '{CLERK}'",
        f"GRANT {RIGHTS} ON *.* TO clerk@'%'",
        "GRANT SELECT ON shop.* TO clerk@'%'",
    )
    yield market.url("clerk", CLERK)
    market.run("DROP TABLE orders", "DROP USER clerk@'%'")


def options(url: str, tables: str = "orders", **more: str) -> dict[str, Any]:
    """The options of a source as they are written; the URL comes from a secret."""
    given = {"exclude": "shop.orders.place", **more}
    return {**SPEC.validate({"url": "${env:U}", "tables": tables, **given}), "url": url}


def look(url: str, tables: str = "orders", connector: str = "mariadb-cdc", **more: str) -> Any:
    return capture_of(connector).look("shop", options(url, tables, **more))


def refusal(url: str, tables: str = "orders", **more: str) -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        look(url, tables, **more)
    text = f"{caught.value.message} {caught.value.hint}"
    assert not [secret for secret in (PASSWORD, CLERK, "wrong") if secret in text]
    return caught.value


def test_tables_by_name_and_pattern(market: SourceMariaDb, clerk: str) -> None:
    market.run(
        "CREATE DATABASE sales",
        "CREATE TABLE sales.items (a int, b int, PRIMARY KEY (b, a))",
        "GRANT SELECT ON sales.* TO clerk@'%'",
    )
    try:
        orders, items = look(clerk, "ord*, sales.items")
    finally:
        market.run("DROP DATABASE sales")
    assert (orders.table, orders.topic) == ("shop.orders", "shop.shop.orders")
    assert [(c.name, c.type) for c in orders.columns] == [("id", "int"), ("note", "string")]
    assert (orders.key, orders.whole, orders.joins, orders.home) == (("id",), True, True, "shop")
    assert (items.table, items.key) == ("sales.items", ("b", "a"))


def test_what_stands_in_the_way(market: SourceMariaDb, clerk: str) -> None:
    assert refusal(market.url("clerk", "wrong")).code == "SOURCE_LOGIN_REFUSED"
    away = clerk.replace(str(market.port), "1")
    assert refusal(away).code == "CONNECTOR_UNREACHABLE"
    other = refusal(clerk, connector="mysql-cdc")
    assert (other.code, other.params["option"]) == ("SOURCE_OTHER_PRODUCT", "connector")
    assert "'mariadb-cdc'" in str(other.hint)
    unknown = refusal(clerk, "oders")
    assert (unknown.code, unknown.params["option"]) == ("SOURCE_TABLE_UNKNOWN", "tables")
    assert "shop.orders" in str(unknown.hint)
    assert refusal(clerk, exclude="x.y.z").code == "SOURCE_COLUMN"  # a point
    market.run("CREATE TABLE loose (id int)")
    assert refusal(clerk, "loose").code == "SOURCE_NO_KEY"
    market.run("DROP TABLE loose", "CREATE TABLE net (ip inet6 PRIMARY KEY)")
    assert refusal(clerk).code == "SOURCE_UNREADABLE"
    market.run("DROP TABLE net")
    assert len(look(clerk)) == 1


def test_rights_are_told_with_the_grant(market: SourceMariaDb, clerk: str) -> None:
    for right in RIGHTS.split(", "):
        market.run(f"REVOKE {right} ON *.* FROM clerk@'%'")
        error = refusal(clerk)
        assert error.code == "SOURCE_NOT_ALLOWED"
        assert f"GRANT {right} ON *.* TO 'clerk'@'%'" in str(error.hint)
        market.run(str(error.params["grant"]))
    market.run("REVOKE SELECT ON shop.* FROM clerk@'%'")
    error = refusal(clerk)
    assert error.params["grant"] == "GRANT SELECT ON `shop`.`orders` TO 'clerk'@'%'"
    market.run(error.params["grant"])
    assert len(look(clerk)) == 1


@pytest.mark.parametrize(
    ("setting", "value"), [("binlog_format", "STATEMENT"), ("binlog_row_image", "MINIMAL")]
)
def test_settings_of_the_binary_log(
    market: SourceMariaDb, clerk: str, setting: str, value: str
) -> None:
    [before] = market.run(f"SELECT @@global.{setting} AS it")
    market.run(f"SET GLOBAL {setting} = '{value}'")
    try:
        error = refusal(clerk)
    finally:
        market.run(f"SET GLOBAL {setting} = '{before['it']}'")
    assert (error.code, error.params["setting"]) == ("SOURCE_BINLOG", setting)


def test_a_binary_log_that_is_gone(market: SourceMariaDb, clerk: str) -> None:
    [at] = market.run("SHOW MASTER STATUS")
    offset = {"file": at["file"], "pos": at["position"]}
    found = options(clerk)

    def state() -> Any:
        return log_state("shop", found, lambda: [{"partition": {}, "offset": offset}])

    market.run("INSERT INTO orders (id) VALUES (1)")
    assert state().problem is None
    assert state().held_bytes > 0
    market.run("FLUSH BINARY LOGS")
    [end] = market.run("SHOW MASTER STATUS")

    def gone() -> str | None:  # the server keeps a file for as long as it may need it itself
        market.run(f"PURGE BINARY LOGS TO '{end['file']}'")
        problem: str | None = state().problem
        return problem

    assert at["file"] in str(eventually(gone, 60.0))
