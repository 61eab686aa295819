"""A plan: the steps from the catalog as it is to what is wanted, as frozen data.

`explain` prints the steps, `apply` runs them; neither decides anything.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from mainstem.catalog.entry import Entry
from mainstem.definitions.model import FunctionDefinition, Kind
from mainstem.vocabulary import SourceLocation


@dataclass(frozen=True, slots=True)
class TopicNeed:
    """A topic as an object needs it."""

    name: str
    partitions: int | None
    """None: the default of the settings."""
    compacted: bool
    """True for a table: the latest record of each key is kept."""
    retention: str | None
    """An interval, `forever`, or None for the broker's default."""


@dataclass(frozen=True, slots=True)
class CreateObject:
    """A new object; `topic` is None when its topic exists already."""

    entry: Entry
    topic: TopicNeed | None
    replay_records: int
    step: Literal["create"] = "create"


@dataclass(frozen=True, slots=True)
class ChangeInPlace:
    """A change that loses nothing: the object goes on where it was."""

    entry: Entry
    before: Entry
    why: str
    step: Literal["change"] = "change"


@dataclass(frozen=True, slots=True)
class Rebuild:
    """A change that starts the object anew, under the next generation.

    What a flow has written under the old generation goes; whoever runs the flow empties the topic
    after the old generation has stopped and before the new one starts. Records of a declared
    object are the user's and stay.
    """

    entry: Entry
    before: Entry
    why: str
    replay_records: int
    step: Literal["rebuild"] = "rebuild"


@dataclass(frozen=True, slots=True)
class DropObject:
    """The end of an object, and of its topic when Mainstem made that."""

    entry: Entry
    why: str
    records_lost: int
    step: Literal["drop"] = "drop"


Step = Annotated[CreateObject | ChangeInPlace | Rebuild | DropObject, Field(discriminator="step")]


@dataclass(frozen=True, slots=True)
class FunctionStep:
    """A Python function that comes, changes or goes; the flows that call it have their own step."""

    step: Literal["create", "change", "drop"]
    function: FunctionDefinition


@dataclass(frozen=True, slots=True)
class SchemaBreak:
    """Why a schema may not follow, and the column that it is about."""

    problem: str
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """The schema of an object's records, which is registered before the object is there."""

    name: str
    """The object's."""
    subject: str
    level: str
    """The rule of the subject."""
    version: int | None
    """The newest one of the subject; None: there is none yet."""
    changes: tuple[str, ...] = ()
    """What is different from that version, one a line."""
    breaks: tuple[SchemaBreak, ...] = ()
    """With any of these, the plan is not applied."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order in which they are taken, made for one revision of the catalog."""

    revision: int
    steps: tuple[Step, ...]
    target: str = ""
    """Where it would be applied, in words for people."""
    functions: tuple[FunctionStep, ...] = ()
    schemas: tuple[SchemaStep, ...] = ()
    notes: tuple[str, ...] = ()
    """What the user should know beside the steps, in sentences."""

    @property
    def changes(self) -> int:
        """How many steps there are in all."""
        return len(self.functions) + len(self.steps)

    @property
    def digest(self) -> str:
        """Equal for plans that do the same; record counts, which change all the time, left out."""
        parts = [
            [
                step.step,
                step.entry.name,
                step.entry.fingerprint,
                step.entry.generation,
                step.entry.definition.topic,
                [[column.name, column.type] for column in step.entry.definition.columns],
                *([index.name, index.columns] for index in step.entry.definition.indexes),
            ]
            for step in self.steps
        ]
        parts += [[s.step, s.function.signature, s.function.version] for s in self.functions]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def to_json(self) -> bytes:
        """The plan as JSON."""
        return _PLAN.dump_json(self)

    @staticmethod
    def from_json(data: bytes) -> Plan:
        """The plan in a JSON text."""
        return _PLAN.validate_json(data)


_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)


def topic_need(entry: Entry) -> TopicNeed:
    """The topic that an entry asks for."""
    definition = entry.definition
    return TopicNeed(
        definition.topic,
        definition.partitions,
        definition.kind is Kind.TABLE,
        definition.retention,
    )
