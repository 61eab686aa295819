"""Whether a new version of a schema may follow the earlier ones, and if not, what breaks where.

Backward: what was written with an earlier version is read with the new one. Forward: what is
written with the new one is read with an earlier version. The rules of each type are in a module of
their own, and say for one reader and one writer what cannot be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mainstem.schemas.avro_parse import AvroSchema
from mainstem.schemas.avro_rules import avro_breaks
from mainstem.schemas.breaks import Break
from mainstem.schemas.json_parse import JsonSchema
from mainstem.schemas.json_rules import json_breaks
from mainstem.schemas.model import Resolve, Schema
from mainstem.schemas.parse import Parsed, parse
from mainstem.schemas.protobuf_parse import ProtobufSchema
from mainstem.schemas.protobuf_rules import protobuf_breaks, reused_numbers


class Level(StrEnum):
    """What a subject asks of a new version; as the registry's API spells them."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        """Whether all earlier versions count, not the last one only."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def backward(self) -> bool:
        """Whether the new version must read what the earlier ones have written."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def forward(self) -> bool:
        """Whether the earlier versions must read what the new one writes."""
        return self.value.startswith(("FORWARD", "FULL"))


class Direction(StrEnum):
    """Who reads whom."""

    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"


@dataclass(frozen=True)
class Incompatibility:
    """One thing that a reader could not read.

    path       where, in the new schema's terms
    kind       a stable name, such as READER_FIELD_MISSING_DEFAULT_VALUE
    reason     the same in a sentence
    direction  BACKWARD: the new schema cannot read the earlier one's data; FORWARD: the reverse
    against    place of the earlier schema in the sequence that was given, from 0
    """

    path: str
    kind: str
    reason: str
    direction: Direction
    against: int

    def __str__(self) -> str:
        return f"{self.path}: {self.reason} ({self.kind})"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "path": self.path,
            "kind": self.kind,
            "reason": self.reason,
            "direction": self.direction.value,
            "against": self.against,
        }


def check(
    new: Schema, earlier: Sequence[Schema], level: Level, resolve: Resolve
) -> list[Incompatibility]:
    """All that breaks if `new` follows `earlier` (the oldest first); none if it may follow.

    The new schema must be sound by itself, whatever the level. An earlier one of another type
    breaks everything.
    """
    parsed = parse(new, resolve)
    if level is Level.NONE or not earlier:
        return []
    first = 0 if level.transitive else len(earlier) - 1
    found: list[Incompatibility] = []
    for index in range(len(earlier) - 1, first - 1, -1):
        other = parse(earlier[index], resolve)
        if level.backward:
            found += _label(breaks(parsed, other), Direction.BACKWARD, index)
            if isinstance(parsed, ProtobufSchema) and isinstance(other, ProtobufSchema):
                found += _label(reused_numbers(parsed, other), Direction.BACKWARD, index)
        if level.forward:
            found += _label(breaks(other, parsed), Direction.FORWARD, index)
    return found


def breaks(reader: Parsed, writer: Parsed) -> list[Break]:
    """What `reader` cannot read of what `writer` writes."""
    match reader, writer:
        case AvroSchema(), AvroSchema():
            return avro_breaks(reader, writer)
        case JsonSchema(), JsonSchema():
            return json_breaks(reader, writer)
        case ProtobufSchema(), ProtobufSchema():
            return protobuf_breaks(reader, writer)
        case _:
            kinds = f"{writer.schema.type} cannot become {reader.schema.type}"
            return [Break("/", "SCHEMA_TYPE_CHANGED", f"a schema of type {kinds}")]


def _label(found: list[Break], direction: Direction, index: int) -> list[Incompatibility]:
    return [Incompatibility(item.path, item.kind, item.reason, direction, index) for item in found]
