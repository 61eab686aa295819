"""Requests that nobody would send, made from the registry's API description: no 5xx, ever."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from mainstem.config import Settings
from mainstem.gateway.app import create_app
from mainstem.gateway.metrics import Metrics
from mainstem.gateway.registry_answers import CLICK, EXAMPLES
from mainstem.schemas.model import Schema, SchemaType
from mainstem.testing.schemas_topic import MemoryTopic

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


class Stub:
    """What the registry's routes use of the services."""

    def __init__(self) -> None:
        self.settings = Settings(name="shop")
        self.metrics = Metrics(dict, list)
        self.refill()

    def refill(self) -> None:
        """Each operation begins with the same schemas: another may have made all read-only."""
        self.registry = MemoryTopic().registry()
        self.registry.register("clicks-value", Schema(SchemaType.AVRO, CLICK))
        self.registry.register("clicks-value", Schema(SchemaType.AVRO, CLICK + " "))
        proto = 'syntax = "proto3"; message User { string name = 1; }'
        self.registry.register("user", Schema(SchemaType.PROTOBUF, proto))

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass


STUB = Stub()
API = schemathesis.openapi.from_asgi(
    "/openapi.json", create_app(cast(Any, STUB), ["testserver", "localhost"])
)
OPERATIONS = [
    found.ok()
    for found in API.include(path_regex="^/registry").get_all_operations()
    if hasattr(found, "ok")
]


EXAMPLES_OF = {GenerationMode.POSITIVE: 10, GenerationMode.NEGATIVE: 2}
KNOWN = st.fixed_dictionaries(
    {
        "subject": st.sampled_from(["clicks-value", "user", "a/b", "gone", None]),
        "version": st.sampled_from(["1", "latest", "2", "-1", None]),
        "id": st.sampled_from([0, 1, 2, 3, None]),
    }
)
"""What leads somewhere, which the description alone hardly ever would; None: what it gave."""
BODIES = st.sampled_from([*(example["value"] for example in EXAMPLES.values()), None])


def test_all_are_asked() -> None:
    assert len(OPERATIONS) == 31


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_fuzz(operation: Any, mode: GenerationMode) -> None:
    STUB.refill()

    @seed(1)
    @settings(
        max_examples=EXAMPLES_OF[mode],
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), known=KNOWN, body=BODIES)
    def ask(case: Any, known: dict[str, Any], body: dict[str, Any] | None) -> None:
        case.path_parameters = {
            name: value if known[name] is None else known[name]
            for name, value in (case.path_parameters or {}).items()
        }
        if body is not None and isinstance(case.body, dict) and case.method == "POST":
            case.body = {**case.body, **body}
        case.call_and_validate(checks=CHECKS)

    with suppress(Unsatisfiable):  # nothing about some operations can be wrong
        ask()
