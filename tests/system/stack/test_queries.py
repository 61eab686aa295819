"""One event on its three ways out: pull, push and history; and a push that loses its server."""

from __future__ import annotations

import asyncio
import json

import httpx2
import pytest

import mainstem
from mainstem.log.producer import Outgoing
from mainstem.testing.waiting import eventually


@pytest.fixture(scope="module")
def trips(shop):
    """A stream, a filter on it and a count of it."""
    shop.do(
        "CREATE STREAM trips (id BIGINT, city STRING, fare DOUBLE) WITH (key = 'id')",
        "CREATE STREAM long_trips AS SELECT id, city FROM trips WHERE fare > 10",
        "CREATE TABLE trips_by_city AS SELECT city, count(*) AS n, sum(fare) AS fares"
        " FROM trips GROUP BY city",
    )
    yield shop
    shop.do("DROP STREAM trips CASCADE")


def trip(number: int, city: str = "Bern", fare: float = 20.0) -> dict[str, object]:
    return {"id": number, "city": city, "fare": fare}


def test_insert_pull_push_and_history_tell_the_same(trips):
    trips.sql("INSERT INTO trips VALUES (1, 'Bern', 7.5), (2, 'Basel', 12), (3, 'Bern', 30)").ok()
    trips.wait_for_rows("SELECT * FROM trips_by_city", [["Bern", 2, 37.5], ["Basel", 1, 12.0]])
    pulled = trips.sql("SELECT n FROM trips_by_city WHERE city = 'Bern'", "-o", "csv").ok()
    assert pulled.out == "n\n2\n"
    looked_up = trips.http.get("/v1/tables/trips_by_city/rows", params={"city": "Basel"}).json()
    assert looked_up["rows"] == [{"city": "Basel", "n": 1, "fares": 12.0}]

    def lag() -> int:
        answer = trips.http.get("/v1/tables/trips_by_city/rows", params={"city": "Basel"}).json()
        return answer["freshness"]["tables"]["trips_by_city"]["lag_records"]

    eventually(lambda: lag() == 0)
    query = "SELECT city, n FROM trips_by_city EMIT CHANGES"
    pushed = trips.sql(query, "--limit", 2, "-o", "jsonl").ok().jsonl
    assert sorted((r["city"], r["n"]) for r in pushed) == [("Basel", 1), ("Bern", 2)]
    query = "SELECT city, count(*), sum(fare) FROM trips GROUP BY city"
    assert sorted(trips.rows(query)) == [["Basel", 1, 12.0], ["Bern", 2, 37.5]]
    eventually(lambda: sorted(v["id"] for v in trips.values("long_trips")) == [2, 3])


def test_a_table_as_it_was_and_the_events_behind_a_row(trips):
    answer = trips.http.post("/v1/sql", json={"sql": "SELECT * FROM trips_by_city"}).json()
    offsets = json.dumps(answer["freshness"]["tables"]["trips_by_city"]["offsets"])
    trips.sql("INSERT INTO trips VALUES (4, 'Basel', 1), (5, 'Bern', 2.5)").ok()
    now = [["Bern", 3, 40.0], ["Basel", 2, 13.0]]
    trips.wait_for_rows("SELECT * FROM trips_by_city", now)
    past = trips.rows(f"SELECT * FROM trips_by_city AS OF OFFSETS '{offsets}'")
    assert sorted(past) == sorted(answer["rows"])
    told = trips.sql("EXPLAIN ROW trips_by_city WHERE city = 'Basel'", "-o", "json").ok().json
    assert told["exact"]
    assert [event["payload"]["id"] for event in told["tree"]["inputs"]] == [2, 4]
    shown = trips.sql("EXPLAIN ROW trips_by_city WHERE city = 'Basel'").ok().out
    assert shown.count("trips (stream)") == 2
    refused = trips.sql("EXPLAIN ROW trips WHERE id = 1")
    assert "WRONG_KIND" in refused.err


def test_parameters_are_values_not_text(trips):
    answer = trips.http.post(
        "/v1/sql",
        json={"sql": "SELECT n FROM trips_by_city WHERE city = ?", "parameters": ["x' OR '1'='1"]},
    )
    assert answer.json()["rows"] == []


def test_a_program_writes_asks_and_reads_as_a_member(trips):
    with mainstem.connect(trips.url) as client:
        written = client.produce("trips", [trip(900, "Chur's"), trip(901, "Chur's", 2.5)])
        query = "SELECT * FROM trips_by_city WHERE city = ?"
        answer = client.query(query, ["Chur's"], wait_for=written.receipt, wait_seconds=60)
        assert answer.rows == [("Chur's", 2, 22.5)]
        assert answer.arrow().schema.names == ["city", "n", "fares"]
        row = answer.dicts()[0]
        view = client.view("trips_by_city")
        assert (view.get("Chur's"), view.get_many(["none", "Chur's"])) == (row, [None, row])
        there = sorted(record.json()["id"] for record in client.consume("trips"))
        assert there[-2:] == [900, 901]
        member = client.consume("trips", group="program", follow=True, limit=len(there))
        assert sorted(record.json()["id"] for record in member) == there
        client.produce("trips", [trip(902, "Chur's")])

    async def others() -> list[object]:
        async with mainstem.connect_async(trips.url) as client:
            records = client.consume("trips", group="program", follow=True, limit=1)
            found = [record.json()["id"] async for record in records]
            events = client.subscribe("SELECT * FROM trips_by_city EMIT CHANGES", limit=1)
            return found + [event.kind async for event in events if event.row]

    assert asyncio.run(others()) == [902, "upsert"]


