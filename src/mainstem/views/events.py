"""What a subscription tells: events, and pieces of several that are put into bytes once for all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mainstem.vocabulary import Offsets

CHANGES = frozenset(("append", "upsert", "delete"))
_PIECE_BYTES = 64 * 1024
"""Much more than a piece is never on its way to a client that does not read."""

Places = Mapping[str, Offsets]
"""By topic and partition, the next offset to read. Never changed once it was handed on."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name, its data as JSON text, and the token behind it."""

    name: str
    data: str
    id: str
    key: str | None = None
    """Of a change: its key as JSON text."""

    def sse(self) -> str:
        """As a server-sent event."""
        # the data is JSON text of our own making: there are no line ends in it
        return f"event: {self.name}\nid: {self.id}\ndata: {self.data}\n\n"

    def message(self) -> str:
        """As one JSON object."""
        return f'{{"event":"{self.name}","id":"{self.id}","data":{self.data}}}'


class Piece:
    """Events that go out together, and where a client is that has them."""

    def __init__(
        self, events: Sequence[Event], end: Places | None, before: int = 0, at: float = 0.0
    ) -> None:
        self.events = tuple(events)
        self.end = end
        self.at = at
        """When it was told; see `Token.at`."""
        self.before = before
        """How many changes its query had before it, since it runs."""
        self.changes = sum(event.name in CHANGES for event in self.events)
        self.size = sum(len(event.data) + len(event.id) for event in self.events)

    @cached_property
    def sse(self) -> bytes:
        """As server-sent events."""
        return "".join(event.sse() for event in self.events).encode()

    @cached_property
    def messages(self) -> tuple[str, ...]:
        """As JSON objects, one for each event."""
        return tuple(event.message() for event in self.events)

    @cached_property
    def lines(self) -> bytes:
        """As lines of JSON."""
        return "".join(f"{message}\n" for message in self.messages).encode()

    def first(self, changes: int) -> Piece:
        """Up to the change of that number, counted from 1."""
        left, taken = changes, []
        for event in self.events:
            taken.append(event)
            left -= event.name in CHANGES
            if not left:
                break
        return Piece(taken, None)


def cut(
    told: Iterable[tuple[Event, Places | None]], before: int = 0, at: float = 0.0
) -> Iterator[Piece]:
    """Pieces of a size that may wait for a client; each event comes with where it leads."""
    events: list[Event] = []
    size = 0
    end: Places | None = None
    for event, place in told:
        events.append(event)
        end = place
        size += len(event.data) + len(event.id)
        if size >= _PIECE_BYTES:
            yield (piece := Piece(events, end, before, at))
            before += piece.changes
            events, size = [], 0
    if events:
        yield Piece(events, end, before, at)


def latest(pieces: Sequence[Piece], most: int) -> Piece:
    """What a client that wants a sample gets of the changes in several pieces.

    Of a table, the last change of each key: what it knows in the end is the same. Of a stream the
    last `most`.
    """
    events = [event for piece in pieces for event in piece.events if event.name in CHANGES]
    if events and events[0].name == "append":
        kept = events[-most:]
    else:
        by_key: dict[str | None, Event] = {}
        for event in events:
            by_key.pop(event.key, None)  # what comes last stays last
            by_key[event.key] = event
        kept = list(by_key.values())
    return Piece(kept, pieces[-1].end)
