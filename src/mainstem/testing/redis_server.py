"""A Redis for tests, if the machine has the program."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from types import TracebackType

from mainstem.testing.waiting import eventually

PROGRAM = shutil.which("redis-server")


class RedisServer:
    """A server of its own with a password; it keeps nothing."""

    def __init__(self, folder: Path, password: str) -> None:
        self._folder = folder
        self._password = password
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is; without the password."""
        return f"redis://127.0.0.1:{self.port}/0"

    def __enter__(self) -> RedisServer:
        assert PROGRAM is not None, "redis-server is not installed"
        place = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        command = [PROGRAM, *place, "--save", "", "--requirepass", self._password]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        eventually(self._answers, what="Redis answers")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(120)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as asked:
                asked.sendall(b"PING\r\n")
                return bool(asked.recv(1))
        except OSError:
            return False
