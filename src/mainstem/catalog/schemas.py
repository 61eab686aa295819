"""The schemas of a plan's objects: what apply registers, and what the registry's rules forbid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mainstem.catalog.plan import ChangeInPlace, CreateObject, Plan, Rebuild, SchemaStep, Step
from mainstem.definitions.model import Definition
from mainstem.errors import MainstemError
from mainstem.vocabulary import Column


class Schemas(Protocol):
    """Knows the schema registry; its errors pass through when it cannot be asked."""

    def columns(
        self, definition: Definition, known: Sequence[Column], *, widen: bool
    ) -> tuple[Column, ...]:
        """The columns of a declared stream that leaves them to its subject.

        Those that are known stay, in their order, and new ones come behind. With `widen`, a known
        one gets the type that the subject's versions have come to.
        """
        ...

    def judge(self, definition: Definition, before: Definition | None) -> Sequence[SchemaStep]:
        """What becomes of the schemas of an object that is new or changes: of values, of keys."""
        ...

    def register(self, definition: Definition, subject: str) -> None:
        """Make the object's schema a version of that subject; nothing happens when it is one."""
        ...


@dataclass(frozen=True, slots=True)
class _Changed:
    definition: Definition
    before: Definition | None


def schema_steps(steps: Iterable[Step], schemas: Schemas) -> tuple[SchemaStep, ...]:
    """The schemas of all objects that come or change."""
    judged = (schemas.judge(its.definition, its.before) for its in _changed(steps))
    return tuple(step for found in judged for step in found)


def check_breaks(plan: Plan) -> None:
    """SCHEMA_INCOMPATIBLE when a rule of the registry forbids a schema of the plan."""
    for schema in plan.schemas:
        if schema.breaks:
            raise MainstemError(
                "SCHEMA_INCOMPATIBLE",
                location=schema.breaks[0].location,
                subject=schema.subject,
                level=schema.level,
                problem="; ".join(found.problem for found in schema.breaks),
            )


def register_schemas(plan: Plan, schemas: Schemas) -> None:
    """Register what the plan says; again is no harm."""
    changed = {its.definition.name: its.definition for its in _changed(plan.steps)}
    for schema in plan.schemas:
        schemas.register(changed[schema.name], schema.subject)


def _changed(steps: Iterable[Step]) -> Iterable[_Changed]:
    for step in steps:
        match step:
            case CreateObject(entry):
                yield _Changed(entry.definition, None)
            case ChangeInPlace(entry, before) | Rebuild(entry, before):
                yield _Changed(entry.definition, before.definition)
