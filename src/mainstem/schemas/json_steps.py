"""A bound on the work of checking one value by a JSON Schema.

Schemas that refer to one another can put a small value to more checks than anybody can wait for:
where each level of a value is held against the level below twice, thirty levels are a billion. The
library asks its resolver of references at every step; this one counts, and gives up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from jsonschema.protocols import Validator

from mainstem.schemas.json_parse import REFERENCES, JsonSchema

_STEPS = 100_000
_STEPS_PER_BYTE = 10


class TooManySteps(RecursionError):
    """A value that cannot be checked within bounds."""


class _Resolved(NamedTuple):
    contents: Any
    resolver: Any


class _Counting:
    """A resolver that allows so many steps, together with all that come of it."""

    def __init__(self, inner: Any, left: list[int]) -> None:
        self._inner = inner
        self._left = left

    def in_subresource(self, subresource: Any) -> _Counting:
        self._step()
        found = self._inner.in_subresource(subresource)
        return self if found is self._inner else _Counting(found, self._left)

    def lookup(self, reference: str) -> _Resolved:
        self._step()
        found = self._inner.lookup(reference)
        return _Resolved(found.contents, _Counting(found.resolver, self._left))

    def dynamic_scope(self) -> Iterable[tuple[str, Any]]:
        found: Iterable[tuple[str, Any]] = self._inner.dynamic_scope()
        return found

    def _step(self) -> None:
        self._left[0] -= 1
        if self._left[0] < 0:
            message = "it takes too many steps to check"
            raise TooManySteps(message)


class BoundedChecks:
    """Validators of one schema, each for one value."""

    def __init__(self, parsed: JsonSchema) -> None:
        self._validator = parsed.validator()
        self._resolver = parsed.root.resolver
        # what has no references takes no more steps than its text and the value are long
        self._bounded = any(f'"{word}"' in parsed.schema.text for word in REFERENCES)

    def of(self, size: int) -> Validator:
        """A validator for a value of so many bytes; it may raise TooManySteps."""
        if not self._bounded:
            return self._validator
        left = [_STEPS + _STEPS_PER_BYTE * size]
        return self._validator.evolve(_resolver=_Counting(self._resolver, left))
