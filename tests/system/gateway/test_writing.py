"""Records over HTTP: receipts, keys of requests, appends; and two gateways, one of which dies."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from tests.system.gateway.processes import Gateway
from tests.system.gateway.two_gateways import TwoGateways

from mainstem.aggregates import Aggregates
from mainstem.client import Client
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.vocabulary import Record

pytestmark = pytest.mark.kafka
RECORDS = "/v1/streams/gw_quotes/records"


@pytest.fixture
def quotes(gateway: Gateway) -> Iterator[Gateway]:
    """A stream of events of quotes."""
    made = gateway.sql(
        "CREATE STREAM gw_quotes (id STRING, kind STRING, amount DECIMAL(20,2)) WITH (key = 'id')"
    )
    assert made["kind"] == "message", made
    gateway.sql("CREATE STREAM gw_notes (text STRING)")
    yield gateway
    for name in ("gw_quotes", "gw_notes"):
        assert gateway.sql(f"DROP STREAM {name}")["kind"] == "message"


def records(gateway: Gateway, topic: str) -> list[Record]:
    """All that readers of committed records find."""
    connection = Connection(gateway.endpoints.bootstrap_servers)
    admin = Admin(connection)
    try:
        begin, end = admin.begin_offsets(topic), admin.end_offsets(topic)
    finally:
        admin.close()
    return [r for batch in read_range(connection, topic, begin, end) for r in batch]


def body(*ids: str) -> dict[str, Any]:
    return {"records": [{"value": {"id": id, "kind": "asked"}} for id in ids]}


def test_a_receipt_names_the_place_of_each_record(quotes: Gateway) -> None:
    sent = body(*(f"q{n}" for n in range(50)))
    sent["records"][7]["headers"] = [{"name": "trace", "value": "7"}]
    receipt = quotes.http.post(RECORDS, json=sent).json()
    found = {(r.partition, r.offset): r for r in records(quotes, "gw_quotes")}
    assert receipt["written"] == len(found) == 50 and receipt["topic"] == "gw_quotes"
    for number, place in enumerate(receipt["records"]):
        record = found[place["partition"], place["offset"]]
        assert record.key == b"q%d" % number
        assert receipt["offsets"][str(record.partition)] >= record.offset
        assert record.headers == ((("trace", b"7"),) if number == 7 else ())


def test_several_streams_or_none(quotes: Gateway) -> None:
    note = {"value": {"text": "hello"}}
    whole = {"streams": {"gw_quotes": body("q1", "q2")["records"], "gw_notes": [note]}}
    done = quotes.http.post("/v1/transactions", json=whole).json()
    assert done["written"] == 3, done
    assert done["streams"]["gw_notes"]["written"] == 1
    assert len(records(quotes, "gw_quotes")) == 2 and len(records(quotes, "gw_notes")) == 1
    large = {"value": {"text": "x" * 1_500_000}}
    for wrong, code in (({"value": {"txet": 1}}, "INVALID_RECORD"), (large, "RECORD_TOO_LARGE")):
        bad = {"streams": {"gw_quotes": body("q3")["records"], "gw_notes": [wrong]}}
        assert quotes.http.post("/v1/transactions", json=bad).json()["title"] == code
    assert len(records(quotes, "gw_quotes")) == 2 and len(records(quotes, "gw_notes")) == 1


def test_lines_without_an_end_are_written_part_by_part_and_once(quotes: Gateway) -> None:
    lines = [json.dumps({"value": {"id": f"q{n}"}}) for n in range(2_500)]
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": "lines"}

    def send(some: list[str]) -> list[dict[str, Any]]:
        chunks = (
            "\n".join(some[at : at + 100]).encode() + b"\n" for at in range(0, len(some), 100)
        )
        answer = quotes.http.post(RECORDS, content=chunks, headers=headers)
        return [json.loads(line) for line in answer.text.splitlines()]

    *_, broken = send([*lines[:1_500], "{"])
    assert broken["error"]["title"] == "BAD_REQUEST" and broken["written"] == 1_000
    *_, last = send(lines)  # the same from the beginning, and mended
    assert last["done"] and last["written"] == 2_500 and last["repeated"] == 1_000
    *_, last = send(lines)
    assert last["repeated"] == 2_500
    assert sorted(r.key or b"" for r in records(quotes, "gw_quotes")) == sorted(
        b"q%d" % n for n in range(2_500)
    )
    first = quotes.http.post(RECORDS, content=b"{\n", headers={**headers, "Idempotency-Key": "x"})
    assert first.status_code == 400


def test_the_same_key_with_another_body_is_refused(quotes: Gateway) -> None:
    key = {"Idempotency-Key": "one"}
    first = quotes.http.post(RECORDS, json=body("q1"), headers=key).json()
    again = quotes.http.post(RECORDS, json=body("q1"), headers=key).json()
    assert again == {**first, "repeated": True}
    other = quotes.http.post(RECORDS, json=body("q2"), headers=key)
    assert (other.status_code, other.json()["title"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    empty = quotes.http.post(RECORDS, json=body("q2"), headers={"Idempotency-Key": ""})
    assert empty.status_code == 400


def test_two_gateways_one_of_which_dies(quotes: Gateway, other: Gateway) -> None:
    """Requests are written once, and of appends upon the same version one goes through."""
    two = TwoGateways(quotes, other)
    two.run(requests=40, workers=3, events=4, kills=1)
    written = Counter(r.key for r in records(quotes, "gw_quotes"))
    two.check(written, quotes.http.get("/v1/streams/gw_quotes/aggregates/q").json())


def test_an_aggregate_is_loaded_from_its_snapshot_on(quotes: Gateway) -> None:
    append, path = "/v1/streams/gw_quotes/append", "/v1/streams/gw_quotes/aggregates/a"
    events = [{"kind": f"k{n}", "amount": 12.30} for n in range(3)]
    for number in range(70):  # more than a page of places
        quotes.http.post(RECORDS, json=body("a"))  # no event of the aggregate
        done = quotes.http.post(append, json={"key": "a", "events": events}).json()
        assert done["version"] == 3 * (number + 1), done
    loaded = quotes.http.get(path).json()
    assert [e["version"] for e in loaded["events"]] == list(range(1, 211))
    assert loaded["events"][4]["value"] == {"id": "a", "kind": "k1", "amount": 12.3}
    kept = {"version": 200, "state": {"total": 1}}
    assert quotes.http.put(f"{path}/snapshot", json=kept).json() == {"version": 200}
    older = quotes.http.put(f"{path}/snapshot", json={"version": 5, "state": 1}).json()
    assert older == {"version": 200}
    loaded = quotes.http.get(path).json()
    assert loaded["snapshot"] == kept and len(loaded["events"]) == 10
    some = quotes.http.get(path, params={"since_version": 100, "limit": 7}).json()
    assert [e["version"] for e in some["events"]] == list(range(101, 108)) and some["next"] == 107
    for sent, code in (
        ({"key": "a", "expected_version": 1, "events": events}, "VERSION_CONFLICT"),
        ({"key": None, "events": events}, "BAD_REQUEST"),
        ({"key": "a", "events": [{"id": "b"}]}, "BAD_REQUEST"),
        ({"key": "a", "events": [{"knid": "b"}]}, "INVALID_RECORD"),
    ):
        assert quotes.http.post(append, json=sent).json()["title"] == code
    nobody = quotes.http.get("/v1/streams/gw_quotes/aggregates/b").json()
    assert nobody["title"] == "AGGREGATE_UNKNOWN"
    ahead = quotes.http.put(f"{path}/snapshot", json={"version": 900, "state": 1}).json()
    assert (ahead["title"], ahead["actual_version"]) == ("VERSION_CONFLICT", 210)


def test_aggregates_in_python(quotes: Gateway) -> None:
    def fold(total: Decimal, event: dict[str, Any]) -> Decimal:
        return total + event["amount"]

    with Client(quotes.endpoints.gateway_url) as client:
        paid = Aggregates(client, "gw_quotes", fold, lambda: Decimal(0), snapshot_every=10)
        for number in range(25):
            loaded = paid.load("a")
            assert (loaded.version, loaded.state) == (number, Decimal("0.10") * number)
            assert paid.append(loaded, [{"amount": Decimal("0.10")}]) == number + 1
        assert client.aggregate("gw_quotes", "a")["snapshot"]["version"] == 20
        with pytest.raises(MainstemError) as refused:
            paid.append(loaded, [{"amount": 1}])
        assert refused.value.code == "VERSION_CONFLICT"
        assert paid.execute("a", lambda total: [{"amount": total}]) == 26
        assert paid.load("a").state == 5
        anew = Aggregates(client, "gw_quotes", lambda n, _: n + 1, lambda: 0, fold_version=2)
        assert anew.load("a").state == 26  # it does not take the other one's snapshot
