"""Looking into a PostgreSQL before its changes are captured, and clearing up behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mainstem.connect.capture import Outbox
from mainstem.connect.connectors.postgres_cdc import SPEC
from mainstem.connect.postgres import PostgresCapture
from mainstem.connect.postgres_slots import SlotState, remove, slot_state
from mainstem.errors import MainstemError
from mainstem.testing.source_postgres import PASSWORD, SUPERUSER, SourcePostgres
from mainstem.vocabulary import Column

Admin = psycopg.Connection[Any]


def options(url: str, tables: str = "orders", **more: str) -> dict[str, Any]:
    """The options of a source as they are written; the URL comes from a secret."""
    return {**SPEC.validate({"url": "${env:U}", "tables": tables, **more}), "url": url}


def look(url: str, tables: str = "orders", **more: str) -> Any:
    return PostgresCapture().look("shop", options(url, tables, **more))


def refusal(url: str, tables: str = "orders", **more: str) -> MainstemError:
    with pytest.raises(MainstemError) as caught:
        look(url, tables, **more)
    text = f"{caught.value.message} {caught.value.hint}"
    assert PASSWORD not in text
    assert "wrong secret" not in text
    return caught.value


def test_columns_and_keys_of_the_tables(shop: SourcePostgres, admin: Admin) -> None:
    admin.execute("CREATE DOMAIN cents AS numeric(12,2)")
    admin.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
    admin.execute(
        "CREATE TABLE orders (b int, a bigint, small smallint, yes boolean, r real,"
        " d double precision, n numeric(10,3), free numeric, wide numeric(60,2), price cents,"
        " m money, t text, v varchar(9), c char(3), u uuid, j json, jb jsonb, x xml, i inet,"
        " mood mood, day date, clock time, zoned timetz, at timestamp, ms timestamp(3),"
        " since timestamptz, span interval, bytes bytea, flag bit(1), texts text[],"
        " numbers numeric(6,1)[], days date[], moods mood[],"
        ' "Odd name" int, PRIMARY KEY (a, b))'
    )
    admin.execute("CREATE TABLE sure (id int PRIMARY KEY, big text)")
    admin.execute("ALTER TABLE sure REPLICA IDENTITY FULL")
    orders, sure = look(shop.url(), "orders, public.s*")
    assert (orders.table, orders.topic) == ("public.orders", "shop.public.orders")
    assert (orders.key, orders.whole) == (("a", "b"), False)
    assert "REPLICA IDENTITY FULL" in orders.note and "(numbers, moods)" in orders.note
    assert sure.note is None
    assert {c.name: c.type for c in orders.columns} == {
        "b": "int",
        "a": "bigint",
        "small": "smallint",
        "yes": "boolean",
        "r": "float",
        "d": "double",
        "n": "decimal(10,3)",
        "free": "string",
        "wide": "string",
        "price": "decimal(12,2)",
        "m": "decimal(19,2)",
        **dict.fromkeys(("t", "v", "c", "u", "j", "jb", "x", "i", "mood"), "string"),
        "day": "date",
        **dict.fromkeys(("clock", "zoned", "span"), "string"),
        "at": "timestamp_ntz",
        "ms": "timestamp_ntz",
        "since": "timestamp",
        "bytes": "binary",
        "flag": "boolean",
        "texts": "array<string>",
        "numbers": "array<decimal(6,1)>",
        "days": "array<date>",
        "moods": "array<string>",
        "Odd name": "int",
    }
    assert [column.name for column in orders.columns][:2] == ["b", "a"]
    assert (sure.key, sure.whole) == (("id",), True)


def test_columns_can_be_left_out(shop: SourcePostgres, admin: Admin) -> None:
    admin.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, at point, twice int GENERATED ALWAYS AS (id * 2)"
        " STORED, note text)"
    )
    error = refusal(shop.url())
    assert (error.code, error.params["column"]) == ("SOURCE_COLUMN", "at")
    error = refusal(shop.url(), exclude="public.orders.at")
    assert (error.code, error.params["column"]) == ("SOURCE_COLUMN", "twice")
    [orders] = look(shop.url(), exclude="public.orders.at, *.twice")
    assert orders.columns == (Column("id", "int"), Column("note", "string"))


def test_transforms_are_held_against_the_columns(shop: SourcePostgres, admin: Admin) -> None:
    admin.execute("CREATE DOMAIN mail AS text")
    admin.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, a text, b varchar(9), c char(3), d uuid, e mail)"
    )
    told = {name: (f"public.orders.{name}",) for name in ("id", "a", "b", "c", "d", "e", "none")}
    asked = options(shop.url())
    capture = PostgresCapture()
    for name in ("a", "b", "c"):
        [orders] = capture.look("shop", {**asked, "redact": told[name]})
        assert len(orders.columns) == 6
    [orders] = capture.look("shop", {**asked, "drop": told["d"]})
    assert [column.name for column in orders.columns] == ["id", "a", "b", "c", "e"]
    for name in ("d", "e", "id", "none"):  # what Debezium would let through as it is
        with pytest.raises(MainstemError) as caught:
            capture.look("shop", {**asked, "redact": told[name]})
        assert caught.value.params["column"] == f"public.orders.{name}"
    with pytest.raises(MainstemError):
        capture.look("shop", {**asked, "drop": ("public.order.a",)})


def test_who_cannot_log_in(shop: SourcePostgres, admin: Admin) -> None:
    admin.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    assert refusal(shop.url(password="wrong secret")).code == "SOURCE_LOGIN_REFUSED"
    assert refusal(shop.url("nobody", "wrong secret")).code == "SOURCE_LOGIN_REFUSED"
    nowhere = f"postgresql://{SUPERUSER}:wrong%20secret@127.0.0.1:1/shop"
    assert refusal(nowhere).code == "CONNECTOR_UNREACHABLE"
    assert refusal("postgresql://[wrong secret").code == "INVALID_OPTION"
    plain = f"postgresql://127.0.0.1:{shop.port}/shop"
    found = PostgresCapture().look(
        "shop", {**options(plain), "user": SUPERUSER, "password": PASSWORD}
    )
    assert [table.table for table in found] == ["public.orders"]


def test_tables_that_cannot_be_captured(shop: SourcePostgres, admin: Admin) -> None:
    admin.execute("CREATE TABLE orders (id int)")
    admin.execute("CREATE VIEW view AS SELECT 1")
    error = refusal(shop.url(), "public.order")
    assert error.code == "SOURCE_TABLE_UNKNOWN"
    assert "public.orders" in error.hint
    assert refusal(shop.url(), "view").code == "SOURCE_TABLE_UNKNOWN"
    assert refusal(shop.url()).code == "SOURCE_NO_KEY"
    admin.execute("ALTER TABLE orders ADD PRIMARY KEY (id)")
    admin.execute("ALTER TABLE orders REPLICA IDENTITY NOTHING")
    assert refusal(shop.url()).code == "SOURCE_REPLICA_IDENTITY"


@pytest.fixture
def clerk(shop: SourcePostgres, admin: Admin) -> Iterator[str]:
    """The URL of a user without any rights, for a table of others."""
    admin.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    admin.execute("CREATE ROLE clerk LOGIN PASSWORD 'clerk'")
    admin.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    yield shop.url("clerk", "clerk")
    admin.execute("DROP OWNED BY clerk")
    admin.execute("DROP ROLE clerk")


def test_each_missing_right_is_told_with_its_grant(admin: Admin, clerk: str) -> None:
    """What the hints say is done, one after the other, until nothing is missing."""
    wanted = [
        'ALTER ROLE "clerk" REPLICATION',
        'GRANT CREATE ON DATABASE "shop" TO "clerk"',
        'GRANT USAGE ON SCHEMA "public" TO "clerk"',
        'GRANT SELECT ON "public"."orders" TO "clerk"',
    ]
    for grant in wanted:
        error = refusal(clerk)
        assert (error.code, error.params["grant"]) == ("SOURCE_NOT_ALLOWED", grant)
        admin.execute(grant.encode())
    error = refusal(clerk)
    assert (error.code, "belongs to admin" in error.message) == ("SOURCE_NOT_ALLOWED", True)
    admin.execute("CREATE PUBLICATION for_clerk")
    error = refusal(clerk, publication="for_clerk")
    assert error.code == "SOURCE_NOT_PUBLISHED"
    admin.execute(error.params["statement"].encode())
    assert look(clerk, publication="for_clerk")
    admin.execute("DROP PUBLICATION for_clerk")


def test_slots_are_counted_watched_and_removed(shop: SourcePostgres, admin: Admin) -> None:
    admin.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    written = options(shop.url())
    state = slot_state("shop", written)
    assert state == SlotState("mainstem_shop", exists=False)
    assert "gone" in str(state.problem)
    for number in range(8):
        name = f"other_{number}" if number else "mainstem_shop"
        admin.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
    assert look(shop.url())  # its own is one of them
    assert refusal(shop.url(), slot="another").code == "SOURCE_NO_SLOT"
    admin.execute("CREATE PUBLICATION mainstem_shop FOR TABLE orders")
    admin.execute("SELECT pg_logical_emit_message(true, 'x', repeat('x', 100000))")
    state = slot_state("shop", written)
    assert (state.exists, state.active, state.lost, state.problem) == (True, False, False, None)
    assert state.held_bytes > 100_000
    for _ in range(2):  # what is gone already is no error
        remove("shop", written)
        assert not slot_state("shop", written).exists
        left = admin.execute("SELECT count(*) FROM pg_publication").fetchone()
        assert left == (0,)
    admin.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")


def test_a_server_that_keeps_too_little_in_its_log(tmp_path: Path) -> None:
    server = SourcePostgres(tmp_path, wal_level="replica").start()
    try:
        error = refusal(server.url())
        assert (error.code, error.params["level"]) == ("SOURCE_WAL_LEVEL", "replica")
    finally:
        server.remove()


def test_an_outbox_is_captured_beside_the_tables(shop: SourcePostgres, admin: Admin) -> None:
    admin.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    admin.execute("CREATE TABLE out (n int PRIMARY KEY, kind text, of text, what text, body jsonb)")
    names = ("n", "kind", "of", "what", "body")
    orders, events = look(shop.url(), outbox="out", outbox_columns=", ".join(names))
    assert (orders.outbox, events.table) == (None, "public.out")
    assert events.outbox == Outbox(*names)
    for given in ("n, kind, of, what", "n, kind, of, what, payload", "kind, of, what, body, n"):
        error = refusal(shop.url(), outbox="out", outbox_columns=given)
        assert (error.code, error.params["option"]) == ("INVALID_OPTION", "outbox_columns")
