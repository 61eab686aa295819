"""TCP connections of syslog senders: read while there is room, else the senders wait."""

from __future__ import annotations

import asyncio
import time
from typing import cast

from mainstem.connect.listening.framing import Frame, Framer
from mainstem.connect.listening.intake import Intake, Line, peer_of

MOST_CONNECTIONS = 1000


class Connections:
    """The server and its connections. For the thread of the event loop."""

    def __init__(self, intake: Intake, longest: int, most: int = MOST_CONNECTIONS) -> None:
        self._intake = intake
        self._longest = longest
        self._most = most
        self._open: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self.refused = 0
        """Connections beyond the most that there may be."""

    def __len__(self) -> int:
        return len(self._open)

    async def listen(self, host: str, port: int) -> None:
        """Begin; OSError when the port cannot be had."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, host, port)

    async def close(self) -> None:
        """Accept no more, and end those that are there."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._open):
            connection.transport.close()
        while self._open:  # each hands over what it has, when it is lost
            await asyncio.sleep(0)

    def _connection(self) -> _Connection:
        return _Connection(self, Framer(self._longest))

    def welcome(self, connection: _Connection) -> bool:
        """False when there are too many already."""
        if len(self._open) >= self._most:
            self.refused += 1
            return False
        self._open.add(connection)
        return True

    def take(self, connection: _Connection, frames: list[Frame]) -> None:
        """Messages of a connection; it stops reading when there is no room for more."""
        now = time.time()
        for frame in frames:
            self._intake.add(Line(frame.data, connection.peer, now, frame.problem))
        if self._intake.full and connection.reading:
            connection.pause()
            self._intake.on_room.append(connection.go_on)

    def gone(self, connection: _Connection) -> None:
        """A connection has ended."""
        self._open.discard(connection)


class _Connection(asyncio.Protocol):
    def __init__(self, home: Connections, framer: Framer) -> None:
        self._home = home
        self._framer = framer
        self._welcome = False
        self.reading = True
        self.peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.peer = peer_of(transport.get_extra_info("peername") or ("?", 0))
        self._welcome = self._home.welcome(self)
        if not self._welcome:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._framer.lost is None:
            self._home.take(self, self._framer.feed(data))
        if self._framer.lost is not None:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._welcome:
            self.reading = False
            self._home.take(self, self._framer.finish(broken=exc is not None))
            self._home.gone(self)

    def pause(self) -> None:
        self.reading = False
        self.transport.pause_reading()

    def go_on(self) -> None:
        if not self.transport.is_closing():
            self.reading = True
            self.transport.resume_reading()
