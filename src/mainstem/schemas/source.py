"""What formats and commands need of a schema registry, be it our own or one elsewhere."""

from __future__ import annotations

from typing import Protocol

from mainstem.schemas.compatibility import Level
from mainstem.schemas.model import Reference, Registered, Schema


class SchemaSource(Protocol):
    """A registry. Calls may wait for a network, and are safe from several threads.

    Errors are those of the catalogue, whichever registry it is: SUBJECT_UNKNOWN,
    SCHEMA_VERSION_UNKNOWN, SCHEMA_UNKNOWN, SCHEMA_MALFORMED, SCHEMA_INCOMPATIBLE,
    REGISTRY_NOT_PERMITTED; LOG_UNREACHABLE or REGISTRY_UNREACHABLE when it cannot be asked.
    """

    def by_id(self, id: int) -> Schema:
        """The schema that a record's id stands for; that never changes. SCHEMA_UNKNOWN."""
        ...

    def latest(self, subject: str) -> Registered:
        """The newest version of a subject."""
        ...

    def version(self, subject: str, version: int) -> Registered:
        """One version of a subject."""
        ...

    def versions(self, subject: str, *, fresh: bool = False) -> list[int]:
        """The versions of a subject, the oldest first; `fresh`: all that were there when asked."""
        ...

    def level(self, subject: str) -> Level:
        """The rule of a subject, be it its own or that of all."""
        ...

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> Registered:
        """The schema as a version of the subject: the one that it is already, or a new one."""
        ...

    def check(self, subject: str, schema: Schema) -> list[str]:
        """What registering the schema would break, each with path and reason; nothing: []."""
        ...

    def resolve(self, reference: Reference) -> Schema:
        """What a reference stands for; SCHEMA_REFERENCE_UNKNOWN."""
        ...