def test_a_query_sees_what_was_written_before(trips):
    """Through a flow, and through a table flow behind it: each answer is asked for once."""
    trips.do("CREATE TABLE big_cities AS SELECT city, n FROM trips_by_city WHERE n > 0")
    try:
        for number in range(3):
            rows = [{"value": trip(900 + number, "Chur")}, {"value": trip(950 + number, "Sion")}]
            wrote = trips.http.post("/v1/streams/trips/records", json={"records": rows}).json()
            waiting = {"wait_for": wrote["receipt"], "wait_seconds": 25}
            for table in ("trips_by_city", "big_cities"):
                query = f"SELECT city, n FROM {table} WHERE city IN (:a, :b) ORDER BY city"
                body = {"sql": query, "parameters": {"a": "Chur", "b": "Sion"}, **waiting}
                answer = trips.http.post("/v1/sql", json=body).json()
                assert answer.get("rows") == [["Chur", number + 1], ["Sion", number + 1]], answer
        found = trips.http.get(
            "/v1/tables/big_cities/rows?city=Chur", headers={"Mainstem-Wait-For": wrote["receipt"]}
        )
        assert found.json()["rows"] == [{"city": "Chur", "n": 3}]
        shown = trips.cli(
            "sql", "-e", "SELECT n FROM big_cities WHERE city = ?", "--param", "1=Sion",
            "--wait-for", wrote["receipt"], "-o", "csv",
        )  # fmt: skip
        assert shown.ok().out == "n\n3\n"
    finally:
        trips.do("DROP TABLE big_cities")


def test_an_index_is_made_beside_and_leaves_the_flow_alone(trips):
    started = trips.flow("trips_by_city").get("started_at")
    trips.do("CREATE INDEX by_n ON trips_by_city (n)")
    eventually(lambda: ["by_n", "trips_by_city", "n", "ready"] in trips.rows("SHOW INDEXES"))
    assert "index by_n (n)" in trips.do("DESCRIBE trips_by_city")["note"]
    assert trips.flow("trips_by_city").get("started_at") == started
    trips.refused(
        "DUPLICATE_NAME", "POST", "/v1/sql", json={"sql": "CREATE INDEX by_n ON trips_by_city (n)"}
    )
    plan = trips.do("EXPLAIN SELECT * FROM trips_by_city WHERE n = 3")["detail"]["plan"]
    assert "trips_by_city" in plan
    trips.do("DROP INDEX by_n")
    assert trips.rows("SHOW INDEXES") == []


def test_a_long_answer_comes_in_lines(trips):
    lines = trips.cli("sql", "--stream", "-o", "jsonl", "-e", "SELECT city FROM trips_by_city")
    assert {"city": "Bern"} in lines.ok().jsonl


def test_a_push_query_survives_its_gateway(trips):
    """Nothing is missed or repeated: by the command line, and by Last-Event-ID over REST."""
    query = "SELECT id FROM long_trips EMIT CHANGES"
    events = {"sql": query, "snapshot": "false"}
    before, after = list(range(100, 120)), list(range(200, 220))
    arguments = ("sql", "-e", query, "--no-snapshot", "--limit", 40, "-o", "jsonl")
    with trips.running(*arguments) as push:
        with trips.http.stream("GET", "/v1/subscribe", params=events) as stream:
            trips.wait_for_subscriptions(2)
            trips.write("trips", *(trip(n) for n in before))
            first, token = take(stream, 20)
        shown = [json.loads(push.stdout.readline())["id"] for _ in range(20)]
        assert sorted(shown) == sorted(first) == before
        trips.up.server("gateway").kill()
        trips.produce(
            "trips", *(Outgoing(str(n).encode(), json.dumps(trip(n)).encode()) for n in after)
        )
        rest, words = push.communicate(timeout=180)
    assert push.returncode == 0, words
    eventually(lambda: is_ready(trips))
    with trips.http.stream(
        "GET", "/v1/subscribe", params=events, headers={"Last-Event-ID": token}
    ) as stream:
        second, _ = take(stream, 20)
    assert sorted(second) == after
    assert sorted(json.loads(line)["id"] for line in rest.splitlines()) == after
    assert "trying again" in words
    assert "gateway: restarting" in trips.up.text


def take(stream: httpx2.Response, count: int) -> tuple[list[int], str]:
    """The ids of so many rows, and the token of the last one."""
    assert stream.status_code == 200
    found, token = [], ""
    for event in httpx2.EventSource(stream):
        if event.event == "append":
            found.append(json.loads(event.data)["row"]["id"])
            token = event.id
        if len(found) == count:
            break
    return found, token


def is_ready(shop) -> bool:
    try:
        return shop.http.get("/readyz").status_code == 200
    except httpx2.TransportError:
        return False


def test_a_push_query_is_no_pull_query(trips):
    query = "SELECT * FROM long_trips EMIT CHANGES"
    problem = trips.refused("BAD_REQUEST", "POST", "/v1/sql", json={"sql": query})
    assert "/v1/subscribe" in problem["detail"] + problem["hint"]
    trips.refused("BAD_REQUEST", "GET", "/v1/subscribe", params={"sql": "SELECT * FROM long_trips"})
    trips.refused(
        "RESUME_TOKEN_INVALID",
        "GET",
        "/v1/subscribe",
        params={"sql": query},
        headers={"Last-Event-ID": "nonsense"},
    )
