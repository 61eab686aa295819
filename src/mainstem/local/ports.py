"""Loopback ports of the stack: free ones, remembered, so that a restart keeps its addresses.

Ports are taken below the range from which systems give ports to outgoing connections: otherwise
a client's connection could sit on the broker's port while the broker restarts.
"""

from __future__ import annotations

import json
import random
import socket
from pathlib import Path

from mainstem.errors import MainstemError
from mainstem.local.private_files import write_private

LOOPBACK = "127.0.0.1"
RANGE = range(20_000, 32_000)
_TRIES = 200


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server could listen on the port now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as server:
        # as servers do: a port whose old connections are still closing is free
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, port))
            server.listen(1)
        except OSError:
            return False
    return True


class Ports:
    """The ports of one project, kept in a file of its state folder."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = self._read()
        self._given: set[int] = set()

    def take(self, what: str, configured: int = 0, host: str = LOOPBACK) -> int:
        """The port for `what`: the configured one, else the one of last time, else a free one.

        Raises PORT_TAKEN when the configured port is in use.
        """
        if configured:
            if configured in self._given or not is_free(configured, host):
                raise MainstemError("PORT_TAKEN", port=configured, what=what)
            port = configured
        else:
            last = self._known.get(what, 0)
            usable = last and last not in self._given and is_free(last, host)
            port = last if usable else self._choose(what, host)
        self._given.add(port)
        self._known[what] = port
        write_private(self._file, json.dumps(self._known))
        return port

    def _choose(self, what: str, host: str) -> int:
        avoid = self._given | set(self._known.values())
        for _ in range(_TRIES):
            port = random.choice(RANGE)
            if port not in avoid and is_free(port, host):
                return port
        raise MainstemError("PORT_TAKEN", port=f"{RANGE.start} to {RANGE.stop}", what=what)

    def _read(self) -> dict[str, int]:
        try:
            known = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return {k: v for k, v in known.items() if isinstance(v, int)}
