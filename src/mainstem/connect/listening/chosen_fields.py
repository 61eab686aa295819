"""Of a JSON value, the fields that a type names: what a sender tells beside them is left out."""

from __future__ import annotations

from typing import Any

from mainstem.definitions.types import struct_fields, type_parts


def chosen(value: Any, type_: str) -> Any:
    """The value without fields of structs that the type does not have; other misfits stay."""
    if isinstance(value, dict) and type_.startswith("struct<"):
        types = dict(struct_fields(type_).values())
        return {name: chosen(value[name], types[name]) for name in types if name in value}
    if isinstance(value, list) and type_.startswith("array<"):
        inner = type_[len("array<") : -1]
        return [chosen(item, inner) for item in value]
    if isinstance(value, dict) and type_.startswith("map<"):
        inner = type_parts(type_[len("map<") : -1])[1]
        return {name: chosen(item, inner) for name, item in value.items()}
    return value
