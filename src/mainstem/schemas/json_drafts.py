"""The drafts of JSON Schema that we know, by the validators of the library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from jsonschema.protocols import Validator
from jsonschema.validators import (
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
    extend,
)


def _mended(draft: type[Validator]) -> type[Validator]:
    """The library fails on `additionalItems` beside `items: true`, where it says nothing."""
    check = draft.VALIDATORS["additionalItems"]

    def additional_items(
        validator: Validator, value: Any, instance: Any, schema: dict[str, Any]
    ) -> Iterator[Any]:
        if isinstance(schema.get("items"), list):
            yield from check(validator, value, instance, schema)

    rules = {"additionalItems": additional_items}
    mended: type[Validator] = extend(draft, rules)  # type: ignore[no-untyped-call]
    return mended


DRAFT_4: Final = _mended(Draft4Validator)
DRAFT_6: Final = _mended(Draft6Validator)
DRAFT_7: Final = _mended(Draft7Validator)
DRAFT_2019_09: Final = _mended(Draft201909Validator)
DRAFT_2020_12: Final = Draft202012Validator

DRAFTS: Final = (DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019_09, DRAFT_2020_12)
LEGACY: Final = (DRAFT_4, DRAFT_6, DRAFT_7)
"""In these, what stands beside a `$ref` does not count."""
DEFAULT: Final = DRAFT_7
"""Where a schema does not say, as in other registries."""


def draft_of(address: object) -> type[Validator] | None:
    """The draft that `$schema` names, with an empty fragment or without."""
    if not isinstance(address, str):
        return None
    wanted = address.removesuffix("#")
    return next((d for d in DRAFTS if d.META_SCHEMA["$schema"].removesuffix("#") == wanted), None)
