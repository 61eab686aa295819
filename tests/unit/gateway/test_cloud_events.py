"""CloudEvents in their three modes, and what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.unit.gateway.world import Stub, entry

from mainstem.errors import MainstemError
from mainstem.gateway.cloud_events import BATCH, STRUCTURED, as_record, read_events

PATH = "/v1/streams/clicks/events"
EVENT: dict[str, Any] = {
    "specversion": "1.0", "id": "1", "source": "/web", "type": "click", "subject": "home",
    "data": {"user": "ann"},
}  # fmt: skip
BINARY = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/web", "ce-type": "caf%C3%A9"}
WHOLE = entry("CREATE STREAM whole (ce_id STRING, ce_time TIMESTAMP, data STRING)").definition


def test_the_three_modes(client: TestClient, stub: Stub) -> None:
    structured = client.post(PATH, json=EVENT, headers={"content-type": STRUCTURED})
    batch = client.post(PATH, json=[EVENT, EVENT], headers={"content-type": BATCH})
    binary = client.post(PATH, json=EVENT["data"], headers=BINARY)
    assert [a.status_code for a in (structured, batch, binary)] == [200] * 3, binary.text
    assert stub.writer.written == [("clicks", b"ann", b'{"user":"ann"}')] * 4


def test_attributes_are_headers_and_columns() -> None:
    [event] = read_events(BINARY | {"content-type": "text/plain"}, b"hello")
    record = as_record(event, WHOLE)
    assert record["value"] == {"ce_id": "1", "ce_time": None, "data": "hello"}
    headers = {header["name"]: header["value"] for header in record["headers"]}
    assert headers["ce_type"] == "café" and headers["content-type"] == "text/plain"
    [event] = read_events({"content-type": STRUCTURED}, json.dumps(EVENT).encode())
    assert json.loads(as_record(event, WHOLE)["value"]["data"]) == {"user": "ann"}
    keyed = {**EVENT, "partitionkey": "k", "data_base64": "aGk=", "data": None}
    [event] = read_events({"content-type": STRUCTURED}, json.dumps(keyed).encode())
    assert as_record(event, WHOLE)["key"] == "k"
    assert as_record(event, WHOLE)["value"]["data"] == "hi"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (STRUCTURED, b"{"),
        (STRUCTURED, b"[]"),
        (STRUCTURED, json.dumps({**EVENT, "id": ""}).encode()),
        (STRUCTURED, json.dumps({**EVENT, "specversion": "0.3"}).encode()),
        (STRUCTURED, json.dumps({**EVENT, "Big": "x"}).encode()),
        (STRUCTURED, json.dumps({**EVENT, "extra": {}}).encode()),
        (STRUCTURED, json.dumps({**EVENT, "data_base64": 7}).encode()),
        (BATCH, b"[]"),
        (BATCH, b"{}"),
        ("application/json", b"{}"),
    ],
)
def test_what_is_no_event(kind: str, body: bytes) -> None:
    with pytest.raises(MainstemError) as refused:
        read_events({"content-type": kind}, body)
    assert refused.value.code == "BAD_REQUEST"


def test_data_that_does_not_fit(client: TestClient, stub: Stub) -> None:
    wrong = [EVENT, {**EVENT, "data": {"usr": "x"}}]
    answer = client.post(PATH, json=wrong, headers={"content-type": BATCH}).json()
    assert (answer["title"], answer["index"]) == ("INVALID_RECORD", 1)
    assert stub.writer.written == []
