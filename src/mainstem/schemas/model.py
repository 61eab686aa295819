"""What a schema is: a text of one of three types, and the other schemas that it names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class SchemaType(StrEnum):
    """As the registry's API spells them."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True)
class Reference:
    """Another registered schema, by the name that the text uses for it."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Schema:
    """A text as it was given, of a type, with what it refers to."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class Registered:
    """A schema under a subject."""

    subject: str
    version: int
    id: int
    schema: Schema
    deleted: bool = False


Resolve = Callable[[Reference], Schema]
"""Finds what a reference stands for; raises SCHEMA_REFERENCE_UNKNOWN when nothing does."""
