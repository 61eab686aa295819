"""The application shows sources and sinks, and tries transforms."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.unit.gateway.world import ENTRIES, Stub, entry, sql

from mainstem.catalog.entry import Catalog, Entry
from mainstem.connect.brought import definitions_of
from mainstem.connect.capture import Captured
from mainstem.vocabulary import Column


@pytest.fixture
def connected(stub: Stub) -> None:
    """A source with what it has brought, and a sink."""
    source = entry("CREATE SOURCE shop WITH (connector = 'postgres-cdc', url = '${env:URL}')")
    table = Captured("public.orders", "shop.public.orders", (Column("id", "bigint"),), ("id",))
    brought = [Entry(d, "f") for d in definitions_of(source.definition, [table])]
    sink = entry("CREATE SINK out FROM users WITH (connector = 'files', folder = '/x')")
    entries = {e.name.lower(): e for e in (*ENTRIES, source, *brought, sink)}
    stub.entries = Catalog(entries, 6)


@pytest.mark.usefixtures("connected")
def test_sources_and_sinks_are_shown(client: TestClient) -> None:
    [source] = sql(client, "SHOW SOURCES")["rows"]
    assert source == ["shop", "postgres-cdc", "shop_orders", "running", None]
    assert sql(client, "SHOW SINKS")["rows"] == [["out", "files", "users", None, None, None]]
    assert "out" not in [row[0] for row in sql(client, "SHOW STREAMS")["rows"]]
    listed = sql(client, "SHOW CONNECTORS")["rows"]
    assert ["postgres-cdc", "source"] in [row[:2] for row in listed]
    described = sql(client, "DESCRIBE shop")
    assert described["rows"] == [["connector", "postgres-cdc"], ["url", "${env:URL}"]]
    assert described["note"].splitlines() == [
        "table shop_orders: topic shop_orders",
        "stream shop_orders_changes: topic shop.public.orders",
    ]
    assert "comes with the source shop" in sql(client, "DESCRIBE shop_orders")["note"]
    assert ["folder", "/x"] in sql(client, "DESCRIBE out")["rows"]
    connector = sql(client, "DESCRIBE CONNECTOR 'postgres-cdc'")
    assert {"url", "tables"} <= {row[0] for row in connector["rows"]}
    assert "CREATE SOURCE" in connector["note"]


@pytest.mark.usefixtures("connected")
def test_sources_and_sinks_are_objects_without_rows_of_their_own(client: TestClient) -> None:
    source = client.get("/v1/objects/shop").json()
    assert (source["kind"], source["columns"], source["connector"]) == (
        "source", [], "postgres-cdc",
    )  # fmt: skip
    assert source["topics"] == ["shop.public.orders"]
    assert client.get("/v1/objects/shop_orders").json()["source"] == "shop"
    assert client.get("/v1/objects/out").json()["sink"] is True
    assert len(client.get("/v1/objects").json()["objects"]) == len(ENTRIES) + 4
    document = client.get("/v1/asyncapi").json()
    assert "receive_shop_orders_changes" in document["operations"]
    assert "" not in [channel["address"] for channel in document["channels"].values()]
    assert client.get("/metrics").status_code == 200


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT * FROM shop", "WRONG_KIND"),
        ("EXPLAIN shop", "NO_FLOW"),
        ("INSERT INTO shop VALUES (1)", "WRONG_KIND"),
        ("INSERT INTO shop_orders VALUES (1)", "OBJECT_OF_SOURCE"),
        ("INSERT INTO shop_orders_changes VALUES (1)", "OBJECT_OF_SOURCE"),
        ("INSERT INTO out VALUES (1)", "WRONG_KIND"),
        ("DESCRIBE CONNECTOR 'postgres-cd'", "UNKNOWN_CONNECTOR"),
    ],
)
def test_what_sources_and_sinks_are_not_for(client: TestClient, text: str, code: str) -> None:
    answer = sql(client, text)
    assert answer["title"] == code
    assert answer["location"]["line"] == 1


@pytest.mark.usefixtures("connected")
def test_a_source_has_no_rows_to_look_up_and_takes_none(client: TestClient) -> None:
    assert client.get("/v1/tables/shop/rows").json()["title"] == "WRONG_KIND"
    record = {"records": [{"value": {"id": 1}}]}
    for name, code in (("shop", "WRONG_KIND"), ("shop_orders", "OBJECT_OF_SOURCE")):
        answer = client.post(f"/v1/streams/{name}/records", json=record)
        assert answer.json()["title"] == code


def test_transforms_are_tried_on_records_of_an_object_or_of_columns(client: TestClient) -> None:
    def tried(**request: Any) -> Any:
        given = {"records": ['{"n": 1.10}'], **request}
        return client.post("/v1/transforms/trial", json=given).json()

    found = tried(transforms="drop(NAME), rename(id, Key)", object="Users")
    assert found["columns"] == ["id", "name"]
    [record] = found["records"]
    assert record["cause"] == "drop(name); rename(id, Key)"
    assert (record["before"], record["after"]) == ({"n": 1.1}, None)
    assert tried(transforms="drop(b)", columns="a INT, b INT")["columns"] == ["a", "b"]
    assert tried(transforms="drop(b)", object="talk")["columns"] == ["city", "text"]
    assert tried(transforms="drop(a)", object="nobody")["title"] == "UNKNOWN_RELATION"
    assert tried(transforms="drop(a)")["title"] == "BAD_REQUEST"
    assert tried(object="users")["title"] == "BAD_REQUEST"
    refused = tried(transforms="drop(a),\n dorp(b)", object="users")
    assert refused["title"] == "UNKNOWN_TRANSFORM"
    assert (refused["location"]["line"], refused["location"]["column"]) == (2, 2)
    refused = tried(transforms="drop(a)", columns="a INT, b INTT")
    assert (refused["title"], refused["location"]["line"]) == ("UNKNOWN_TYPE", 1)
    large = ["x" * 1000] * 1000
    assert tried(transforms="drop(a)", columns="a INT", records=large)["title"] == "BAD_REQUEST"


def test_transforms_of_a_sink_are_shown_and_tried(client: TestClient, stub: Stub) -> None:
    written = "CREATE SINK out FROM users WITH (connector = 'files', folder = '/x')"
    plain = entry(written.replace("out", "plain"))
    made = entry(f"{written} TRANSFORM (drop(name))")
    stub.entries = Catalog({e.name.lower(): e for e in (*ENTRIES, made, plain)}, 6)
    assert "transform: drop(name)" in sql(client, "DESCRIBE out")["note"]

    def tried(**request: Any) -> Any:
        return client.post("/v1/transforms/trial", json={"records": ["{}"], **request}).json()

    found = tried(sink="out")
    assert found["columns"] == ["id", "name"]
    assert found["records"][0]["cause"] == "drop(name)"
    assert tried(sink="out", transforms="keep(id)")["records"][0]["cause"] == "keep(id)"
    assert tried(sink="plain")["title"] == "BAD_REQUEST"
