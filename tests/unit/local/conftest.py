"""A small Maven repository on loopback, and conditions that tests wait for."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from tests.unit.serving import Quiet, serving

from mainstem.local.jars_lock import Jar
from mainstem.testing import waiting


@dataclass
class Repository:
    """Serves `files` by path; notes each request; can be told to misbehave."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    cut_after: dict[str, int] = field(default_factory=dict)
    """Bytes after which the next answer for a path breaks off; used once."""
    statuses: dict[str, list[int]] = field(default_factory=dict)
    """Statuses to answer a path with first."""
    ignore_range: bool = False
    gate: threading.Barrier | None = None
    """When set, every answer waits here for as many others."""

    def add(self, coordinate: str, content: bytes) -> Jar:
        jar = Jar(coordinate, hashlib.sha256(content).hexdigest(), len(content))
        self.files[jar.path] = content
        return jar


@pytest.fixture
def repository() -> Iterator[Repository]:
    repository = Repository()

    class Handler(Quiet):
        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            wanted = self.headers.get("Range")
            repository.requests.append((path, wanted))
            if repository.gate is not None:
                repository.gate.wait(60)
            if queue := repository.statuses.get(path):
                self.send_error(queue.pop(0))
                return
            if path not in repository.files:
                self.send_error(404)
                return
            content = repository.files[path]
            start = 0
            if wanted and not repository.ignore_range:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                self.send_response(206)
                self.send_header(
                    "Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"
                )
            else:
                self.send_response(200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            end = repository.cut_after.pop(path, len(content))
            self.wfile.write(content[start:end])

    with serving(Handler) as url:
        repository.url = url
        yield repository


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], object]:
    """Wait until a condition holds."""
    return waiting.eventually
