"""Members of consumer groups over HTTP: hand-over, commit, seek, and what is refused."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.system.gateway.processes import Gateway

from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.kafka


class Group:
    """A group over HTTP."""

    def __init__(self, gateway: Gateway, name: str) -> None:
        self.http = gateway.http
        self.path = f"/v1/groups/{name}"

    def join(self, **wanted: Any) -> str:
        made = self.http.post(f"{self.path}/members", json={"topics": ["gw_visits"], **wanted})
        assert made.status_code == 201, made.text
        return f"{self.path}/members/{made.json()['member']}"

    def take(self, member: str, count: int) -> list[int]:
        """The numbers in the next records, until there are so many."""
        found: list[int] = []

        def enough() -> bool:
            answer = self.http.get(f"{member}/records", params={"wait_seconds": 1}).json()
            found.extend(json.loads(r["value"])["n"] for r in answer["records"])
            return len(found) >= count

        eventually(enough, 60)
        return found


@pytest.fixture
def group(gateway: Gateway) -> Iterator[Group]:
    made = gateway.sql("CREATE STREAM gw_visits (n BIGINT) WITH (partitions = 4)")
    assert made["kind"] == "message", made
    gateway.write("gw_visits", *({"n": n} for n in range(200)))
    yield Group(gateway, f"g-{uuid.uuid4().hex[:8]}")
    gateway.sql("DROP STREAM gw_visits")


def test_partitions_go_to_others_when_a_member_is_gone(group: Group) -> None:
    first = group.join()
    assert sorted(group.take(first, 200)) == list(range(200))
    group.http.post(f"{first}/commit", json={}).raise_for_status()
    second = group.join(session_seconds=5)

    def partitions(member: str) -> int:
        group.http.get(f"{member}/records", params={"wait_seconds": 0.2})
        return len(group.http.get(member).json().get("partitions", ()))

    eventually(lambda: (partitions(first), partitions(second)) == (2, 2), 60)
    told = group.http.get(group.path).json()
    assert len(told["members"]) == 2 and told["lag"] <= 4 and told["state"] == "stable"
    # nobody hears of the second one any more
    eventually(lambda: partitions(first) == 4, 60)
    gone = group.http.get(f"{second}/records").json()
    assert gone["title"] == "MEMBER_UNKNOWN"
    assert group.http.delete(first).status_code == 204
    third = group.join()
    answer = group.http.get(f"{third}/records", params={"wait_seconds": 5}).json()
    assert answer["records"] == [], "all was committed"
    assert group.http.delete(third).status_code == 204
    assert group.http.delete(group.path).json() == {"deleted": group.path.split("/")[-1]}
    assert group.http.get(group.path).json()["title"] == "GROUP_UNKNOWN"


def test_what_was_not_committed_comes_again_and_a_lost_answer_too(group: Group) -> None:
    member = group.join()

    def some() -> Any:
        return group.http.get(f"{member}/records", params={"limit": 10, "wait_seconds": 1}).json()

    eventually(lambda: (answer := some())["records"] and answer, 60)
    one = some()
    again = group.http.get(f"{member}/records", params={"batch": one["batch"]}).json()
    assert again == one and len(one["records"]) <= 10
    far = group.http.get(f"{member}/records", params={"batch": one["batch"] + 2}).json()
    assert far["title"] == "GROUP_STATE"
    back = group.http.post(f"{member}/seek", json={"to": "beginning"}).json()
    assert [p["offset"] for p in back["positions"]] == [0, 0, 0, 0]
    assert sorted(group.take(member, 200)) == list(range(200))
    parts = group.http.get("/v1/topics/gw_visits").json()["by_partition"]
    full = max(parts, key=lambda part: part["end"])
    at = {"topic": "gw_visits", "partition": full["partition"], "offset": 3}
    done = group.http.post(f"{member}/commit", json={"offsets": [at]}).json()
    assert done == {"offsets": [at]}
    other = {"offsets": [{**at, "partition": 9}]}
    assert group.http.post(f"{member}/commit", json=other).json()["title"] == "GROUP_STATE"
    assert (
        group.http.post(f"{member}/seek", json={"positions": other["offsets"]}).json()["title"]
        == "GROUP_STATE"
    )
    [offset] = group.http.get(group.path).json()["offsets"]
    assert offset["committed"] == 3 and offset["lag"] == full["end"] - 3
    group.http.delete(member)


def test_what_is_refused(group: Group, gateway: Gateway) -> None:
    http = gateway.http
    for path, sent, code in (
        ("/v1/groups/mainstem.x/members", {}, "NAME_RESERVED"),
        (f"{group.path}/members", {"topics": ["nothing"]}, "UNKNOWN_TOPIC"),
        (f"{group.path}/members", {"name": "a/b"}, "BAD_REQUEST"),
        (f"{group.path}/members", {"session_seconds": 1}, "BAD_REQUEST"),
        (f"{group.path}/members/nobody/commit", {}, "MEMBER_UNKNOWN"),
    ):
        assert http.post(path, json=sent).json()["title"] == code
    member = group.join(topics=[], name="one")
    assert http.get(f"{member}/records").json()["title"] == "GROUP_STATE"
    twice = http.post(f"{group.path}/members", json={"name": "one"}).json()
    assert twice["title"] == "MEMBER_EXISTS"
    topics = http.get("/v1/topics", params={"limit": 1}).json()
    assert len(topics["topics"]) == 1
    one = http.get("/v1/topics/gw_visits").json()
    assert one["partitions"] == len(one["by_partition"]) == 4
    http.put(f"{member}/subscription", json={"topics": ["gw_visits"]}).raise_for_status()
    assert len(group.take(member, 200)) == 200
    http.delete(member)


def test_confluent_clients_find_their_paths(group: Group, gateway: Gateway) -> None:
    """The flows of REST Proxy's documentation, v3 and v2."""
    http, kafka = gateway.http, "/kafka"
    [cluster] = http.get(f"{kafka}/v3/clusters").json()["data"]
    base = f"{kafka}/v3/clusters/{cluster['cluster_id']}"
    one = {"key": {"type": "BINARY", "data": "aw=="}, "value": {"type": "JSON", "data": {"n": 1}}}
    written = http.post(f"{base}/topics/gw_visits/records", json={**one, "partition_id": 3}).json()
    assert (written["error_code"], written["partition_id"], written["key"]["size"]) == (200, 3, 1)
    two = http.post(f"{base}/topics/gw_visits/records", content=json.dumps(one) * 2).text
    assert [json.loads(line)["topic_name"] for line in two.splitlines()] == ["gw_visits"] * 2
    parts = http.get(f"{base}/topics/gw_visits/partitions").json()["data"]
    assert [part["partition_id"] for part in parts] == [0, 1, 2, 3]
    wrong = http.get(f"{base}/topics/nothing")
    assert (wrong.status_code, wrong.json()["error_code"]) == (404, 40401)
    own = http.post(f"{base}/topics/_mainstem.catalog/records", json=one)
    assert own.status_code == 403

    avro = {"Content-Type": "application/vnd.kafka.avro.v2+json"}
    schema = '{"type":"record","name":"Visit","fields":[{"name":"n","type":["null","long"]}]}'
    sent = {"value_schema": schema, "records": [{"value": {"n": {"long": 7}}}]}
    produced = http.post(f"{kafka}/topics/gw_visits", json=sent, headers=avro).json()
    assert produced["value_schema_id"] and produced["offsets"][0]["offset"] >= 0, produced
    name = group.path.split("/")[-1]
    wanted = {"name": "c1", "format": "avro", "auto.offset.reset": "earliest"}
    made = http.post(f"{kafka}/consumers/{name}", json=wanted).json()
    assert made["base_uri"].endswith(f"/kafka/consumers/{name}/instances/c1")
    instance = f"{kafka}/consumers/{name}/instances/c1"
    topics = {"topics": ["gw_visits"]}
    assert http.post(f"{instance}/subscription", json=topics).status_code == 204
    found: list[Any] = []

    def enough() -> bool:
        answer = http.get(f"{instance}/records", params={"timeout": 1000})
        assert answer.headers["content-type"] == "application/vnd.kafka.avro.v2+json"
        found.extend(answer.json())
        return len(found) >= 204

    eventually(enough, 60)
    [record] = [r for r in found if isinstance(r["value"], dict) and r["value"] == {"n": 7}]
    place = {"topic": "gw_visits", "partition": record["partition"]}
    done = {"offsets": [{**place, "offset": record["offset"]}]}
    assert http.post(f"{instance}/offsets", json=done).status_code == 200
    kept = http.request("GET", f"{instance}/offsets", json={"partitions": [place]}).json()
    assert kept["offsets"] == [{**place, "offset": record["offset"] + 1, "metadata": ""}]
    [lag] = http.get(f"{base}/consumer-groups/{name}/lags").json()["data"]
    assert lag["current_offset"] == record["offset"] + 1 and lag["consumer_id"]
    back = http.post(f"{instance}/positions/beginning", json={"partitions": [place]})
    assert back.status_code == 204
    assert http.delete(instance).status_code == 204
    gone = http.get(f"{instance}/records").json()
    assert gone["error_code"] == 40403
