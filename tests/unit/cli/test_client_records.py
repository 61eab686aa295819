"""Records in and out: receipts, topics read to their end, members of groups that come back."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import mainstem
from mainstem.client import Client, calling
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Gateway, Request

MEMBERS = "/v1/groups/billing/members"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "FIRST_PAUSE", 0.01)


def record(offset: int, partition: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "topic": "orders", "partition": partition, "offset": offset, "timestamp": 1_500,
        "key": None, "value": f'{{"n": {offset}}}', "headers": [], **more,
    }  # fmt: skip


class Topic:
    """Two partitions: offsets 0 to 2 and 5 to 6; more come while they are read."""

    LOG = ((0, 1, 2, 3), (5, 6, 7))
    PARTS = ({"partition": 0, "begin": 0, "end": 3}, {"partition": 1, "begin": 5, "end": 7})

    def __init__(self, gateway: Gateway, answer: Any) -> None:
        self._answer = answer
        gateway.answer("GET", "/v1/topics/orders", {"by_partition": self.PARTS})
        gateway.on("GET", "/v1/topics/orders/records", self.records)

    def records(self, request: Request) -> Any:
        partition = int(request.query["partition"])
        first = int(request.query.get("offset", 1))  # a time is that of offset 1
        found = [o for o in self.LOG[partition] if o >= first][:2]
        following = found[-1] + 1 if found else first
        document = {
            "records": [record(offset, partition) for offset in found],
            "next": {str(partition): following},
        }
        return self._answer(document)


def offsets(records: Any) -> list[tuple[int, int]]:
    return [(r.partition, r.offset) for r in records]


def test_a_topic_is_read_up_to_where_it_ended(gateway: Gateway, answer: Any) -> None:
    Topic(gateway, answer)
    client = Client(gateway.url)
    found = list(client.consume("orders"))
    assert sorted(offsets(found)) == [(0, 0), (0, 1), (0, 2), (1, 5), (1, 6)]
    assert (found[0].json(), found[0].time) == (
        {"n": 0},
        datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC),
    )
    assert len(list(client.consume("orders", limit=3))) == 3
    assert list(client.consume("orders", limit=0)) == []


def test_a_topic_is_read_from_a_time_and_followed(gateway: Gateway, answer: Any) -> None:
    Topic(gateway, answer)
    client = Client(gateway.url)
    when = datetime(2026, 1, 1, tzinfo=UTC)
    followed = client.consume("orders", start=when, follow=True, limit=6)
    assert sorted(offsets(followed)) == [(0, 1), (0, 2), (0, 3), (1, 5), (1, 6), (1, 7)]
    first = gateway.sent("GET", "/v1/topics/orders/records")[0]
    assert first.query["time"] == "2026-01-01T00:00:00+00:00"


def test_bytes_and_decoded_values(gateway: Gateway) -> None:
    shown = record(0, key="k", headers=[{"name": "h", "value_base64": "/w=="}])
    del shown["value"]
    shown |= {"value_base64": "AP8="}
    decoded = record(1, value={"id": 7}, schema_id=3)
    gateway.answer("GET", "/v1/topics/t", {"by_partition": [Topic.PARTS[0]]})
    gateway.answer("GET", "/v1/topics/t/records", {"records": [shown, decoded], "next": {"0": 3}})
    first, second = Client(gateway.url).consume("t")
    assert (first.key, first.value, first.headers) == ("k", b"\0\xff", (("h", b"\xff"),))
    assert second.json() == {"id": 7}


class Group:
    """Members of a group; what was committed by each of them."""

    def __init__(self, gateway: Gateway, answer: Any, batches: dict[str, list[Any]]) -> None:
        self.gateway, self.answer, self.batches = gateway, answer, batches
        self.committed: list[tuple[str, int]] = []
        self.left: list[str] = []
        names = iter(batches)
        gateway.on("POST", MEMBERS, lambda _: self.joined(next(names)))

    def joined(self, name: str) -> Any:
        where = f"{MEMBERS}/{name}"
        self.gateway.on("GET", f"{where}/records", lambda _: self.batch(name))
        self.gateway.on("POST", f"{where}/commit", lambda r: self.commit(name, r))
        self.gateway.on("DELETE", where, lambda _: self.leave(name))
        return self.answer({"member": name}, 201)

    def batch(self, name: str) -> Any:
        found = self.batches[name].pop(0)
        return found if isinstance(found, self.answer) else self.answer({"records": found})

    def commit(self, name: str, request: Request) -> Any:
        self.committed += [(name, place["offset"]) for place in request.json()["offsets"]]
        return self.answer({})

    def leave(self, name: str) -> Any:
        self.left.append(name)
        return self.answer("", 204)


def test_a_member_commits_what_is_done_and_leaves(gateway: Gateway, answer: Any) -> None:
    group = Group(gateway, answer, {"a": [[record(0), record(1)], [record(2)], []]})
    found = Client(gateway.url).consume("orders", group="billing")
    assert [r.offset for r in found] == [0, 1, 2]
    assert group.committed == [("a", 2), ("a", 3)]
    assert group.left == ["a"]
    assert gateway.sent("POST", MEMBERS)[0].json() == {"topics": ["orders"], "start": "earliest"}
    asked = gateway.sent("GET", f"{MEMBERS}/a/records")
    assert [request.query["batch"] for request in asked] == ["1", "2", "3"]


def test_a_member_without_partitions_is_not_at_the_end(gateway: Gateway, answer: Any) -> None:
    Group(gateway, answer, {"a": [[], [], [], [record(0)], []]})
    joined = [{"topic": "orders", "partition": 0}]
    gateway.answer(
        "GET", f"{MEMBERS}/a", {"partitions": []}, {"partitions": []}, {"partitions": joined}
    )
    found = Client(gateway.url).consume("orders", group="billing")
    assert [r.offset for r in found] == [0]


def test_a_record_is_done_when_the_next_is_asked_for(gateway: Gateway, answer: Any) -> None:
    group = Group(gateway, answer, {"a": [[record(0), record(1), record(2)]]})
    found = Client(gateway.url).consume("orders", group="billing", follow=True)
    assert [next(found).offset, next(found).offset] == [0, 1]
    found.close()  # in the middle of offset 1
    assert (group.committed, group.left) == ([("a", 1)], ["a"])


def test_a_limit_commits_all_that_it_gave(gateway: Gateway, answer: Any) -> None:
    group = Group(gateway, answer, {"a": [[record(0), record(1), record(2)]]})
    assert len(list(Client(gateway.url).consume("orders", group="billing", limit=2))) == 2
    assert group.committed == [("a", 2)]


def test_a_lost_answer_is_asked_for_again_and_a_lost_member_replaced(
    gateway: Gateway, answer: Any
) -> None:
    def problem(code: str, status: int) -> Any:
        document = {"title": code, "status": status, "detail": "d", "hint": ""}
        return answer(document, status, "application/problem+json")

    batches = {
        "a": [problem("LOG_UNREACHABLE", 503), [record(0)], problem("MEMBER_UNKNOWN", 404)],
        "b": [[record(1)], []],
    }
    group = Group(gateway, answer, batches)

    async def read() -> list[int]:
        async with mainstem.connect_async(gateway.url) as client:
            return [r.offset async for r in client.consume("orders", group="billing")]

    assert asyncio.run(read()) == [0, 1]
    assert group.committed == [("a", 1), ("b", 2)]
    asked = gateway.sent("GET", f"{MEMBERS}/a/records")
    assert [request.query["batch"] for request in asked] == ["1", "1", "2"]


def test_what_is_wrong_with_a_group_is_said(gateway: Gateway) -> None:
    gateway.refuse("POST", MEMBERS, "UNKNOWN_TOPIC", 404)
    client = Client(gateway.url)
    for start, code in (("beginning", "UNKNOWN_TOPIC"), ("2026-01-01", "BAD_REQUEST")):
        with pytest.raises(MainstemError) as caught:
            next(client.consume("orders", group="billing", start=start))
        assert caught.value.code == code


def test_produce_with_a_key_and_wait_for_its_receipt(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainstem.client.records.BATCH_ROWS", 1)
    gateway.answer(
        "POST",
        "/v1/streams/orders/records",
        {"written": 1, "receipt": "orders:0=4"},
        {"written": 1, "receipt": "orders:0=5,1=1"},
    )

    async def write() -> Any:
        async with mainstem.connect_async(gateway.url) as client:
            return await client.produce("orders", [{"id": 1}, {"id": 2}], idempotency_key="k")

    written = asyncio.run(write())
    assert (written, written.receipt) == (2, "orders:0=5,1=1")
    assert [r.headers["idempotency-key"] for r in gateway.requests] == ["k-0", "k-1"]


def test_groups_and_topics(gateway: Gateway) -> None:
    gateway.answer(
        "GET", "/v1/groups", {"groups": ["a"], "next": "a"}, {"groups": ["b"], "next": None}
    )
    gateway.answer("GET", "/v1/groups/a", {"group": "a", "lag": 3})
    client = Client(gateway.url)
    assert client.all_groups() == ["a", "b"]
    assert client.group("a")["lag"] == 3
