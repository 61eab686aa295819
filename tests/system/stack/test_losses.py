"""Servers that die while everything runs: what still works meanwhile, and that all comes back."""

from __future__ import annotations

import signal
import threading

import httpx2
import pytest

from mainstem.testing.waiting import eventually


@pytest.fixture(scope="module")
def visits(shop):
    """A stream and a count of it with one record in."""
    shop.do(
        "CREATE STREAM visits (id BIGINT)",
        "CREATE TABLE visit_count AS SELECT count(*) AS n FROM visits",
    )
    shop.write("visits", {"id": 0})
    shop.wait_for_rows("SELECT * FROM visit_count", [[1]])
    yield shop
    shop.do("DROP STREAM visits CASCADE")


def test_a_broker_that_does_not_answer(visits):
    """It is dead, and who would start it again sleeps for as long as the test needs."""
    supervisor = visits.up.process
    supervisor.send_signal(signal.SIGSTOP)
    visits.up.server("broker").kill()
    answers: list[httpx2.Response] = []

    def write() -> None:
        body = {"records": [{"value": {"id": 1}}]}
        answers.append(visits.http.post("/v1/streams/visits/records", json=body))

    writer = threading.Thread(target=write)
    try:
        writer.start()
        # what is served needs no broker
        rows = visits.http.get("/v1/tables/visit_count/rows").json()["rows"]
        assert rows == [{"n": 1}]
        assert visits.rows("SELECT n FROM visit_count") == [[1]]
        eventually(lambda: visits.http.get("/readyz").status_code == 503)
        assert visits.http.get("/readyz").json()["checks"]["log"]["ok"] is False
        assert visits.http.get("/healthz").status_code == 200
        assert visits.cli("status").ok().out
        failed = visits.cli("doctor").failed("CHECK_FAILED", 4)
        assert "does not answer" in failed.out
        writer.join(120)
    finally:
        supervisor.send_signal(signal.SIGCONT)
    [refused] = answers
    assert refused.status_code == 503, refused.text
    assert refused.json()["title"] == "LOG_UNREACHABLE" and refused.json()["hint"]
    eventually(lambda: visits.http.get("/readyz").status_code == 200)
    visits.write("visits", {"id": 2})
    # the write that was given up may still have happened: the log says what counts
    query = "SELECT count(*) FROM visits"
    eventually(lambda: visits.http.post("/v1/sql", json={"sql": query}).status_code == 200)
    [[in_the_log]] = visits.rows(query)
    assert in_the_log in (2, 3)
    visits.wait_for_rows("SELECT * FROM visit_count", [[in_the_log]])


def test_broker_and_engine_are_killed_and_come_back(visits):
    [[before]] = visits.rows("SELECT n FROM visit_count")
    for part in ("broker", "engine"):
        visits.up.server(part).kill()
    assert visits.http.get("/v1/tables/visit_count/rows").json()["rows"] == [{"n": before}]
    visits.write("visits", *({"id": n} for n in range(10)))  # waits until the broker is back
    visits.wait_for_rows("SELECT * FROM visit_count", [[before + 10]])
    assert visits.rows("SELECT count(*) FROM visits") == [[before + 10]]
    assert visits.http.get("/readyz").status_code == 200
    # what was read before the crash is not lag
    for flow in ("visit_count", "sales_by_product", "big_orders"):
        eventually(lambda flow=flow: visits.flow(flow).get("lag_records") == 0, what=flow)


def test_postgres_is_killed_and_comes_back(visits):
    [[before]] = visits.rows("SELECT n FROM visit_count")
    visits.up.server("postgres").kill()
    visits.write("visits", {"id": 1})
    visits.wait_for_rows("SELECT * FROM visit_count", [[before + 1]])
    push = {"sql": "SELECT * FROM visit_count EMIT CHANGES", "limit": 1}
    for _ in range(8):  # each of the gateway's connections has to find out by itself
        eventually(lambda: visits.http.get("/v1/subscribe", params=push).status_code == 200)
