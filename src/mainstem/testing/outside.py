"""Servers of somebody else that sinks write to, for tests: they die, and come back as they were."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import httpx2

from mainstem.local.jars import provide
from mainstem.local.jars_lock import parse_lock
from mainstem.local.ports import LOOPBACK
from mainstem.local.process import Child, Command
from mainstem.testing.waiting import eventually

_OPENSEARCH_JARS = Path(__file__).with_name("opensearch.lock")
_OPENSEARCH_PORTS = range(9211, 9299)
"""Its runner takes no others."""
_START_SECONDS = 180.0


class OutsideServer:
    """A server on loopback with its data in a folder."""

    def __init__(self, command: Command, url: str, answers: Callable[[str], bool]) -> None:
        self._command = command
        self._answers = answers
        self._child: Child | None = None
        self.url = url

    def start(self) -> OutsideServer:
        """Starts it, with the data that it had; returns when it answers."""
        child = self._child = Child.start(self._command)

        def there() -> bool:
            assert child.alive, child.last_words()
            return self._answers(self.url)

        eventually(there, _START_SECONDS, what=f"{self._command.name} answers")
        return self

    def kill(self) -> None:
        """It dies as if its machine did."""
        assert self._child is not None
        os.kill(self._child.pid, signal.SIGKILL)
        self._child.wait(_START_SECONDS)

    def stop(self) -> None:
        """Ends it; the data stays."""
        if self._child is not None:
            self._child.stop()


def opensearch(folder: Path, java: str) -> OutsideServer:
    """An OpenSearch of one node; `java` is a newer one than the stack needs.

    Its jars, 70 MB of them, are fetched when they are not in the cache.
    """
    jars = provide(parse_lock(_OPENSEARCH_JARS.read_text())["opensearch"], "OpenSearch jars")
    port = next(port for port in _OPENSEARCH_PORTS if not _listens(port))
    argv = [
        *(java, "-Xmx400m", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, jars))),
        *("org.codelibs.opensearch.runner.OpenSearchRunner", "-basePath", str(folder)),
        *("-baseHttpPort", str(port - 1), "-numOfNode", "1", "-clusterName", folder.name),
        # without the analysers of languages that this small Java does not know
        *("-moduleTypes", "org.opensearch.transport.Netty4ModulePlugin"),
    ]
    command = Command("opensearch", argv, log=folder / "log", folder=folder)
    return OutsideServer(command, f"http://{LOOPBACK}:{port}", _answers_http)


def redis(folder: Path, program: str) -> OutsideServer:
    """A Redis that brings each write to the disk before it answers."""
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
    argv = [
        *(program, "--port", str(port), "--bind", LOOPBACK, "--dir", str(folder)),
        *("--save", "", "--appendonly", "yes", "--appendfsync", "always"),
    ]
    command = Command("redis", argv, log=folder / "log", folder=folder)
    return OutsideServer(command, f"redis://{LOOPBACK}:{port}/0", lambda _: _listens(port))


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex((LOOPBACK, port)) == 0


def _answers_http(url: str) -> bool:
    try:
        return httpx2.get(url, timeout=5, trust_env=False).is_success
    except httpx2.TransportError:
        return False
