"""A few schemas with all that they refer to, as plain values: a registry for any process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from mainstem.errors import MainstemError
from mainstem.schemas.compatibility import Level
from mainstem.schemas.model import Reference, Registered, Schema
from mainstem.schemas.parse import parse
from mainstem.schemas.source import SchemaSource


@dataclass(frozen=True)
class GivenSchemas:
    """A `SchemaSource` of schemas by id; it has no subjects, and takes nothing new."""

    ids: Mapping[int, Schema]
    referred: Mapping[Reference, Schema]

    def by_id(self, id: int) -> Schema:
        """One of the schemas."""
        if id not in self.ids:
            raise MainstemError("SCHEMA_UNKNOWN", what=f"with id {id}")
        return self.ids[id]

    def resolve(self, reference: Reference) -> Schema:
        """What one of the schemas refers to."""
        if reference not in self.referred:
            problem = "it is not among what was given"
            raise MainstemError("SCHEMA_REFERENCE_UNKNOWN", name=reference.name, problem=problem)
        return self.referred[reference]

    def latest(self, subject: str) -> Registered:
        """There are no subjects."""
        self._no_subject(subject)

    def version(self, subject: str, version: int) -> Registered:
        """There are no subjects."""
        self._no_subject(subject)

    def versions(self, subject: str, *, fresh: bool = False) -> list[int]:
        """There are no subjects."""
        self._no_subject(subject)

    def level(self, subject: str) -> Level:
        """There are no subjects."""
        self._no_subject(subject)

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> Registered:
        """There are no subjects."""
        self._no_subject(subject)

    def check(self, subject: str, schema: Schema) -> list[str]:
        """There are no subjects."""
        self._no_subject(subject)

    def _no_subject(self, subject: str) -> NoReturn:
        raise MainstemError("SUBJECT_UNKNOWN", subject=subject)


def gathered(registry: SchemaSource, ids: Iterable[int], schema: Schema) -> GivenSchemas:
    """The schemas with these ids, as far as the registry has them, and what they refer to.

    `schema`, which need not be registered, must be one that can be read; so must what it refers to.
    """
    referred: dict[Reference, Schema] = {}

    def noted(reference: Reference) -> Schema:
        referred[reference] = registry.resolve(reference)
        return referred[reference]

    parse(schema, noted)
    found: dict[int, Schema] = {}
    for id in ids:
        try:
            found[id] = registry.by_id(id)
            parse(found[id], noted)
        except MainstemError as error:
            if error.status >= 500:  # nobody has said anything of the schema
                raise
    return GivenSchemas(found, referred)
