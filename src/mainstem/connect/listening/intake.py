"""What has been received and is not in the log yet: bounded, so that senders have to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

MOST_BYTES = 8 * 1024 * 1024
MOST_LINES = 50_000


class Line(NamedTuple):
    """One message as it came."""

    data: bytes
    peer: str
    received: float
    """Seconds since the epoch."""
    problem: str | None = None
    """Why it cannot be a message, if that is known already."""


def peer_of(address: tuple[object, ...]) -> str:
    """Host and port of a sender, as one text."""
    host, port = str(address[0]), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Intake:
    """Lines in the order in which they came. For the thread of the event loop alone.

    Whoever adds lines looks at `full` afterwards, and stops reading until `on_room` is called.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_lines: int = MOST_LINES) -> None:
        self._most_bytes = most_bytes
        self._most_lines = most_lines
        self._lines: list[Line] = []
        self._bytes = 0
        self._some = asyncio.Event()
        self.on_room: list[Callable[[], None]] = []
        """Each is called once, when there is room again."""

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def full(self) -> bool:
        """True when no more should be read."""
        return self._bytes >= self._most_bytes or len(self._lines) >= self._most_lines

    def add(self, line: Line) -> None:
        """Take in a line, full or not."""
        self._lines.append(line)
        self._bytes += len(line.data)
        self._some.set()

    async def some(self) -> None:
        """Wait until there is something to take, or `wake` is called."""
        await self._some.wait()
        self._some.clear()

    def wake(self) -> None:
        """Let `some` return, though nothing has come."""
        self._some.set()

    def take(self, most: int) -> list[Line]:
        """The oldest lines."""
        taken, self._lines = self._lines[:most], self._lines[most:]
        self._bytes -= sum(len(line.data) for line in taken)
        if self._lines:
            self._some.set()
        if not self.full:
            waiting, self.on_room = self.on_room, []
            for call in waiting:
                call()
        return taken
