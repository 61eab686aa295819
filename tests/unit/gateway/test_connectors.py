"""Connectors of sources: what the catalog wants of them, and what the interface tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.testclient import TestClient
from tests.unit.connect.test_keeper import NAME, ORDERS, Bench
from tests.unit.gateway.world import Stub

from mainstem.catalog.entry import Catalog, Entry
from mainstem.connect.brought import definitions_of
from mainstem.connect.capture import Captured, Events
from mainstem.connect.catalogue import spec_of
from mainstem.connect.plugins import NONE_ALLOWED, AllowedPlugins
from mainstem.connect.spec import Role
from mainstem.definitions.model import Create
from mainstem.definitions.parse import parse_one
from mainstem.engine.sources.source import source_flows
from mainstem.errors import MainstemError
from mainstem.gateway.app import create_app
from mainstem.gateway.connectors import Connectors, wanted_sources
from mainstem.gateway.listeners import Listeners
from mainstem.gateway.metrics import Metrics
from mainstem.gateway.services import Services
from mainstem.vocabulary import Column

SOURCE = (
    "CREATE SOURCE Orders WITH (connector = 'postgres-cdc', url = '${env:U}', tables = 'public.*')"
)


def catalog() -> Catalog:
    statement = parse_one(SOURCE)
    assert isinstance(statement, Create)
    columns = (Column("id", "bigint"),)
    tables = [
        Captured(f"public.{t}", f"Orders.public.{t}", columns, ("id",)) for t in ("tea", "milk")
    ]
    brought = definitions_of(statement.definition, tables)
    entries = [Entry(statement.definition, "f", generation=7, paused=True)]
    entries += [Entry(definition, "f") for definition in brought]
    return Catalog({entry.name.lower(): entry for entry in entries}, 3)


def nobody() -> Listeners:
    """No source runs in the gateway itself."""
    return Listeners(catalog, cast(Any, None), cast(Any, None))


def test_sources_of_the_catalog() -> None:
    [(key, wanted)] = wanted_sources(catalog()).items()
    assert (key, wanted.name, wanted.identity, wanted.paused) == ("orders", "Orders", 7, True)
    assert wanted.connector == "postgres-cdc"
    assert wanted.options == {"url": "${env:U}", "tables": "public.*"}
    assert wanted.tables == ("public.milk", "public.tea")
    assert wanted.topics == ("Orders.public.milk", "Orders.public.tea")


SINK = (
    "CREATE SINK out FROM clicks WITH (connector = 'connect', class = 'a.B', \"option.File\" = 'x')"
)


def test_sinks_that_connect_carries() -> None:
    statement = parse_one(SINK)
    assert isinstance(statement, Create)
    entry = Entry(statement.definition, "f", generation=4)
    [wanted] = wanted_sources(Catalog({"out": entry}, 1)).values()
    assert (wanted.role, wanted.identity) == (Role.SINK, 4)
    assert wanted.topics == ("_mainstem.plugin.out.4",)
    assert wanted.options == {"class": "a.B", "option.File": "x"}, "as it is written"


def test_a_class_is_closed_unless_it_is_allowed(bench: Bench) -> None:
    clicks = parse_one("CREATE STREAM clicks (id INT)")
    assert isinstance(clicks, Create)
    options = spec_of(Role.SINK, "connect").validate({"class": "a.B"})
    given = ("connect", options, clicks.definition, ())
    for keeper, allowed, code in (
        (None, AllowedPlugins(None, ("a.B",)), "CONNECT_NOT_GIVEN"),
        (bench.keeper, NONE_ALLOWED, "PLUGIN_UNKNOWN"),
    ):
        connectors = Connectors(catalog, keeper, nobody(), plugins=allowed)
        with pytest.raises(MainstemError) as caught:
            connectors.check_target(*given)
        assert caught.value.code == code
        with pytest.raises(MainstemError) as caught:
            source = spec_of(Role.SOURCE, "connect").validate({"class": "a.B"})
            connectors.capture_of("connect").look("x", source)
        assert caught.value.code == code
    allowed = AllowedPlugins(None, ("a.B",))
    Connectors(catalog, bench.keeper, nobody(), plugins=allowed).check_target(*given)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def client(bench: Bench) -> Iterator[TestClient]:
    connectors = Connectors(catalog, bench.keeper, nobody())
    stub = cast(Any, Stub())
    stub.connectors = connectors
    stub.metrics = Metrics(dict, tuple, connectors=connectors.all)
    app = create_app(cast(Services, stub))
    with TestClient(app, base_url="http://127.0.0.1") as made:
        yield made


def state(client: TestClient) -> str:
    [one] = client.get("/v1/connectors").json()["connectors"]
    return str(one["state"])


def test_states(client: TestClient, bench: Bench) -> None:
    assert client.get("/v1/connectors").json() == {
        "worker": {"state": "off", "url": "http://connect.example:8083", "problem": None},
        "connectors": [],
    }
    bench.wanted = {"orders": ORDERS}
    bench.look()
    assert state(client) == "waiting"
    bench.cluster.made[NAME].task = "UNASSIGNED"
    bench.look()
    assert state(client) == "starting"
    bench.cluster.made[NAME].task = "RUNNING"
    bench.look()
    assert state(client) == "running"
    assert 'mainstem_connector_up{connector="orders"} 1.0' in client.get("/metrics").text
    bench.cluster.made[NAME].task = "FAILED"
    bench.cluster.made[NAME].trace = "a.b.C: broken by p1"
    bench.look()
    shown = client.get("/v1/connectors/ORDERS").json()
    assert shown["state"] == "failed"
    assert shown["error"]["title"] == "CONNECTOR_FAILED"
    assert shown["tasks"][0]["trace"] == "broken by ***"
    assert 'mainstem_connector_up{connector="orders"} 0.0' in client.get("/metrics").text
    bench.now += 100
    bench.wanted["orders"] = replace(ORDERS, paused=True)
    bench.look(3)
    assert state(client) == "paused"
    bench.system.away = True
    bench.wanted.clear()
    bench.look(3)
    assert state(client) == "removing"
    assert client.delete("/v1/connectors/orders").status_code == 200
    bench.look(3)
    assert client.get("/v1/connectors").json()["connectors"] == []


def test_snapshots_of_tables(client: TestClient, bench: Bench) -> None:
    tables = ("public.orders", "public.outbox")
    bench.wanted = {"orders": replace(ORDERS, tables=tables, options={"outbox": "outbox"})}
    bench.look(2)
    at = "/v1/connectors/orders/snapshot"
    assert client.post(at).json()["tables"] == ["public.orders"], "its events would come twice"
    assert client.post(at, params={"table": ["outbox"]}).json()["tables"] == ["public.outbox"]
    assert len(bench.topics.values["signals"]) == 2
    shown = client.get("/v1/connectors/orders").json()["snapshots"]
    assert shown == {"public.orders": "running", "public.outbox": "running"}
    unknown = client.post(at, params={"table": ["order"]})
    assert (unknown.status_code, unknown.json()["title"]) == (404, "NOT_CAPTURED")


def test_commands(client: TestClient, bench: Bench) -> None:
    bench.wanted = {"orders": ORDERS}
    bench.look(2)
    offset = {"partition": {"server": "s"}, "offset": {"lsn": 7}}
    bench.cluster.made[NAME].offsets = [offset]
    assert client.get("/v1/connectors/orders/offsets").json()["offsets"] == [offset]
    for answer, status, code in (
        (client.delete("/v1/connectors/orders/offsets"), 409, "CONNECTOR_NOT_STOPPED"),
        (client.delete("/v1/connectors/orders"), 409, "CONNECTOR_WANTED"),
        (client.get("/v1/connectors/order"), 404, "CONNECTOR_UNKNOWN"),
        (client.post("/v1/connectors/order/pause"), 404, "CONNECTOR_UNKNOWN"),
        (client.post("/v1/connectors/order/restart"), 404, "CONNECTOR_UNKNOWN"),
    ):
        assert (answer.status_code, answer.json()["title"]) == (status, code)
    bench.cluster.asked.clear()
    assert client.post("/v1/connectors/orders/restart?only_failed=true").status_code == 200
    assert bench.cluster.changes == [
        f"POST /connectors/{NAME}/restart?includeTasks=true&onlyFailed=true"
    ]


def test_without_connect_each_source_says_so() -> None:
    connectors = Connectors(catalog, None, nobody())
    [shown] = connectors.all()
    assert shown["error"]["title"] == "CONNECT_NOT_GIVEN"
    assert connectors.one("orders")["name"] == "Orders"
    assert connectors.worker()["state"] == "none"
    with pytest.raises(MainstemError) as raised:
        connectors.capture_of("postgres-cdc")
    assert raised.value.code == "CONNECT_NOT_GIVEN"


def test_sources_of_the_engine_are_told_by_what_their_flows_say() -> None:
    statement = parse_one(
        "CREATE SOURCE found WITH (connector = 'files', folder = 'data', format = 'lines')"
    )
    assert isinstance(statement, Create)
    line = Captured(
        "found_events", "found_events", (Column("line", "string"),), (), events=Events()
    )
    source = Entry(statement.definition, "f", generation=2)
    [stream] = definitions_of(statement.definition, [line])
    world = Catalog({"found": source, "found_events": Entry(stream, "f")}, 1)
    said: dict[str, dict[str, Any]] = {}
    listeners = Listeners(lambda: world, cast(Any, None), cast(Any, None))
    connectors = Connectors(lambda: world, None, listeners, lambda: said)
    assert connectors.one("FOUND")["state"] == "starting"
    error = {"title": "SOURCE_FOLDER"}
    counts = {"restarts": 3, "rows_out_total": 5, "quarantined": 1}
    said["found"] = {
        "state": "retrying", "generation": 2, "error": error, "source": {"files": 4}, **counts
    }  # fmt: skip
    [told] = connectors.all()
    assert (told["state"], told["error"], told["detail"]) == ("retrying", error, {"files": 4})
    assert (told["restarts"], told["records"], told["quarantined"]) == (3, 5, 1)
    assert (told["runs_in"], told["stream"]) == ("engine", "found_events")
    said["found"]["generation"] = 1  # of a source that had the name before
    assert connectors.one("found")["records"] == 0
    with pytest.raises(MainstemError) as caught:
        connectors.restart("found", only_failed=False)
    assert caught.value.code == "CONNECTOR_OF_ENGINE"
    assert [entry.name for entry in source_flows(world)] == ["found"]
    flow = source_flows(world)[0].definition
    assert (flow.topic, flow.columns) == ("found_events", stream.columns)
