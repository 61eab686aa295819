"""The client of Kafka Connect: every answer is a value or an error of ours, without secrets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from tests.unit.connect.fake_connect import URL, FakeConnect, Made

from mainstem.connect.client import Complaint, ConnectClient, State
from mainstem.connect.trace import short_trace
from mainstem.errors import MainstemError

TRACE = """\
org.apache.kafka.connect.errors.ConnectException: An exception occurred in the producer.
\tat io.debezium.pipeline.ErrorHandler.setProducerThrowable(ErrorHandler.java:76)
Caused by: org.postgresql.util.PSQLException: FATAL: password authentication failed for hunter2
\tat org.postgresql.core.v3.ConnectionFactoryImpl.doAuthentication(ConnectionFactoryImpl.java:1)
\t... 5 more
"""


@pytest.fixture
def cluster() -> FakeConnect:
    return FakeConnect()


@pytest.fixture
def client(cluster: FakeConnect) -> ConnectClient:
    return ConnectClient(
        f"{URL}/", mask=lambda text: text.replace("hunter2", "***"), transport=cluster.transport
    )


def test_connectors_with_their_tasks(cluster: FakeConnect, client: ConnectClient) -> None:
    cluster.made["a/b"] = Made({"x": "1"}, task="FAILED", trace=TRACE)
    cluster.made["new"] = Made({}, state="DREAMING", task="")
    found = client.connectors()
    assert found["a/b"].config == {"x": "1"}
    [task] = found["a/b"].failed
    assert (task.id, task.state) == (0, State.FAILED)
    assert task.trace == (
        "An exception occurred in the producer: FATAL: password authentication failed for ***"
    )
    assert found["new"].own is not None and found["new"].own.state is State.UNKNOWN
    client.restart("a/b")
    assert cluster.changes == ["POST /connectors/a%2Fb/restart?includeTasks=true&onlyFailed=true"]


def test_a_connector_may_begin_stopped(cluster: FakeConnect, client: ConnectClient) -> None:
    client.create("one", {"x": "1"}, stopped=True)
    assert cluster.made["one"].state == "STOPPED"
    with pytest.raises(MainstemError) as raised:
        client.create("one", {})
    assert raised.value.code == "CONNECT_BUSY"


def test_complaints_come_once_and_masked(cluster: FakeConnect, client: ConnectClient) -> None:
    cluster.complaints = {"database.password": "hunter2 is wrong"}
    found = client.validate({"connector.class": "org.x.Y"})
    assert found == [Complaint("database.password", "*** is wrong")]


def test_offsets_are_reset_of_a_stopped_one_alone(
    cluster: FakeConnect, client: ConnectClient
) -> None:
    cluster.made["one"] = Made({}, offsets=[{"partition": {}, "offset": {"lsn": 1}}])
    with pytest.raises(MainstemError) as raised:
        client.reset_offsets("one")
    assert raised.value.code == "CONNECTOR_NOT_STOPPED"
    client.stop("one")
    client.reset_offsets("one")
    assert client.offsets("one") == []
    client.delete("one")
    client.delete("one")
    with pytest.raises(MainstemError) as raised:
        client.resume("one")
    assert raised.value.code == "CONNECTOR_UNKNOWN"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (httpx2.ConnectError("refused"), "CONNECT_UNREACHABLE"),
        (httpx2.ReadTimeout(""), "CONNECT_UNREACHABLE"),
        (httpx2.Response(503), "CONNECT_UNREACHABLE"),
        (httpx2.Response(500, json={"message": "Request timed out"}), "CONNECT_UNREACHABLE"),
        (httpx2.Response(401), "CONNECT_FAILED"),
        (httpx2.Response(409, json={"message": "rebalance"}), "CONNECT_BUSY"),
        (httpx2.Response(400, json={"message": "bad hunter2"}), "CONNECTOR_INVALID"),
        (httpx2.Response(500, text="<html>hunter2"), "CONNECT_FAILED"),
    ],
)
def test_refusals(
    cluster: FakeConnect, client: ConnectClient, answer: httpx2.Response, code: str
) -> None:
    cluster.answers = [answer]
    with pytest.raises(MainstemError) as raised:
        client.configure("one", {"password": "hunter2"})
    assert raised.value.code == code
    assert "hunter2" not in raised.value.render()


@pytest.mark.parametrize("ask", [ConnectClient.connectors, ConnectClient.plugins])
@pytest.mark.parametrize("said", ["<html>", "7"])
def test_another_server_is_seen(
    cluster: FakeConnect, client: ConnectClient, ask: Callable[[ConnectClient], Any], said: str
) -> None:
    cluster.answers = [httpx2.Response(200, text=said)]
    with pytest.raises(MainstemError) as raised:
        ask(client)
    assert raised.value.code == "CONNECT_FAILED"


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        ("", ""),
        ("java.lang.NullPointerException\n\tat a.b(C.java:1)", "NullPointerException"),
        ("a.b.CException: a.b.DException: said\n\tat x", "said"),
        ("a.b.CException: said twice\nCaused by: a.b.D: said twice", "said twice"),
        ("plain words.", "plain words"),
    ],
)
def test_short_traces(trace: str, said: str) -> None:
    assert short_trace(trace) == said


def test_long_traces_are_cut() -> None:
    assert len(short_trace("x" * 10_000)) == 400
