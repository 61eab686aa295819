"""The events behind a row, as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mainstem.client.html import preformatted


@dataclass(frozen=True, slots=True)
class EventBehind:
    """A record, and those that it was made of."""

    object: str
    kind: str
    topic: str
    partition: int
    offset: int
    time: str
    payload: Any
    schema_id: int | None = None
    note: str | None = None
    """Where it is not exact: why."""
    inputs: tuple[EventBehind, ...] = ()

    @classmethod
    def read(cls, node: Mapping[str, Any]) -> EventBehind:
        """The record and all below it, from the gateway's answer."""
        values: dict[str, Any] = {name: node.get(name) for name in cls.__dataclass_fields__}
        values["inputs"] = tuple(map(cls.read, node.get("inputs", ())))
        return cls(**values)

    def walk(self) -> Iterator[EventBehind]:
        """The record itself, then all below it."""
        yield self
        for child in self.inputs:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class ExplainedRow:
    """A row of a table and the events that made it; `str()` draws the tree."""

    row: EventBehind
    exact: bool
    """False where a `note` says why not."""
    text: str

    def sources(self) -> list[EventBehind]:
        """The events at the ends of the tree: those that came from outside."""
        return [event for event in self.row.walk() if not event.inputs]

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return preformatted(self.text)
