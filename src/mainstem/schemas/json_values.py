"""Values with a JSON Schema: JSON text that the schema lets through. Needs no registry to check."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator

from mainstem.schemas.json_parse import parse_json_schema
from mainstem.schemas.json_steps import BoundedChecks, TooManySteps
from mainstem.schemas.model import Reference, Schema
from mainstem.schemas.text import pointer

_LONGEST = 200
_MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a schema refuses a value, and which part of it."""

    path: tuple[str | int, ...]
    reason: str
    rule: str = ""
    """What of the schema refuses it, in one word; the same for all values that fail so."""

    def __str__(self) -> str:
        return f"{pointer(*self.path)}: {self.reason}" if self.path else self.reason


Check = Callable[[bytes], Refusal | None]


@dataclass(frozen=True, slots=True)
class JsonReading:
    """A schema and all that it refers to, as plain values that go to any process."""

    schema: Schema
    referred: tuple[tuple[Reference, Schema], ...] = ()


@lru_cache(maxsize=_MOST_KEPT)
def checker(reading: JsonReading) -> Check:
    """What says why a text is refused; None for one that the schema lets through."""
    referred = dict(reading.referred)
    checks = BoundedChecks(parse_json_schema(reading.schema, referred.__getitem__))

    def problem(data: bytes) -> Refusal | None:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            return Refusal((), f"it is not JSON: {error}")
        if not isinstance(value, dict):
            return Refusal((), f"a JSON object was expected, not {type(value).__name__}")
        try:
            return refusal_of(checks.of(len(data)), value)
        except TooManySteps as error:
            return Refusal((), str(error))
        except RecursionError:
            return Refusal((), "it is nested too deep")

    return problem


def refusal_of(validator: Validator, value: Any) -> Refusal | None:
    """What a validator says of a value; None when it lets it through."""
    if validator.is_valid(value):
        return None
    found = best_match(validator.iter_errors(value))
    assert found is not None
    return Refusal(tuple(found.absolute_path), found.message[:_LONGEST], str(found.validator))
