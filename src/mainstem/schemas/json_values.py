"""Values with a JSON Schema: JSON text that the schema lets through. Needs no registry to check."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from jsonschema.exceptions import best_match

from mainstem.schemas.json_parse import parse_json_schema
from mainstem.schemas.json_steps import BoundedChecks, TooManySteps
from mainstem.schemas.model import Reference, Schema
from mainstem.schemas.text import pointer

_LONGEST = 200
_MOST_KEPT = 1000

Check = Callable[[bytes], str | None]


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

    def problem(data: bytes) -> str | None:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            return f"it is not JSON: {error}"
        if not isinstance(value, dict):
            return f"a JSON object was expected, not {type(value).__name__}"
        validator = checks.of(len(data))
        try:
            if validator.is_valid(value):
                return None
            found = best_match(validator.iter_errors(value))
        except TooManySteps as error:
            return str(error)
        except RecursionError:
            return "it is nested too deep"
        assert found is not None
        return f"{pointer(*found.absolute_path)}: {found.message[:_LONGEST]}"

    return problem
