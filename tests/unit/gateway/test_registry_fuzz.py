"""Requests that nobody would send, made from the registry's API description: no 5xx, ever.

Only answers that the description knows, in the shapes that it says. schemathesis is imported by the
tests that need it, for that takes seconds.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from mainstem.config import Settings
from mainstem.gateway.app import create_app
from mainstem.gateway.metrics import Metrics
from mainstem.gateway.registry_answers import CLICK, EXAMPLES
from mainstem.gateway.registry_app import RegistryApp
from mainstem.schemas.model import Schema, SchemaType
from mainstem.testing.schemas_topic import MemoryTopic

OPERATIONS = [
    (method, path)
    for path, operations in RegistryApp(None, cast(Any, None)).openapi()["paths"].items()
    for method in operations
]
EXAMPLES_OF = {"positive": 10, "negative": 2}
KNOWN = st.fixed_dictionaries(
    {
        "subject": st.sampled_from(["clicks-value", "user", "a/b", "gone", None]),
        "version": st.sampled_from(["1", "latest", "2", "-1", None]),
        "id": st.sampled_from([0, 1, 2, 3, None]),
    }
)
"""What leads somewhere, which the description alone hardly ever would; None: what it gave."""
BODIES = st.sampled_from([*(example["value"] for example in EXAMPLES.values()), None])


class Stub:
    """What the registry's routes use of the services."""

    def __init__(self) -> None:
        self.settings = Settings(name="shop")
        self.metrics = Metrics(dict, list)
        self.refill()

    def refill(self) -> None:
        """Each operation begins with the same schemas: another may have made all read-only."""
        self.registry = MemoryTopic().registry()
        click = json.loads(CLICK)
        self.registry.register("clicks-value", Schema(SchemaType.AVRO, json.dumps(click)))
        click["fields"].append({"name": "at", "type": "long", "default": 0})
        self.registry.register("clicks-value", Schema(SchemaType.AVRO, json.dumps(click)))
        proto = 'syntax = "proto3"; message User { string name = 1; }'
        self.registry.register("user", Schema(SchemaType.PROTOBUF, proto))

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def stub() -> Stub:
    return Stub()


@pytest.fixture(scope="module")
def api(stub: Stub) -> Any:
    import schemathesis

    return schemathesis.openapi.from_asgi(
        "/openapi.json", create_app(cast(Any, stub), ["testserver", "localhost"])
    )


@pytest.mark.parametrize("mode", EXAMPLES_OF)
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_fuzz(stub: Stub, api: Any, method: str, path: str, mode: str) -> None:
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    stub.refill()
    cases = api[path][method].as_strategy(generation_mode=GenerationMode(mode))
    wanted = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]

    @seed(1)
    @settings(
        max_examples=EXAMPLES_OF[mode],
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, known=KNOWN, body=BODIES)
    def ask(case: Any, known: dict[str, Any], body: dict[str, Any] | None) -> None:
        case.path_parameters = {
            name: value if known[name] is None else known[name]
            for name, value in (case.path_parameters or {}).items()
        }
        if body is not None and isinstance(case.body, dict) and method == "post":
            case.body = {**case.body, **body}
        case.call_and_validate(checks=wanted)

    with suppress(Unsatisfiable):  # nothing about some operations can be wrong
        ask()
