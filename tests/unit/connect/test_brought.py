"""The streams and tables that a source brings."""

from __future__ import annotations

from typing import Any

import pytest

from mainstem.connect.brought import definitions_of, tables_of
from mainstem.connect.capture import Captured, Outbox
from mainstem.connect.catalogue import spec_of
from mainstem.connect.spec import Role
from mainstem.connect.targets.routes import Routes
from mainstem.connect.targets.target import Shape
from mainstem.definitions.flow import check_flow
from mainstem.definitions.model import Connection, Definition, Format, Kind
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column, SourceLocation

PLACE = SourceLocation("shop.sql", 3, 1)
ORDERS = Captured(
    "public.orders",
    "shop.public.orders",
    (Column("id", "bigint"), Column("line no", "int"), Column("price", "decimal(10,2)")),
    ("id", "line no"),
)


def source(**options: str) -> Definition:
    captures = Connection("postgres-cdc", tuple(options.items()))
    return Definition("shop", Kind.SOURCE, "", PLACE, "CREATE SOURCE ...", captures=captures)


def test_a_stream_of_changes_and_a_table_of_rows() -> None:
    changes, rows = definitions_of(source(), [ORDERS])
    assert (changes.name, changes.kind, changes.topic) == (
        "shop_orders_changes", Kind.STREAM, "shop.public.orders",
    )  # fmt: skip
    assert (changes.format, changes.partitions, changes.retention) == (
        Format.DEBEZIUM, 1, "forever",
    )  # fmt: skip
    assert {c.name: c.type for c in changes.columns} == {
        "op": "string",
        "before": "struct<id:bigint,`line no`:int>",
        "after": "struct<id:bigint,`line no`:int,price:decimal(10,2)>",
        "position": "string",
        "transaction": "string",
        "at": "timestamp",
    }
    assert (rows.name, rows.kind, rows.topic) == ("shop_orders", Kind.TABLE, "shop_orders")
    assert (rows.key, rows.columns) == (("id", "line no"), ORDERS.columns)
    assert rows.query is not None
    assert (rows.query.inputs, rows.query.location) == (("shop_orders_changes",), PLACE)
    assert {changes.source, rows.source} == {"shop"}
    check_flow(rows, [changes])


def test_the_whole_row_before_where_the_source_tells_it() -> None:
    whole = Captured(ORDERS.table, ORDERS.topic, ORDERS.columns, ORDERS.key, whole=True)
    changes, _ = definitions_of(source(), [whole])
    types = {c.name: c.type for c in changes.columns}
    assert types["before"] == types["after"]


def named(table: str) -> Captured:
    return Captured(table, f"shop.{table}", ORDERS.columns, ORDERS.key)


def test_names() -> None:
    made = definitions_of(source(), [named("public.items"), named("sales.items")])
    assert [d.name for d in made if d.derived] == ["shop_items", "shop_sales_items"]
    made = definitions_of(source(prefix="crm_"), [named("public.items")])
    assert [d.name for d in made] == ["crm_items_changes", "crm_items"]
    assert tables_of("shop", ["shop.sales.items", "shop.public.items"]) == [
        "public.items", "sales.items",
    ]  # fmt: skip


def test_a_stream_of_transactions_if_it_is_asked_for() -> None:
    *others, commits = definitions_of(source(commits="true", prefix="crm_"), [ORDERS])
    assert [d.name for d in others] == ["crm_orders_changes", "crm_orders"]
    assert (commits.name, commits.topic, commits.source) == (
        "crm_commits", "shop.transaction", "shop",
    )  # fmt: skip
    assert (commits.partitions, commits.retention) == (1, "forever")
    # so it is no table that is captured
    assert commits.format is not Format.DEBEZIUM
    assert len(definitions_of(source(commits="false"), [ORDERS])) == len(others)


@pytest.mark.parametrize(
    ("options", "tables", "code"),
    [
        ({}, ["public.a", "public.a_changes"], "DUPLICATE_NAME"),
        ({"commits": "true"}, ["public.commits"], "DUPLICATE_NAME"),
        ({"prefix": "_x"}, ["public.a"], "INVALID_NAME"),
    ],
)
def test_refusals(options: dict[str, Any], tables: list[str], code: str) -> None:
    with pytest.raises(MainstemError) as caught:
        definitions_of(source(**options), [named(table) for table in tables])
    assert caught.value.code == code


def test_an_outbox_brings_a_sink_to_the_topics_of_its_events() -> None:
    names = ("id", "aggregatetype", "aggregateid", "type", "payload")
    columns = tuple(Column(name, "string") for name in names)
    outbox = Captured("public.out", "shop.public.out", columns, ("id",), outbox=Outbox(*names))
    changes, sink = definitions_of(source(), [outbox])
    assert (sink.name, sink.noun, sink.source) == ("shop_out", "sink", "shop")
    assert sink.query is not None and sink.query.inputs == (changes.name,)
    assert sink.target is not None
    options = spec_of(Role.SINK, sink.target.connector).validate(dict(sink.target.options))
    routes = Routes.of(options, Shape.of(options, changes, sink.transforms))
    row = '{"id":"1","type":"made","after_aggregatetype":"order","after_aggregateid":"7",'
    out = routes.record(None, None, row + '"after_payload":"[1]"}', None)
    assert (out.topic, out.key, out.value) == ("shop.outbox.order", b"7", b"[1]")
    assert out.headers == (("id", b"1"), ("type", b"made"))
