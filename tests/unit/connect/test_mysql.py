"""The configuration of Debezium's connectors for MySQL and MariaDB, their types and positions."""

from __future__ import annotations

from typing import Any

import pytest

from mainstem.connect.carrier import Around
from mainstem.connect.carriers import carrier_of
from mainstem.connect.catalogue import spec_of
from mainstem.connect.mysql_connection import address
from mainstem.connect.mysql_logs import LogState, log_state
from mainstem.connect.mysql_types import MySqlType, spark_type
from mainstem.connect.spec import Role
from mainstem.errors import MainstemError

URL = "mysql://clerk:pass%20word@db.example:3307/shop"
CLIENTS = {"bootstrap.servers": "broker:9092", "sasl.jaas.config": "pass word"}


def config(
    connector: str = "mariadb-cdc", project: str = "project", **written: str
) -> tuple[dict[str, str], dict[str, str]]:
    options = spec_of(Role.SOURCE, connector).validate(
        {"url": "${env:U}", "tables": "orders", **written}
    )
    options |= {"url": URL, "drop": ("orders.pin", "sales.items.pin")}
    put_away: dict[str, str] = {}

    def secret(key: str, value: str) -> str:
        put_away[key] = value
        return f"${{file:/run/x:{key}}}"

    around = Around(f"mainstem.{project}.shop", CLIENTS)
    tables = ["shop.orders", "sales.items"]
    return carrier_of(connector).config("shop", options, tables, secret, around), put_away


def test_where_and_what() -> None:
    made, put_away = config()
    wanted = {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "topic.prefix": "shop",
        "table.include.list": r"sales\.items,shop\.orders",
        "column.exclude.list": r"shop\.orders\.pin,sales\.items\.pin",
        "database.hostname": "db.example",
        "database.port": "3307",
        "database.user": "clerk",
        "database.ssl.mode": "disable",
        "snapshot.mode": "initial",
        "schema.history.internal.kafka.topic": "_mainstem.history.shop",
        "signal.kafka.topic": "_mainstem.signals.shop",
        "exactly.once.support": "required",
        "bigint.unsigned.handling.mode": "precise",
        "value.converter.decimal.format": "NUMERIC",
    }
    assert wanted.items() <= made.items()
    assert put_away == {"database.password": "pass word", "kafka.sasl.jaas.config": "pass word"}
    assert "pass word" not in str(made)
    plain, _ = config("mysql-cdc", tls="required")
    assert plain["connector.class"] == "io.debezium.connector.mysql.MySqlConnector"
    assert plain["database.ssl.mode"] == "required"
    assert not [key for key in plain if key.startswith("signal.")]


def test_the_id_of_a_reader_is_its_own_and_stays() -> None:
    ids = [config(project=project)[0]["database.server.id"] for project in ("a", "a", "b")]
    assert ids[0] == ids[1] != ids[2]
    assert all(0 < int(id) < 2**32 for id in ids)
    assert config(server_id="77")[0]["database.server.id"] == "77"


@pytest.mark.parametrize(
    "url", ["postgresql://db/shop", "mysql://db", "mysql:///x", "mysql://a:x/b"]
)
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(MainstemError) as caught:
        address({"url": url})
    assert (caught.value.code, caught.value.params["option"]) == ("INVALID_OPTION", "url")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (("tinyint", "tinyint(1)"), "smallint"),
        (("tinyint", "tinyint(3) unsigned"), "smallint"),
        (("smallint", "smallint(5) unsigned"), "int"),
        (("mediumint", "mediumint(8) unsigned"), "int"),
        (("int", "int(10) unsigned zerofill"), "bigint"),
        (("bigint", "bigint unsigned"), "decimal(20,0)"),
        (("decimal", "decimal(38,2) unsigned", 38, 2), "decimal(38,2)"),
        (("decimal", "decimal(39,2)", 39, 2), "string"),
        (("bit", "bit(1)"), "boolean"),
        (("bit", "bit(2)"), "string"),
        (("enum", "enum('a','b,c')"), "string"),
        (("enum", r"enum('a\\b')"), None),
        (("timestamp", "timestamp(6)"), "timestamp"),
        (("datetime", "datetime"), "timestamp_ntz"),
        (("geometry", "geometry"), None),
        (("inet6", "inet6"), None),
    ],
)
def test_types(given: tuple[Any, ...], wanted: str | None) -> None:
    assert spark_type(MySqlType(*given)) == wanted


def test_without_a_position_nothing_is_missing() -> None:
    assert log_state("shop", {}, list) == LogState()
    assert LogState("binlog.000001:4", gone="binlog.000001").problem is not None
