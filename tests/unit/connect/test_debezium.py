"""The configuration of Debezium's connector for PostgreSQL, and PostgreSQL's types."""

from __future__ import annotations

from typing import Any

import pytest

from mainstem.connect.carrier import Around
from mainstem.connect.connectors.postgres_cdc import SPEC
from mainstem.connect.debezium_postgres import connector_config
from mainstem.connect.postgres_types import PostgresType, spark_type

URL = "postgresql://clerk:pass%20word@db.example:6543/shop?sslmode=require"


def config(
    url: str = URL, columns: dict[str, tuple[str, ...]] | None = None, **written: str
) -> tuple[dict[str, str], dict[str, str]]:
    options = SPEC.validate({"url": "${env:U}", "tables": "orders", **written})
    options |= columns or {}
    put_away: dict[str, str] = {}

    def secret(key: str, value: str) -> str:
        put_away[key] = value
        return "${file:/run/x:password}"

    tables = ["sales.items", "public.orders"]
    around = Around("mainstem.project.shop", {"bootstrap.servers": "broker:9092"})
    return connector_config("shop", {**options, "url": url}, tables, secret, around), put_away


def test_where_and_what() -> None:
    made, put_away = config()
    wanted = {
        "topic.prefix": "shop",
        "table.include.list": r"public\.orders,sales\.items",
        "database.hostname": "db.example",
        "database.port": "6543",
        "database.dbname": "shop",
        "database.user": "clerk",
        "database.password": "${file:/run/x:password}",
        "database.sslmode": "require",
        "slot.name": "mainstem_shop",
        "publication.name": "mainstem_shop",
        "publication.autocreate.mode": "filtered",
        "snapshot.mode": "initial",
        "heartbeat.interval.ms": "10000",
    }
    assert wanted.items() <= made.items()
    assert put_away == {"database.password": "pass word"}
    assert "pass word" not in str(made)
    assert "provide.transaction.metadata" not in made
    assert all(isinstance(value, str) for value in made.values())


def test_options() -> None:
    made, _ = config(
        snapshot="none",
        slot="mine",
        publication="theirs",
        heartbeat="1 minute",
        exclude="public.orders.note, *.secret",
        commits="true",
    )
    wanted = {
        "provide.transaction.metadata": "true",
        "snapshot.mode": "no_data",
        "slot.name": "mine",
        "publication.name": "theirs",
        "publication.autocreate.mode": "disabled",
        "heartbeat.interval.ms": "60000",
        "column.exclude.list": r"public\.orders\.note,.*\.secret",
    }
    assert wanted.items() <= made.items()


def test_columns_that_are_not_for_the_log() -> None:
    columns = {"drop": ("public.orders.pin",), "redact": ("public.orders.card", "a.b.c")}
    made, _ = config(exclude="*.secret", columns=columns)
    assert made["column.exclude.list"] == r".*\.secret,public\.orders\.pin"
    assert made["column.mask.with.3.chars"] == r"public\.orders\.card,a\.b\.c"
    plain, _ = config()
    assert not {"column.exclude.list", "column.mask.with.3.chars"} & plain.keys()


def test_nothing_is_lost_and_no_value_changes() -> None:
    """What each of these guards is told beside it in the module."""
    made, _ = config()
    wanted = {
        "exactly.once.support": "required",
        "offset.mismatch.strategy": "trust_offset",
        "skipped.operations": "none",
        "decimal.handling.mode": "string",
        "interval.handling.mode": "string",
        "include.unknown.datatypes": "true",
        "value.converter.schemas.enable": "true",
        "value.converter.replace.null.with.default": "false",
    }
    assert wanted.items() <= made.items()


def numeric(precision: int, scale: int) -> int:
    return (precision << 16 | scale & 0x7FF) + 4


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (("int8",), "bigint"),
        (("numeric", numeric(10, 2)), "decimal(10,2)"),
        (("numeric", numeric(38, 38)), "decimal(38,38)"),
        (("numeric", numeric(39, 2)), "string"),
        (("numeric", numeric(3, -2)), "string"),
        (("numeric", numeric(2, 4)), "string"),
        (("numeric",), "string"),
        (("bit", 1), "boolean"),
        (("bit", 8), None),
        (("varbit",), None),
        (("point",), None),
        (("mood", -1, True), "string"),
        (("int4", -1, False, True), "array<int>"),
        (("numeric", numeric(5, 1), False, True), "array<decimal(5,1)>"),
        (("interval", -1, False, True), None),
    ],
)
def test_types(given: tuple[Any, ...], wanted: str | None) -> None:
    assert spark_type(PostgresType(*given)) == wanted
