"""A gateway in a thread that speaks the API over HTTP, and a way to run commands against it."""

from __future__ import annotations

import functools
import io
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import typer.main
from tests.unit.serving import Quiet, serving

from mainstem.cli.main import main


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    document: Any
    status: int = 200
    kind: str = "application/json"


@dataclass
class Stream:
    """Server-sent events; `cut` ends the connection in the middle of a chunk, as a crash would."""

    events: list[tuple[str, Any, str]]
    cut: bool = False
    hold: threading.Event | None = None


Handler = Callable[[Request], Answer | Stream]


@dataclass
class Gateway:
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    _handlers: dict[tuple[str, str], Handler] = field(default_factory=dict)

    def on(self, method: str, path: str, handler: Handler) -> None:
        self._handlers[method, path] = handler

    def answer(self, method: str, path: str, *documents: Any) -> None:
        """Give the documents one after the other, and the last one from then on."""
        left = list(documents)
        self.on(method, path, lambda _: Answer(left.pop(0) if len(left) > 1 else left[0]))

    def refuse(self, method: str, path: str, code: str, status: int = 400, **more: Any) -> None:
        problem = {
            "type": f"urn:mainstem:error:{code}",
            "title": code,
            "status": status,
            "detail": "what happened",
            "hint": "what to do",
            **more,
        }
        self.on(method, path, lambda _: Answer(problem, status, "application/problem+json"))

    def sent(self, method: str, path: str) -> list[Request]:
        return [r for r in self.requests if (r.method, r.path) == (method, path)]

    def handle(self, request: Request) -> Answer | Stream:
        self.requests.append(request)
        handler = self._handlers.get((request.method, request.path))
        if handler is None:
            return Answer({"detail": "Not Found"}, 404)
        return handler(request)


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    double = Gateway()

    class Connection(Quiet):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            parts = urlsplit(self.path)
            size = int(self.headers.get("Content-Length") or 0)
            answer = double.handle(
                Request(
                    self.command,
                    parts.path,
                    {k: v[-1] for k, v in parse_qs(parts.query).items()},
                    {k.lower(): v for k, v in self.headers.items()},
                    self.rfile.read(size),
                )
            )
            if isinstance(answer, Stream):
                self._stream(answer)
                return
            body = json.dumps(answer.document).encode()
            if isinstance(answer.document, str):
                body = answer.document.encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = handle_one

        def _stream(self, answer: Stream) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for kind, data, position in answer.events:
                text = f"event: {kind}\nid: {position}\ndata: {json.dumps(data)}\n\n".encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
            self.wfile.flush()
            if answer.hold is not None:
                answer.hold.wait(60)
            if not answer.cut:
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection = True

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            # a client that has gone away is part of some tests
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(*_)

    with serving(Connection, Server) as url:
        double.url = url
        yield double


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture(autouse=True, scope="session")
def made_once() -> Iterator[None]:
    """Typer makes all commands anew for each run, which takes longer than most runs do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("MAINSTEM_URL", "MAINSTEM_PROJECT", "MAINSTEM_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project; the working folder is in it."""
    folder = tmp_path / "project"
    (folder / "pipeline").mkdir(parents=True)
    (folder / "mainstem.toml").write_text('name = "project"\n')
    (folder / "pipeline" / "a.sql").write_text("CREATE STREAM s (a INT);\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(
    gateway: Gateway, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run a command in this process against the gateway; what it printed and its exit code."""
    monkeypatch.setenv("MAINSTEM_URL", gateway.url)

    def run_command(*arguments: str, stdin: str | bytes = b"") -> Result:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        capfd.readouterr()
        code = main(arguments)
        sys.stdout.flush()
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return run_command


@pytest.fixture
def stream() -> type[Stream]:
    return Stream


@pytest.fixture
def answer() -> type[Answer]:
    return Answer


@pytest.fixture
def put_sleep(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[ModuleType, Callable[[float], None]], None]:
    """Another `sleep` for one module; all other threads of the process sleep on as they do."""

    def put(module: ModuleType, sleep: Callable[[float], None]) -> None:
        monkeypatch.setattr(module, "time", SimpleNamespace(**vars(time) | {"sleep": sleep}))

    return put
