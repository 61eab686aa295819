"""Records as a function over events takes them, and the keys of the rows that it gives."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Sequence
from typing import Any

from mainstem.definitions.types import struct_fields
from mainstem.engine.json_text import writer


def record_maker(event: Any) -> Callable[..., Any]:
    """Fields in their order -> a record as the function wants it."""
    names = list(typing.get_type_hints(event))
    make: Callable[..., Any] = event
    if typing.is_typeddict(event):
        return lambda *values: dict(zip(names, values, strict=True))
    if dataclasses.is_dataclass(event):
        fields = dataclasses.fields(event)
        if any(field.kw_only for field in fields):
            return lambda *values: make(**dict(zip(names, values, strict=True)))
    return make


def key_writer(returns: str, columns: Sequence[str]) -> Callable[[Any], bytes | None]:
    """What makes the key of a record: plain text of one column, JSON of several."""
    if not columns:
        return lambda row: None
    types = dict(struct_fields(returns).values())
    writers = {name: writer(types[name]) for name in columns}
    if len(columns) > 1:
        labels = [(f'"{name}":', name, write) for name, write in writers.items()]
        return lambda row: (
            "{" + ",".join(f"{label}{write(row[name])}" for label, name, write in labels) + "}"
        ).encode()
    [(name, write)] = writers.items()

    def text(row: Any) -> bytes | None:
        value = row[name]
        if value is None:
            return None
        return value.encode() if isinstance(value, str) else write(value).strip('"').encode()

    return text
