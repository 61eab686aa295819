"""A registry elsewhere, asked over HTTP: ours in its place, and servers that misbehave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from mainstem.config import SchemasSettings
from mainstem.errors import MainstemError
from mainstem.gateway.registry_app import RegistryApp
from mainstem.schemas.external import ExternalRegistry
from mainstem.schemas.model import Reference, Schema, SchemaType
from mainstem.schemas.registry import Registry
from mainstem.schemas.registry_rules import Mode
from mainstem.testing.schemas_topic import MemoryTopic

INT, LONG = Schema(SchemaType.AVRO, '"int"'), Schema(SchemaType.AVRO, '"long"')


def fails(code: str, call: Callable[[], object]) -> MainstemError:
    with pytest.raises(MainstemError) as raised:
        call()
    assert raised.value.code == code, raised.value.message
    return raised.value


class Served:
    """Our registry as a server, and a client of it; `asked` counts requests."""

    def __init__(self) -> None:
        self.registry: Registry = MemoryTopic().registry()
        services: Any = type("Services", (), {"registry": self.registry})()
        inner = RegistryApp(services, rest=None)  # type: ignore[arg-type]
        self.http = TestClient(inner, base_url="http://127.0.0.1", raise_server_exceptions=False)
        self.asked: list[httpx2.Request] = []
        transport = httpx2.MockTransport(self._answer)
        url = "http://127.0.0.1/registry/"
        self.client = ExternalRegistry(url, "me", "secret", transport=transport)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = self.http.request(
            request.method, str(request.url), content=request.content, headers=dict(request.headers)
        )
        return httpx2.Response(
            answer.status_code, content=answer.content, headers=dict(answer.headers)
        )


@pytest.fixture
def served() -> Served:
    return Served()


def test_as_our_own(served: Served) -> None:
    client = served.client
    its = client.register("a/b ö", INT)
    assert its == served.registry.latest("a/b ö")
    assert client.register("a/b ö", INT) == its
    assert client.by_id(its.id) == INT
    assert client.latest("a/b ö") == client.version("a/b ö", 1) == its
    client.register("a/b ö", LONG)
    assert client.versions("a/b ö") == [1, 2]
    assert client.check("a/b ö", LONG) == []
    [said] = client.check("a/b ö", Schema(SchemaType.AVRO, '"string"'))
    assert "version 2" in said
    json_schema = Schema(SchemaType.JSON, "{}")
    assert client.register("j", json_schema, normalize=True).schema == json_schema


def test_references(served: Served) -> None:
    user = '{"type":"record","name":"User","fields":[]}'
    served.client.register("user", Schema(SchemaType.AVRO, user))
    reference = Reference("User", "user", 1)
    its = served.client.register(
        "list", Schema(SchemaType.AVRO, '{"type":"array","items":"User"}', (reference,))
    )
    assert served.client.by_id(its.id).references == (reference,)
    assert served.client.resolve(reference).text == user
    missing = Reference("User", "user", 2)
    fails("SCHEMA_REFERENCE_UNKNOWN", lambda: served.client.resolve(missing))


def test_errors_are_the_same(served: Served) -> None:
    client = served.client
    client.register("a", INT)
    fails("SCHEMA_UNKNOWN", lambda: client.by_id(9))
    fails("SUBJECT_UNKNOWN", lambda: client.latest("b"))
    fails("SUBJECT_UNKNOWN", lambda: client.versions("b"))
    fails("SCHEMA_VERSION_UNKNOWN", lambda: client.version("a", 2))
    error = fails("SCHEMA_MALFORMED", lambda: client.register("a", Schema(SchemaType.AVRO, "{")))
    assert error.message.startswith("the AVRO schema cannot be read at line 1")
    text = Schema(SchemaType.AVRO, '"string"')
    error = fails("SCHEMA_INCOMPATIBLE", lambda: client.register("a", text))
    # told once, as the other side has told it
    assert error.message.startswith('the schema breaks the rule BACKWARD of the subject "a": versi')
    assert error.message.count("breaks the rule") == 1 and error.hint not in error.message
    served.registry.set_mode("a", Mode.READONLY)
    fails("REGISTRY_NOT_PERMITTED", lambda: client.register("a", LONG))


def test_what_never_changes_is_asked_once(served: Served) -> None:
    its = served.client.register("a", INT)
    served.asked.clear()
    for _ in range(3):
        served.client.by_id(its.id)
        served.client.version("a", 1)
        served.client.resolve(Reference("x", "a", 1))
    assert len(served.asked) == 3
    fails("SCHEMA_UNKNOWN", lambda: served.client.by_id(2))
    served.client.register("a", LONG)
    assert served.client.by_id(2) == LONG, "what is missing may come"
    assert all(request.headers["authorization"] for request in served.asked)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (httpx2.Response(200, text="<html>"), "REGISTRY_FAILED"),
        (httpx2.Response(200, json=[]), "REGISTRY_FAILED"),
        (httpx2.Response(200, json={"schema": 1}), "REGISTRY_FAILED"),
        (httpx2.Response(200, json={"schema": "x", "schemaType": "XML"}), "REGISTRY_FAILED"),
        (httpx2.Response(200), "REGISTRY_FAILED"),
        (httpx2.Response(302, headers={"location": "http://elsewhere"}), "REGISTRY_FAILED"),
        (httpx2.Response(401, json={"error_code": 401, "message": "no"}), "REGISTRY_FAILED"),
        (httpx2.Response(500, json={"error_code": "?"}), "REGISTRY_FAILED"),
        (httpx2.Response(503, json={"error_code": 50301}), "REGISTRY_UNREACHABLE"),
        (httpx2.ConnectError("refused"), "REGISTRY_UNREACHABLE"),
        (httpx2.ReadTimeout("slow"), "REGISTRY_UNREACHABLE"),
    ],
)
def test_servers_that_misbehave(answer: httpx2.Response | Exception, code: str) -> None:
    def respond(request: httpx2.Request) -> httpx2.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    client = ExternalRegistry("http://x", transport=httpx2.MockTransport(respond))
    fails(code, lambda: client.by_id(1))
    fails(code, lambda: client.latest("a"))
    fails(code, lambda: client.register("a", INT))


def test_settings() -> None:
    settings = SchemasSettings(registry="https://x", user="me", password="secret")  # type: ignore[arg-type]
    ExternalRegistry.from_settings(settings).close()
    assert "secret" not in repr(settings)
    with pytest.raises(ValueError, match="pattern"):
        SchemasSettings(registry="https://me:secret@x")
