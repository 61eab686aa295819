"""Datagrams from a UDP socket, many at a time, and how many the system had no room for."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from pathlib import Path

from mainstem.connect.listening.framing import without_end
from mainstem.connect.listening.intake import Intake, Line, peer_of

_TABLES = (Path("/proc/net/udp"), Path("/proc/net/udp6"))
_INODE = 9
_LARGEST = 65_535
_AT_ONCE = 500
"""So many are read before others have their turn."""
_BUFFER_BYTES = 8 * 1024 * 1024
"""Asked for; the system gives no more than net.core.rmem_max."""


class Datagrams:
    """One socket. For the thread of the event loop; `dropped` may be asked from any."""

    def __init__(self, host: str, port: int, intake: Intake) -> None:
        """Binds the socket: OSError when that cannot be done."""
        self._intake = intake
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
            self._socket.bind((host, port))
        except BaseException:
            self._socket.close()
            raise
        self._inode = os.fstat(self._socket.fileno()).st_ino

    def begin(self) -> None:
        """Read what comes, while there is room for it."""
        asyncio.get_running_loop().add_reader(self._socket, self._readable)

    def close(self) -> None:
        """Take what has arrived, and end."""
        asyncio.get_running_loop().remove_reader(self._socket)
        while self._read():
            pass
        self._socket.close()

    def dropped(self) -> int:
        """How many the system has thrown away since the socket is there; 0 where it cannot tell."""
        for table in _TABLES:
            try:
                lines = table.read_text(encoding="ascii").splitlines()[1:]
            except OSError:
                continue
            for line in lines:
                words = line.split()
                if words[_INODE] == str(self._inode):
                    return int(words[-1])
        return 0

    def _readable(self) -> None:
        self._read()
        if self._intake.full:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._intake.on_room.append(self._go_on)

    def _go_on(self) -> None:
        if self._socket.fileno() >= 0:
            self.begin()

    def _read(self) -> bool:
        """True when there may be more."""
        now = time.time()
        for _ in range(_AT_ONCE):
            try:
                data, peer = self._socket.recvfrom(_LARGEST)
            except BlockingIOError:
                return False
            if line := without_end(data):
                self._intake.add(Line(line, peer_of(peer), now))
        return True
