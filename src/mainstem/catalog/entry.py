"""What the catalog keeps of one object, and the catalog as a whole at one revision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pydantic import TypeAdapter

from mainstem.definitions.model import Definition, FunctionDefinition, Kind
from mainstem.vocabulary import Offsets


class Origin(StrEnum):
    """Who made an object: a file of the project (plan may drop it) or a single statement."""

    PROJECT = "project"
    STATEMENT = "statement"


class BackfillState(StrEnum):
    """What is to become of a backfill."""

    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"
    """The table goes on with what it has computed."""


@dataclass(frozen=True, slots=True)
class Backfill:
    """The text of a flow once more over history: beside a table's result, to replace it; or, for a
    stream, over what lies before the records that its flow has read, to be added to it.
    """

    generation: int
    """The table's, when it is done; for a stream, that of nothing else."""
    since: str
    """From where on, in words: `beginning`, a time, or `offsets`."""
    start: str
    """The same as Spark wants to have it: `earliest`, or offsets by topic and partition as JSON."""
    rate: int | None = None
    """Most records a second; None: as many as can be."""
    state: BackfillState = BackfillState.RUNNING
    end: str | None = None
    """For a stream: where it ends, by topic and partition as JSON; None: with the live flow."""

    @property
    def active(self) -> bool:
        """True until it has ended, one way or the other."""
        return self.state in (BackfillState.RUNNING, BackfillState.PAUSED)


@dataclass(frozen=True, slots=True)
class Entry:
    """One object of the catalog: its definition, resolved, and how it is to run."""

    definition: Definition
    fingerprint: str
    """Changes when the object must change; layout and comments do not count."""
    generation: int = 1
    """Goes up when the object is rebuilt (new checkpoint, emptied topic, emptied view) or
    backfilled (new checkpoint; topic and view go on)."""
    paused: bool = False
    origin: Origin = Origin.STATEMENT
    owns_topic: bool = True
    """True when Mainstem made the topic, so that DROP removes it."""
    continues: int | None = None
    """The generation whose topic and view this one took over, by a backfill; None: it had none."""
    backfill: Backfill | None = None
    """The last backfill, on its way or ended."""
    reaches: str | None = None
    """From where on backfills of a stream have taken the records of its inputs, by topic and
    partition as JSON; None: there was none, so it is where its flow began."""
    grown: Mapping[str, Offsets] = field(default_factory=dict)
    """Columns that a table has gained while it was there, and from where on in its topic records
    may have them: a view that is further has missed values."""

    @property
    def name(self) -> str:
        """The object's name."""
        return self.definition.name

    @property
    def flow_id(self) -> str:
        """Name of the flow in checkpoints, transactional ids and commit tokens."""
        return f"{self.definition.name}.{self.generation}"

    @property
    def served_generation(self) -> int:
        """The generation with which the topic was begun, and so the view."""
        return self.generation if self.continues is None else self.continues

    @property
    def newest_generation(self) -> int:
        """The last one that was given out: that of a backfill may never be used."""
        return max(self.generation, self.backfill.generation if self.backfill else 0)

    def to_json(self) -> bytes:
        """The record value in the catalog topic."""
        return _ENTRY.dump_json(self)

    @staticmethod
    def from_json(data: bytes) -> Entry:
        """The entry in a record value of the catalog topic."""
        return _ENTRY.validate_json(data)


_ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)

CatalogRecord = Entry | FunctionDefinition
"""What a record of the catalog topic holds."""

_RECORD: TypeAdapter[CatalogRecord] = TypeAdapter(CatalogRecord)


def record_to_json(record: CatalogRecord) -> bytes:
    """The record value in the catalog topic."""
    return _RECORD.dump_json(record)


def record_from_json(data: bytes) -> CatalogRecord:
    """What a record value of the catalog topic holds."""
    return _RECORD.validate_json(data)


def record_key(record: CatalogRecord) -> str:
    """Key in the catalog topic; a stream and a function may have the same name."""
    name = record.name.lower()
    return f"{name}()" if isinstance(record, FunctionDefinition) else name


@dataclass(frozen=True, slots=True)
class Catalog:
    """All objects at one revision. Names are looked up without regard to case."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    """By lower-case name."""
    revision: int = 0
    functions: Mapping[str, FunctionDefinition] = field(default_factory=dict)
    """Python functions by lower-case name."""

    def get(self, name: str) -> Entry | None:
        """The entry of that name."""
        return self.entries.get(name.lower())

    def of_kind(self, kind: Kind) -> list[Entry]:
        """All entries of a kind, by name."""
        return [e for _, e in sorted(self.entries.items()) if e.definition.kind is kind]

    def flows(self) -> list[Entry]:
        """All entries that a flow produces, by name."""
        return [e for _, e in sorted(self.entries.items()) if e.definition.derived]

    def dependents(self, name: str) -> list[Entry]:
        """Entries that read `name` directly, by name."""
        wanted = name.lower()
        return [
            e
            for e in self.flows()
            if e.definition.query is not None
            and any(i.lower() == wanted for i in e.definition.query.inputs)
        ]

    def users(self, function: str) -> list[Entry]:
        """Entries whose query calls a Python function, by name."""
        wanted = function.lower()
        return [
            e
            for e in self.flows()
            if e.definition.query is not None
            and any(f.name.lower() == wanted for f in e.definition.query.functions)
        ]

    def with_entry(self, entry: Entry) -> Catalog:
        """A copy in which `entry` replaces what had its name; the revision stays."""
        return replace(self, entries={**self.entries, entry.name.lower(): entry})
