"""The gateway as a process, on a real broker and a real PostgreSQL; no engine is needed."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.system.gateway.processes import Gateway

from mainstem.local.stack import Stack
from mainstem.log.connection import Connection
from mainstem.log.producer import Outgoing, Producer
from mainstem.testing.ports import free_port
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.kafka


@pytest.fixture
def users(gateway: Gateway) -> Iterator[Gateway]:
    made = gateway.sql("CREATE TABLE gw_users (id BIGINT, name STRING, PRIMARY KEY (id))")
    assert made["kind"] == "message", made
    yield gateway
    if gateway.process is not None and gateway.process.poll() is None:
        gateway.sql("DROP TABLE IF EXISTS gw_users CASCADE")


def test_from_create_to_row_to_drop(users: Gateway) -> None:
    written = users.write("gw_users", {"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"})
    assert written["written"] == 2
    eventually(lambda: users.rows("SELECT name FROM gw_users ORDER BY id") == [["Ann"], ["Bob"]])
    found = users.http.get("/v1/tables/gw_users/rows", params={"id": "2"}).json()
    assert found["rows"] == [{"id": 2, "name": "Bob"}]
    assert found["freshness"]["tables"]["gw_users"]["offsets"]
    again = users.sql("CREATE TABLE gw_users (id INT, PRIMARY KEY (id))")
    assert again["title"] == "DUPLICATE_NAME"
    assert users.sql("DROP STREAM gw_users")["title"] == "WRONG_KIND"
    records = users.http.get("/v1/topics/gw_users/records", params={"last": 2}).json()["records"]
    assert [json.loads(r["value"])["name"] for r in records] == ["Ann", "Bob"]
    assert users.sql("DROP TABLE gw_users")["kind"] == "message"
    assert users.sql("SELECT * FROM gw_users")["title"] == "UNKNOWN_RELATION"
    topics = users.http.get("/v1/topics").json()["topics"]
    assert "gw_users" not in [topic["name"] for topic in topics]


def test_plan_and_apply(gateway: Gateway) -> None:
    text = "CREATE STREAM gw_clicks (user STRING) WITH (key = 'user');"
    files = [{"path": "pipeline/clicks.sql", "text": text}]
    plan = gateway.http.post("/v1/plan", json={"files": files}).json()
    assert plan["changes"] == 1, plan
    wrong = {"files": files, "digest": "0" * 64, "revision": plan["revision"]}
    assert gateway.http.post("/v1/apply", json=wrong).json()["title"] == "STALE_PLAN"
    request = {"files": files, "digest": plan["digest"], "revision": plan["revision"]}
    assert gateway.http.post("/v1/apply", json=request).json()["applied"] == 1
    assert gateway.http.post("/v1/plan", json={"files": files}).json()["changes"] == 0
    dropping = gateway.http.post("/v1/plan", json={"files": []}).json()
    assert [step["step"] for step in dropping["plan"]["steps"]] == ["drop"]
    done = {"files": [], "digest": dropping["digest"], "revision": dropping["revision"]}
    assert gateway.http.post("/v1/apply", json=done).json()["applied"] == 1


def test_subscription_over_a_restart(users: Gateway) -> None:
    """A client that resumes with the last id after a kill -9 misses nothing and sees none twice."""
    users.write("gw_users", {"id": 1, "name": "a"})
    eventually(lambda: users.rows("SELECT * FROM gw_users"))
    sql = "SELECT id, name FROM gw_users EMIT CHANGES"
    seen: list[str] = []
    last = ""
    with users.http.stream("GET", "/v1/subscribe", params={"sql": sql}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for event in httpx2.EventSource(response):
            last = event.id
            if event.event == "progress":
                users.write("gw_users", {"id": 2, "name": "b"})
            if event.event == "upsert":
                seen.append(json.loads(event.data)["row"]["name"])
            if seen == ["a", "b"]:
                break
    users.write("gw_users", {"id": 3, "name": "c"})
    users.stop(signal.SIGKILL)
    users.start()
    users.ready()
    users.write("gw_users", {"id": 4, "name": "d"})
    headers = {"Last-Event-ID": last}
    with users.http.stream(
        "GET", "/v1/subscribe", params={"sql": sql, "limit": 2}, headers=headers
    ) as response:
        for event in httpx2.EventSource(response):
            if event.event == "upsert":
                seen.append(json.loads(event.data)["row"]["name"])
    assert seen[:2] == ["a", "b"]
    assert sorted(seen[2:]) == ["c", "d"]  # two partitions have no order between them
    eventually(lambda: users.rows("SELECT count(*) FROM gw_users") == [[4]])


def test_client_that_leaves_is_forgotten(users: Gateway) -> None:
    sql = "SELECT * FROM gw_users EMIT CHANGES"
    eventually(lambda: users.rows("SELECT * FROM gw_users") == [])
    with users.http.stream("GET", "/v1/subscribe", params={"sql": sql}) as response:
        events = iter(httpx2.EventSource(response))  # held: the stream ends with its iterator
        next(events)
        assert users.http.get("/v1/status").json()["subscriptions"] == 1
    eventually(lambda: users.http.get("/v1/status").json()["subscriptions"] == 0)


def test_ends_cleanly_with_a_subscription_open(users: Gateway) -> None:
    sql = "SELECT * FROM gw_users EMIT CHANGES"
    eventually(lambda: users.rows("SELECT * FROM gw_users") == [])
    with users.http.stream("GET", "/v1/subscribe", params={"sql": sql}) as response:
        events = iter(httpx2.EventSource(response))
        next(events)
        assert users.stop() == 0
    assert "Traceback" not in users.log()
    users.start()
    users.ready()


def test_waits_for_servers_that_are_away(servers: Stack, tmp_path: Path) -> None:
    (tmp_path / "mainstem.toml").write_text('name = "tests"\n')
    endpoints = servers.endpoints.model_copy(
        update={
            "bootstrap_servers": f"127.0.0.1:{free_port()}",
            "gateway_host": "127.0.0.1",
            "gateway_port": free_port(),
        }
    )
    made = Gateway(tmp_path, endpoints)
    made.start()
    try:
        eventually(lambda: made.status("/healthz") == 200)
        answer = made.http.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["checks"]["log"]["ok"] is False
        assert answer.json()["checks"]["postgres"]["ok"] is True
        assert made.sql("SELECT 1 FROM x")["title"] == "LOG_UNREACHABLE"
        eventually(lambda: "waiting for the log" in made.log())
    finally:
        assert made.stop() == 0
        made.http.close()
    assert "Traceback" not in made.log()


def test_quarantine_over_restarts(users: Gateway) -> None:
    """Records of a table that cannot become rows: listed, mended, discarded, and that stays so."""
    connection = Connection(users.endpoints.bootstrap_servers)
    producer = Producer(connection)
    trace = (("trace", b"\xff"),)
    bad = [Outgoing(b'{"id":%d}' % n, b"not json %d" % n, headers=trace) for n in (1, 2, 3)]
    producer.send("gw_users", bad)
    producer.close()

    def listed(**filters: Any) -> list[Any]:
        asked = {"stream": "gw_users", **filters}
        found = users.http.get("/v1/quarantine", params=asked).json()
        return list(found.get("records", ()))

    def held() -> int:
        objects = users.http.get("/v1/status").json()["quarantine"]["objects"]
        return int(objects.get("gw_users", 0))

    eventually(lambda: len(listed()) == 3 and held() == 3)
    by_value = {record["value"]: record["id"] for record in listed(stage="view")}
    first, second, third = (by_value[f"not json {id}"] for id in (1, 2, 3))
    assert [r["id"] for r in listed(limit=1)] == [max(by_value.values())]
    mended = {"ids": [first], "value": '{"id":1,"name":"mended"}', "force": True}
    answer = users.http.post("/v1/quarantine/replay", json=mended).json()
    assert (answer["replayed"], answer["refused"]) == (1, 0), answer
    eventually(lambda: users.rows("SELECT * FROM gw_users") == [[1, "mended"]])
    answer = users.http.post("/v1/quarantine/discard", json={"ids": [second]}).json()
    assert answer["discarded"] == 1
    assert [r["id"] for r in listed()] == [third] and held() == 1

    users.stop(signal.SIGKILL)
    users.start()
    users.ready()
    eventually(lambda: [r["id"] for r in listed()] == [third] and held() == 1)
    again = users.http.post("/v1/quarantine/replay", json=mended).json()
    assert (again["replayed"], again["skipped"]) == (0, 1)
    one = users.http.get(f"/v1/quarantine/{first}").json()
    assert one["state"] == "replayed" and one["settled"]["changed"] is True
    assert one["record"]["value"] == "not json 1"
    records = users.http.get("/v1/topics/gw_users/records").json()["records"]
    [copy] = [r for r in records if len(r["headers"]) > 1]
    assert copy["headers"] == [
        {"name": "trace", "value_base64": "/w=="},
        {"name": "mainstem-replay-of", "value": one["origin"]},
    ]
    users.http.post("/v1/quarantine/discard", json={"stream": "gw_users"})
    assert listed() == [] and len(listed(state="any")) == 3


def test_two_gateways_share_the_views_and_one_takes_over(users: Gateway) -> None:
    place = users.endpoints.model_copy(update={"gateway_port": free_port()})
    other = Gateway(users.folder, place)
    other.start()
    other.ready()

    query = "SELECT count(*), count(DISTINCT name), max(id) FROM gw_users"

    def seen(by: Gateway, receipt: str) -> Any:
        body = {"sql": query, "wait_for": receipt, "wait_seconds": 30}
        answer = by.http.post("/v1/sql", json=body).json()
        assert answer.get("kind") == "rows", answer
        return answer["rows"][0]

    def lag(by: Gateway) -> int | None:
        tables = by.http.post("/v1/sql", json={"sql": query}).json()["freshness"]["tables"]
        return tables["gw_users"]["lag_records"]

    try:
        for number in range(1, 11):
            wrote = (users, other)[number % 2].write(
                "gw_users", {"id": number, "name": f"n{number}"}
            )
            for gateway in (users, other):
                assert seen(gateway, wrote["receipt"]) == [number, number, number]
        for gateway in (users, other):  # each looks for itself, now and then
            eventually(lambda by=gateway: lag(by) == 0, what="the lag is known")
        names = [view["name"] for view in other.http.get("/v1/status").json()["views"]]
        assert "gw_users" in names
        users.stop(signal.SIGKILL)
        wrote = other.write("gw_users", {"id": 11, "name": "n11"})
        assert seen(other, wrote["receipt"]) == [11, 11, 11]
        assert other.sql("DROP TABLE gw_users")["kind"] == "message"
    finally:
        assert other.stop() == 0
        other.http.close()
