"""What a source looks like from inside: the tables that it captures, and who can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mainstem.definitions.model import Format
from mainstem.vocabulary import Column


@dataclass(frozen=True, slots=True)
class Events:
    """How the stream is that a source brings whose records are events, and no changes of rows."""

    event_time: str | None = None
    """The column that has it; None: the time at which the record was written."""
    watermark: str | None = None
    partitions: int | None = None
    retention: str | None = None
    format: Format = Format.JSON


@dataclass(frozen=True, slots=True)
class Outbox:
    """The columns of a table whose rows are events: each goes to the topic that it names."""

    id: str
    kind: str
    """Which topic."""
    key: str
    type: str
    payload: str


@dataclass(frozen=True, slots=True)
class Captured:
    """One table of a source."""

    table: str
    """As the source names it: `public.orders`."""
    topic: str
    """Where its changes are written to."""
    columns: tuple[Column, ...]
    """In the table's order."""
    key: tuple[str, ...]
    """Its primary key; a table without one is refused."""
    whole: bool = False
    """True when a change tells the whole row that was before it, and not only its key."""
    joins: bool = False
    """True when it may be added to a source that runs: its rows are then read beside changes."""
    home: str = "public"
    """The schema or database that is left out of the names of objects."""
    events: Events | None = None
    """Set where no table is captured: then `table` is the name of the stream, `key` its key."""
    note: str | None = None
    """What the user should know of it before it is captured, in a sentence."""
    outbox: Outbox | None = None
    """Set for a table of events; it brings a sink to their topics in place of a table."""


class Capture(Protocol):
    """Looks into a system that changes are captured from."""

    def look(self, name: str, options: Mapping[str, Any]) -> tuple[Captured, ...]:
        """The tables that the source of that name captures, with what is needed for it checked.

        Called while a plan is made, in the gateway, from any thread. Options are those of the
        connector's description, with secrets filled in. Errors have no place: the caller knows it.
        CONNECTOR_UNREACHABLE means that the system does not answer, and nothing is known of it.
        """
        ...
