"""Requests that nobody would send, for records, groups and aggregates: no 5xx, ever.

As for the registry: made from the API description, and answered as that says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from tests.unit.gateway.fake_log import (
    MemoryConsumer,
    MemoryGroups,
    MemoryLedger,
    MemoryLog,
    MemoryReader,
)
from tests.unit.gateway.world import Stub

from mainstem.gateway import aggregates, members
from mainstem.gateway.aggregates import Aggregates
from mainstem.gateway.app import create_app
from mainstem.gateway.members import Members
from mainstem.gateway.receipts import Once
from mainstem.schemas.codec import Codec
from mainstem.schemas.known import KnownSchemas
from mainstem.testing.registry import MemoryRegistry
from mainstem.vocabulary import SystemClock

EXAMPLES_OF = {"positive": 4, "negative": 2}
PARTS = ("/v1/streams/", "/v1/transactions", "/v1/topics", "/v1/groups", "/kafka/")
ELSEWHERE = ("/trial", "/v1/topics/{topic}/records")  # the engine's, and a reader's
KNOWN = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["clicks", "users", "home", None]),
        "topic": st.sampled_from(["clicks", "users", None]),
        "group": st.sampled_from(["billing", "new", "mainstem.home.1", None]),
        "member": st.sampled_from(["one", None]),
        "instance": st.sampled_from(["one", None]),
        "key": st.sampled_from(["ann", None]),
        "cluster_id": st.sampled_from(["one", "one", None]),
    }
)


class World(Stub):
    """What these routes use, over a log in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.log = MemoryLog("clicks", "users")
        clock, nothing = SystemClock(), cast(Any, None)
        self.admin = cast(Any, self.log)
        self.writer = cast(Any, self.log)
        self.groups = MemoryGroups(self.log)
        self.ledger = cast(Any, MemoryLedger(self.log))
        self.once = Once(self.writer, self.ledger, clock)
        self.schema_source = MemoryRegistry()
        self.codec = Codec(KnownSchemas(self.schema_source))
        self.aggregates = Aggregates(nothing, self.admin, self.ledger, self.codec, clock)
        self.aggregates._connection = self.connection
        self.members = Members(self.connection, self.admin, most=20)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(members, "GroupConsumer", MemoryConsumer)
        patch.setattr(members, "LONGEST_WAIT_SECONDS", 0.01)
        patch.setattr(aggregates, "Reader", MemoryReader)
        made = World()
        MemoryConsumer.log = MemoryReader.log = made.log
        yield made
        made.members.close()


@pytest.fixture(scope="module")
def api(world: World) -> Any:
    import schemathesis

    app = create_app(cast(Any, world), ["testserver", "localhost"])
    return schemathesis.openapi.from_asgi("/openapi.json", app)


def operations() -> list[tuple[str, str]]:
    from starlette.testclient import TestClient

    client = TestClient(create_app(cast(Any, Stub()), ["testserver"]))
    paths = client.get("/openapi.json").json()["paths"]
    return [
        (method, path)
        for path, methods in paths.items()
        if path.startswith(PARTS) and not path.endswith(ELSEWHERE)
        for method in methods
        if method != "get" or not path.startswith("/kafka/v3/")
    ]


@pytest.mark.parametrize(
    ("method", "path", "mode"),
    [
        (method, path, mode)
        for method, path in operations()
        for mode in EXAMPLES_OF
        if mode == "positive" or method in ("post", "put")  # what has no body is hardly ever wrong
    ],
)
def test_fuzz(world: World, api: Any, method: str, path: str, mode: str) -> None:
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error

    for group in ("new", "billing"):
        with suppress(Exception):
            world.members.create(group, "one", topics=["clicks"], form="json")
    cases = api[path][method].as_strategy(generation_mode=GenerationMode(mode))

    @seed(1)
    @settings(
        max_examples=EXAMPLES_OF[mode],
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, known=KNOWN)
    def ask(case: Any, known: dict[str, Any]) -> None:
        case.path_parameters = {
            name: value if known.get(name) is None else known[name]
            for name, value in (case.path_parameters or {}).items()
        }
        for name in ("wait_seconds", "timeout"):
            if isinstance(case.query, dict) and name in case.query:
                case.query[name] = 0
        case.call_and_validate(checks=[not_a_server_error])

    with suppress(Unsatisfiable):  # nothing about some operations can be wrong
        ask()


def test_what_the_examples_say(world: World, api: Any) -> None:
    """Each example of the description is a request that goes well."""
    from starlette.testclient import TestClient

    client = TestClient(create_app(cast(Any, world), ["testserver"]))
    paths = client.get("/openapi.json").json()["paths"]
    tried = 0
    for path in ("/v1/streams/{name}/records", "/v1/streams/{name}/events", "/v1/transactions"):
        for kind, content in paths[path]["post"]["requestBody"]["content"].items():
            if "example" not in content:
                continue
            sent = content["example"]
            body = sent if isinstance(sent, str) else json.dumps(sent)
            headers = {"content-type": kind}
            if kind == "application/json" and path.endswith("events"):
                attributes = ("specversion", "1.0"), ("id", "1"), ("source", "x"), ("type", "y")
                headers |= {f"ce-{name}": value for name, value in attributes}
            answer = client.post(path.format(name="clicks"), content=body, headers=headers)
            assert answer.status_code == 200, (path, kind, answer.text)
            tried += 1
    assert tried == 6


def test_consumers_of_rest_proxy(world: World) -> None:
    """The flow of its documentation, v2, and how errors look."""
    from starlette.testclient import TestClient

    client = TestClient(create_app(cast(Any, world), ["testserver"]))
    topic, place = "/kafka/topics/users", {"topic": "users", "partition": 1}
    form = {"content-type": "application/vnd.kafka.avro.v2+json"}
    schema = '{"type":"record","name":"User","fields":[{"name":"n","type":["null","long"]}]}'
    sent = {"value_schema": schema, "records": [{"value": {"n": {"long": 7}}, "partition": 1}]}
    written = client.post(topic, json=sent, headers=form).json()
    [at] = written["offsets"]
    made = client.post("/kafka/consumers/g", json={"format": "avro", "name": "c"}).json()
    assert made["base_uri"] == "http://testserver/kafka/consumers/g/instances/c"
    uri = made["base_uri"]
    assert client.post(f"{uri}/subscription", json={"topics": ["users"]}).status_code == 204
    assert client.get(f"{uri}/subscription").json() == {"topics": ["users"]}
    seek = {"offsets": [{**place, "offset": at["offset"]}]}
    assert client.post(f"{uri}/positions", json=seek).status_code == 204
    found = [r for r in client.get(f"{uri}/records?timeout=0").json() if r["partition"] == 1]
    assert found == [{**place, "key": None, "value": {"n": 7}, "offset": at["offset"]}]
    client.post(f"{uri}/offsets", json=seek).raise_for_status()
    kept = client.request("GET", f"{uri}/offsets", json={"partitions": [place]}).json()
    assert kept["offsets"] == [{**place, "offset": at["offset"] + 1, "metadata": ""}]
    assert client.delete(uri).status_code == 204
    assert client.get(f"{uri}/records").json()["error_code"] == 40403
