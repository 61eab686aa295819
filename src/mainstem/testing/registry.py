"""A schema registry in memory, for tests of pipelines: it takes every schema, and judges none."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from mainstem.errors import MainstemError
from mainstem.schemas.model import Reference, Registered, Schema


class MemoryRegistry:
    """Ids are given in the order in which schemas come, beginning with 1."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids: dict[Schema, int] = {}
        self._subjects: dict[str, list[Registered]] = {}

    def by_id(self, id: int) -> Schema:
        """The schema with that id."""
        for schema, known in self._ids.items():
            if known == id:
                return schema
        raise MainstemError("SCHEMA_UNKNOWN", id=id)

    def versions(self, subject: str) -> Sequence[Registered]:
        """All versions of a subject."""
        return tuple(self._subjects.get(subject, ()))

    def resolve(self, reference: Reference) -> Schema:
        """What a reference stands for."""
        for registered in self.versions(reference.subject):
            if registered.version == reference.version:
                return registered.schema
        problem = f'there is no version {reference.version} of "{reference.subject}"'
        raise MainstemError("SCHEMA_REFERENCE_UNKNOWN", name=reference.name, problem=problem)

    def register(self, subject: str, schema: Schema) -> Registered:
        """The schema as a version of the subject."""
        with self._lock:
            versions = self._subjects.setdefault(subject, [])
            for known in versions:
                if known.schema == schema:
                    return known
            id = self._ids.setdefault(schema, len(self._ids) + 1)
            versions.append(Registered(subject, len(versions) + 1, id, schema))
            return versions[-1]
