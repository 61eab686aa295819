"""One thing that a reader's schema cannot read of what a writer's schema writes."""

from __future__ import annotations

from dataclasses import dataclass

MAX_BREAKS = 200
"""So many are listed; who needs more has another schema altogether."""


@dataclass(frozen=True)
class Break:
    """Where, a stable name for what, and a sentence.

    Paths are those of the type: `Order.items[].price` for Avro and Protobuf, a JSON pointer into
    the value's schema for JSON Schema.
    """

    path: str
    kind: str
    reason: str
