"""The registry's API over a registry in memory: paths, status codes, numbers, content types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from mainstem.config import SchemasSettings, Settings
from mainstem.errors import MainstemError
from mainstem.gateway.app import create_app
from mainstem.gateway.metrics import Metrics
from mainstem.gateway.registry_answers import REGISTRY_JSON
from mainstem.schemas.registry import Registry
from mainstem.schemas.topic_records import compact
from mainstem.testing.schemas_topic import MemoryTopic

INT, LONG = '"int"', '"long"'


class Stub:
    """What the registry's routes use of the services."""

    def __init__(self, registry: Registry | None) -> None:
        self.registry = registry
        elsewhere = SchemasSettings(registry="https://schemas.example")
        self.settings = Settings(name="shop", schemas=elsewhere)
        self.metrics = Metrics(dict, list)

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass


class Client:
    """Asks below /registry; `ok` and `no` look at the answer."""

    def __init__(self, http: TestClient) -> None:
        self.http = http

    def ok(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        answer = self.http.request(method, f"/registry{path}", json=body, params=params)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == REGISTRY_JSON
        return answer.json()

    def no(self, number: int, method: str, path: str, body: Any = None, **params: Any) -> str:
        answer = self.http.request(method, f"/registry{path}", json=body, params=params)
        assert answer.json()["error_code"] == number, answer.text
        assert answer.status_code == int(str(number)[:3])
        assert answer.headers["content-type"] == REGISTRY_JSON
        return str(answer.json()["message"])

    def register(self, subject: str, schema: str, **members: Any) -> int:
        path = f"/subjects/{quote(subject, safe='')}/versions"
        return int(self.ok("POST", path, {"schema": schema, **members})["id"])


def served(registry: Registry | None) -> Iterator[Client]:
    app = create_app(cast(Any, Stub(registry)))
    with TestClient(app, base_url="http://127.0.0.1:1", raise_server_exceptions=False) as http:
        yield Client(http)


@pytest.fixture
def topic() -> MemoryTopic:
    return MemoryTopic()


@pytest.fixture
def client(topic: MemoryTopic) -> Iterator[Client]:
    yield from served(topic.registry())


def test_registering(client: Client) -> None:
    assert client.register("a", INT) == 1
    assert client.register("a", INT) == 1
    assert client.ok("GET", "/subjects") == ["a"]
    assert client.ok("GET", "/subjects/a/versions") == [1]
    whole = {"subject": "a", "version": 1, "id": 1, "schema": INT}
    assert client.ok("GET", "/subjects/a/versions/1") == whole
    assert client.ok("GET", "/subjects/a/versions/latest") == whole
    assert client.ok("GET", "/subjects/a/versions/-1") == whole
    assert client.ok("POST", "/subjects/a", {"schema": ' "int" '}) == whole
    assert client.ok("GET", "/schemas/ids/1") == {"schema": INT}
    assert client.ok("GET", "/schemas/ids/1", fetchMaxId=True) == {"schema": INT, "maxId": 1}
    assert client.ok("GET", "/schemas/ids/1/subjects") == ["a"]
    assert client.ok("GET", "/schemas/ids/1/versions") == [{"subject": "a", "version": 1}]
    assert client.ok("GET", "/schemas/ids/1/schema") == "int"
    assert client.ok("GET", "/subjects/a/versions/1/schema") == "int"
    assert client.ok("GET", "/schemas/types") == ["AVRO", "JSON", "PROTOBUF"]
    assert client.ok("GET", "/contexts") == ["."]
    assert client.ok("GET", "/") == {}


def test_the_version_for_clients_that_take_it(client: Client) -> None:
    headers = {"Confluent-Accept-Unknown-Properties": "true"}
    answer = client.http.post(
        "/registry/subjects/a/versions", json={"schema": INT}, headers=headers
    )
    assert answer.json() == {"id": 1, "version": 1}


def test_numbers_of_errors(client: Client) -> None:
    client.register("a", INT)
    schema = {"schema": INT}
    client.no(40401, "GET", "/subjects/b/versions")
    client.no(40401, "GET", "/subjects/b/versions/1")
    client.no(40401, "POST", "/subjects/b", schema)
    client.no(40402, "GET", "/subjects/a/versions/2")
    client.no(40403, "GET", "/schemas/ids/9")
    client.no(40403, "GET", "/schemas/ids/99999999999")
    client.no(40403, "GET", "/schemas/ids/x")
    client.no(40403, "POST", "/subjects/a", {"schema": LONG})
    client.no(40405, "DELETE", "/subjects/a", permanent="true")
    client.no(40407, "DELETE", "/subjects/a/versions/1", permanent="true")
    client.no(40408, "GET", "/config/a")
    client.no(40409, "GET", "/mode/a")
    client.no(40901, "POST", "/subjects/a/versions", {"schema": '"string"'})
    for malformed in ("", "{", '"nothing"', '{"type":"record"}'):
        client.no(42201, "POST", "/subjects/a/versions", {"schema": malformed})
    client.no(42201, "POST", "/subjects/a/versions", {})
    client.no(42201, "POST", "/subjects/a/versions", {**schema, "schemaType": "XML"})
    gone = {"references": [{"name": "x", "subject": "x", "version": 1}]}
    client.no(42201, "POST", "/subjects/a/versions", {**schema, **gone})
    for version in ("0", "-2", "x", "1.0", "99999999999", "¹", "٣"):
        client.no(42202, "GET", f"/subjects/a/versions/{version}")
    client.no(42203, "PUT", "/config", {"compatibility": "SOME"})
    client.no(42204, "PUT", "/mode", {"mode": "SOME"})
    client.no(42205, "POST", "/subjects/a/versions", {**schema, "id": 4})
    client.no(42208, "POST", "/subjects/%0A/versions", schema)
    client.no(42208, "POST", "/subjects/%FF/versions", schema)
    client.no(42208, "PUT", "/config/%3A.x%3Aa", {"compatibility": "FULL"})
    client.no(422, "POST", "/subjects/a/versions", [])
    client.no(422, "POST", "/subjects/a/versions", {"schema": 1})
    client.no(422, "GET", "/subjects", limit="many")
    client.no(422, "GET", "/schemas/ids/1", format="wild")
    client.no(422, "PUT", "/config", {"alias": "b"})
    client.no(404, "GET", "/nothing")
    client.no(405, "PUT", "/subjects")
    assert client.ok("DELETE", "/subjects/a/versions/1") == 1
    client.no(40406, "DELETE", "/subjects/a/versions/1")
    client.no(40404, "DELETE", "/subjects/a")


def test_bodies_that_are_no_json(client: Client) -> None:
    path = "/registry/subjects/a/versions"
    for content, kind in ((b"{", REGISTRY_JSON), (b"{}", "text/plain"), (b"\xff", REGISTRY_JSON)):
        answer = client.http.post(path, content=content, headers={"content-type": kind})
        assert answer.status_code == 422, answer.text
        assert answer.json()["error_code"] == 422
    surrogate = client.http.post(
        path, content=b'{"schema":"\\ud800"}', headers={"content-type": REGISTRY_JSON}
    )
    assert surrogate.status_code == 422
    deep = b'{"schema":' + b"[" * 100_000
    assert client.http.post(
        path, content=deep, headers={"content-type": REGISTRY_JSON}
    ).status_code == 422  # fmt: skip


def test_schemas_that_are_too_large(client: Client) -> None:
    large = json.dumps({"type": "enum", "name": "E", "symbols": [f"S{n}" for n in range(150_000)]})
    assert len(large) > 1024 * 1024
    deep = "[" * 10_000
    for schema, kind in (
        (large, "AVRO"),
        (deep, "AVRO"),
        (deep, "JSON"),
        ("//" + large, "PROTOBUF"),
    ):
        given = {"schema": schema, "schemaType": kind}
        for path in ("/subjects/a/versions", "/subjects/a", "/compatibility/subjects/a/versions"):
            message = client.no(42209, "POST", path, given)
            assert len(message) < 500
    assert client.ok("GET", "/subjects") == []


def test_references_in_a_circle_are_told_and_end() -> None:
    """No registry takes them; a topic that is taken over may hold them."""

    def record(subject: str, id: int, other: str) -> tuple[str, dict[str, Any]]:
        key = {"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}
        field = {"name": "next", "type": ["null", other]}
        schema = {"type": "record", "name": subject, "fields": [field]}
        reference = {"name": other, "subject": other, "version": 1}
        told = {"subject": subject, "version": 1, "id": id, "schema": json.dumps(schema)}
        return compact(key), {**told, "references": [reference], "deleted": False}

    topic = MemoryTopic(record("a", 1, "b"), record("b", 2, "a"))
    for client in served(topic.registry()):
        assert client.ok("GET", "/schemas/ids/1")["references"][0]["name"] == "b"
        assert "a version 1 -> b version 1" in client.no(
            42201, "GET", "/schemas/ids/1", format="resolved"
        )
        given = {
            "schema": '["null","a"]',
            "references": [{"name": "a", "subject": "a", "version": 1}],
        }
        client.no(42201, "POST", "/subjects/c/versions", given)
        client.no(42201, "POST", "/compatibility/subjects/a/versions", given)


def test_content_types(client: Client) -> None:
    for asked, given in (
        ("application/json", "application/json"),
        (f"{REGISTRY_JSON}, application/json", REGISTRY_JSON),
        ("*/*", REGISTRY_JSON),
    ):
        answer = client.http.get("/registry/subjects", headers={"accept": asked})
        assert answer.headers["content-type"] == given


@pytest.mark.parametrize(
    "name", ["a/b", "ö", "a b", "%2F", "🙂", "a?b=c#d", "versions", "a+b", "a/../b"]
)
def test_odd_subjects(client: Client, name: str) -> None:
    assert client.register(name, INT) == 1
    quoted = quote(name, safe="")
    assert client.ok("GET", f"/subjects/{quoted}/versions/1")["subject"] == name
    client.ok("PUT", f"/config/{quoted}", {"compatibility": "NONE"})
    assert client.ok("GET", "/subjects") == [name]


def test_the_default_context(client: Client) -> None:
    client.register(":.:a", INT)
    assert client.ok("GET", "/subjects", subjectPrefix=":.:") == ["a"]
    assert client.ok("GET", "/subjects", subjectPrefix=":*:") == ["a"]


def test_deleting(client: Client) -> None:
    client.register("a", INT)
    client.register("a", LONG)
    assert client.ok("DELETE", "/subjects/a/versions/latest") == 2
    assert client.ok("GET", "/subjects/a/versions", deleted=True) == [1, 2]
    assert client.ok("GET", "/subjects/a/versions", deletedOnly=True) == [2]
    assert client.ok("GET", "/subjects/a/versions", deletedAsNegative=True) == [1, -2]
    assert client.ok("GET", "/subjects/a/versions/2", deleted=True)["deleted"] is True
    assert client.ok("GET", "/schemas/ids/2/subjects") == []
    assert client.ok("GET", "/schemas/ids/2/subjects", deleted=True) == ["a"]
    client.no(40403, "POST", "/subjects/a", {"schema": LONG})
    assert client.ok("POST", "/subjects/a", {"schema": LONG}, deleted=True)["version"] == 2
    assert client.ok("DELETE", "/subjects/a") == [1]
    assert client.ok("GET", "/subjects") == []
    assert client.ok("GET", "/subjects", deleted=True) == ["a"]
    assert client.ok("GET", "/subjects", deletedOnly=True) == ["a"]
    assert client.ok("DELETE", "/subjects/a", permanent=True) == [1, 2]
    client.no(40401, "DELETE", "/subjects/a", permanent=True)


def test_lists_in_pages(client: Client) -> None:
    client.register("ab", INT)
    client.register("ab", LONG)
    client.register("c", INT)
    assert client.ok("GET", "/subjects", offset=1) == ["c"]
    assert client.ok("GET", "/subjects", limit=1) == ["ab"]
    assert client.ok("GET", "/subjects", subjectPrefix="a") == ["ab"]
    assert [s["version"] for s in client.ok("GET", "/schemas")] == [1, 2, 1]
    assert [s["version"] for s in client.ok("GET", "/schemas", latestOnly=True)] == [2, 1]
    assert len(client.ok("GET", "/schemas", subjectPrefix="a", offset=1, limit=5)) == 1


def test_rules(client: Client) -> None:
    assert client.ok("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert client.ok("PUT", "/config", {"compatibility": "none"}) == {"compatibility": "none"}
    assert client.ok("GET", "/config") == {"compatibilityLevel": "NONE"}
    shown = client.ok("GET", "/config/a", defaultToGlobal=True)
    assert shown["compatibilityLevel"] == "NONE"
    client.ok("PUT", "/config/a", {"compatibility": "FULL", "normalize": True})
    assert client.ok("GET", "/config/a") == {"compatibilityLevel": "FULL", "normalize": True}
    assert client.ok("DELETE", "/config/a")["compatibilityLevel"] == "FULL"
    client.no(40401, "DELETE", "/config/a")
    assert client.ok("DELETE", "/config") == {"compatibilityLevel": "NONE"}
    assert client.ok("GET", "/config") == {"compatibilityLevel": "BACKWARD"}


def test_modes(client: Client) -> None:
    client.register("a", INT)
    assert client.ok("GET", "/mode") == {"mode": "READWRITE"}
    client.no(42205, "PUT", "/mode", {"mode": "IMPORT"})
    assert client.ok("PUT", "/mode", {"mode": "IMPORT"}, force=True) == {"mode": "IMPORT"}
    assert client.register("b", LONG, id=50, version=3) == 50
    assert client.ok("PUT", "/mode/b", {"mode": "READONLY"}) == {"mode": "READONLY"}
    assert client.ok("GET", "/mode/b") == {"mode": "READONLY"}
    assert client.ok("GET", "/mode/a", defaultToGlobal=True) == {"mode": "IMPORT"}
    assert client.ok("DELETE", "/mode/b") == {"mode": "READONLY"}
    assert client.ok("DELETE", "/mode") == {"mode": "IMPORT"}


def test_compatibility(client: Client) -> None:
    path = "/compatibility/subjects/a/versions"
    body = {"schema": '"string"'}
    assert client.ok("POST", path, body) == {"is_compatible": True}
    assert client.ok("POST", f"{path}/latest", body) == {"is_compatible": True}
    client.register("a", INT)
    client.register("a", LONG)
    assert client.ok("POST", f"{path}/1", {"schema": LONG}) == {"is_compatible": True}
    told = client.ok("POST", path, body, verbose=True)
    assert told["is_compatible"] is False
    [message] = told["messages"]
    assert message.startswith("version 2, BACKWARD: ")
    client.no(40402, "POST", f"{path}/3", body)
    client.no(42202, "POST", f"{path}/x", body)
    client.no(42201, "POST", path, {"schema": "{"})


def test_references_and_forms(client: Client) -> None:
    user = '{"type":"record","name":"User","fields":[{"name":"id","type":"int"}]}'
    client.register("user", user)
    references = [{"name": "User", "subject": "user", "version": 1}]
    click = '{"type":"record","name":"Click","fields":[{"name":"by","type":"User"}]}'
    id = client.register("click", click, references=references)
    assert client.ok("GET", f"/schemas/ids/{id}")["references"] == references
    assert client.ok("GET", "/subjects/user/versions/1/referencedby") == [id]
    client.no(42206, "DELETE", "/subjects/user")
    resolved = json.loads(client.ok("GET", f"/schemas/ids/{id}", format="resolved")["schema"])
    assert resolved["fields"][0]["type"]["name"] == "User"
    proto = 'syntax = "proto3";\nmessage M { string a = 1; }\n'
    number = client.register("p", proto, schemaType="PROTOBUF")
    packed = client.ok("GET", "/subjects/p/versions/1", format="serialized")
    assert packed["schemaType"] == "PROTOBUF"
    assert client.register("p", packed["schema"], schemaType="PROTOBUF") == number
    text = client.http.get(f"/registry/schemas/ids/{number}/schema")
    assert text.text == proto and text.headers["content-type"].startswith("text/plain")


def test_contracts_are_kept(client: Client) -> None:
    contract = {"metadata": {"properties": {"owner": "me"}}, "ruleSet": {"domainRules": []}}
    id = client.register("a", INT, **contract)
    assert client.ok("GET", f"/schemas/ids/{id}") == {"schema": INT, **contract}
    assert client.ok("GET", "/subjects/a/versions/1")["metadata"] == contract["metadata"]


@pytest.mark.parametrize("value", [b"NaN", b'"\\ud800"', b"-Infinity"])
def test_contracts_that_are_no_json(client: Client, value: bytes) -> None:
    content = b'{"schema":"\\"int\\"","metadata":{"a":%s}}' % value
    headers = {"content-type": REGISTRY_JSON}
    answer = client.http.post("/registry/subjects/a/versions", content=content, headers=headers)
    assert answer.json()["error_code"] == 422


def test_another_registry_is_used() -> None:
    for client in served(None):
        message = client.no(404, "GET", "/subjects")
        assert "https://schemas.example" in message


def test_the_log_is_away(topic: MemoryTopic) -> None:
    def away() -> None:
        raise MainstemError("LOG_UNREACHABLE", servers="127.0.0.1:1")

    for client in served(Registry(topic.open_log)):
        client.no(50001, "GET", "/subjects")
    for client in served(topic.registry()):
        topic.before_write = away
        client.no(50001, "POST", "/subjects/a/versions", {"schema": INT})
        assert client.ok("GET", "/subjects") == []


def test_unforeseen(topic: MemoryTopic) -> None:
    def fail() -> None:
        raise RuntimeError("a secret inside")

    for client in served(topic.registry()):
        topic.before_write = fail
        message = client.no(50001, "POST", "/subjects/a/versions", {"schema": INT})
        assert "secret" not in message


def test_described(client: Client) -> None:
    document = client.http.get("/openapi.json").json()
    paths = [path for path in document["paths"] if path.startswith("/registry")]
    assert len(paths) == 20
    register = document["paths"]["/registry/subjects/{subject}/versions"]["post"]
    assert {"200", "409", "422", "500"} <= set(register["responses"])
    assert "Avro" in register["requestBody"]["content"]["application/json"]["examples"]
    assert "RegistrySchema" in document["components"]["schemas"]
    assert "HTTPValidationError" not in json.dumps(register)


def test_numbers_for_prometheus(topic: MemoryTopic) -> None:
    stub = Stub(topic.registry())
    with TestClient(create_app(cast(Any, stub)), base_url="http://127.0.0.1:1") as http:
        http.get("/registry/schemas/ids/7")
    assert 'route="/registry/schemas/ids/{id}",status="404"' in stub.metrics.render().decode()
