"""One stack for this folder: `mainstem init`, then `mainstem up` as a process of its own."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from mainstem.config import load_project
from mainstem.local.postgres import remove_data
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import read_range
from mainstem.log.producer import Outgoing, Producer
from mainstem.testing.waiting import eventually
from mainstem.vocabulary import Record

PROGRAM = Path(sys.executable).with_name("mainstem")
ALL_IS_UP = "Ctrl-C ends everything."
START_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def jsonl(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]

    def ok(self) -> Ran:
        """The same, once it is sure that the command went well."""
        assert self.code == 0, self
        return self

    def failed(self, code: str, exit_code: int = 1) -> Ran:
        """The same, once it is sure that it failed with this error, and said what to do."""
        assert self.code == exit_code, self
        lines = self.err.splitlines()
        assert any(f"{code}: " in line for line in lines), self.err
        assert any(line.startswith("hint: ") and len(line) > 10 for line in lines), self.err
        assert "Traceback" not in self.err
        return self


def _die_with_the_tests() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def start(*arguments: object, folder: Path, **options: Any) -> subprocess.Popen[str]:
    """The command as a process with pipes, in a group of its own."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [str(PROGRAM), *map(str, arguments)],
        cwd=folder,
        text=True,
        start_new_session=True,
        preexec_fn=_die_with_the_tests,  # noqa: PLW1509 - one system call
        **{**pipes, **options},
    )


def run(*arguments: object, folder: Path, timeout: float = 240.0, **options: Any) -> Ran:
    """The command, to its end."""
    done = subprocess.run(
        [str(PROGRAM), *map(str, arguments)],
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=timeout,
        check=False,
        **({} if "input" in options else {"stdin": subprocess.DEVNULL}),
        **options,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def listening(port: int) -> bool:
    """True when somebody accepts connections there."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Up:
    """A run of `mainstem up` and what it prints."""

    def __init__(self, folder: Path, output: Path, **environment: str) -> None:
        self.folder = folder
        self.state = folder / ".mainstem"
        self._output = output
        with output.open("w") as file:
            self.process = start(
                "up",
                folder=folder,
                stdout=file,
                stderr=file,
                env={**os.environ, **environment},
            )

    @property
    def text(self) -> str:
        """All that it has printed."""
        return self._output.read_text()

    def wait_for(self, text: str, seconds: float = START_SECONDS) -> None:
        """Wait until it has printed this."""
        deadline = time.monotonic() + seconds
        while text not in self.text:
            assert self.process.poll() is None, f"it has ended: {self.text}"
            assert time.monotonic() < deadline, f"{text!r} did not come: {self.text}"
            time.sleep(0.05)

    def children(self) -> list[psutil.Process]:
        """All processes of the stack."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def server(self, part: str) -> psutil.Process:
        """The server of a part, not the leash that it is on."""
        mark = "kafka.Kafka" if part == "broker" else f"mainstem.{part}"
        for process in self.children():
            with contextlib.suppress(psutil.NoSuchProcess):
                line = process.cmdline()
                if "mainstem.local.leash" in line:
                    continue
                if mark in line or (part == "postgres" and line[0].endswith("/postgres")):
                    return process
        raise AssertionError(f"{part} does not run")

    def end(self, how: signal.Signals = signal.SIGINT) -> int:
        """End it, and see that nothing of it is left; its exit code."""
        everybody = self.children()
        ports = self.ports()
        self.process.send_signal(how)
        code = self.process.wait(180)
        self.check_gone(everybody, ports)
        return code

    def ports(self) -> list[int]:
        """The ports of its servers."""
        file = self.state / "ports.json"
        return list(json.loads(file.read_text()).values()) if file.exists() else []

    def check_gone(self, everybody: Sequence[psutil.Process], ports: Sequence[int]) -> None:
        """No process, no port, no lock and no run file."""
        eventually(lambda: not [p for p in everybody if p.is_running()], what="processes end")
        assert not [port for port in ports if listening(port)]
        for name in ("lock", "children"):
            # a process that was being started when `everybody` was asked for ends with the others
            eventually(lambda name=name: not self._held(name), what=f"nobody holds {name}")

    def _held(self, name: str) -> bool:
        """True while some process holds a lock of the stack."""
        if not (self.state / name).exists():
            return False
        with (self.state / name).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


class Shop:
    """The shared stack with the project of `mainstem init`, and the ways in."""

    def __init__(self, folder: Path, up: Up) -> None:
        self.folder = folder
        self.up = up
        self.info: dict[str, Any] = json.loads((up.state / "run.json").read_text())
        self.url: str = self.info["gateway_url"]
        self.http = httpx2.Client(base_url=self.url, timeout=180, trust_env=False)
        self.connection = Connection(self.info["bootstrap_servers"])
        self.admin = Admin(self.connection)

    def close(self) -> None:
        self.admin.close()
        self.http.close()

    # -- the command line

    def cli(self, *arguments: object, **options: Any) -> Ran:
        """A command in the project's folder."""
        return run(*arguments, folder=self.folder, **options)

    @contextmanager
    def running(self, *arguments: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
        """A command that runs beside the test, until that ends it or waits too long for a line."""
        process = start(*arguments, folder=self.folder, **options)
        patience = threading.Timer(240, process.kill)
        patience.start()
        try:
            yield process
        finally:
            patience.cancel()
            process.kill()
            process.communicate()

    def sql(self, text: str, *options: object) -> Ran:
        """`mainstem sql -e text`."""
        return self.cli("sql", "-e", text, *options)

    # -- REST, for what is not the point of a test

    def do(self, *statements: str) -> dict[str, Any]:
        """Run statements that must go well; the answer to the last one."""
        answer: dict[str, Any] = {}
        for statement in statements:
            response = self.http.post("/v1/sql", json={"sql": statement})
            assert response.status_code == 200, response.text
            answer = response.json()
        return answer

    def rows(self, query: str) -> list[list[Any]]:
        """The rows of a query."""
        return list(self.do(query)["rows"])

    def wait_for_rows(self, query: str, expected: list[list[Any]], seconds: float = 180) -> None:
        """Wait until a query gives just these rows, in any order."""

        def there() -> bool:
            response = self.http.post("/v1/sql", json={"sql": query})
            self.last = response.json().get("rows", response.text)
            return isinstance(self.last, list) and sorted(self.last, key=str) == expected

        expected = sorted(expected, key=str)
        try:
            eventually(there, seconds)
        except AssertionError:
            raise AssertionError(f"{query}: {self.last}, not {expected}") from None

    def write(self, name: str, *values: dict[str, Any]) -> None:
        """Write records to a stream or table."""
        body = {"records": [{"value": value} for value in values]}
        response = self.http.post(f"/v1/streams/{name}/records", json=body)
        assert response.status_code == 200, response.text

    def flow(self, name: str) -> dict[str, Any]:
        """The status of a flow."""
        flows = self.http.get("/v1/status").json()["flows"]
        return next((f for f in flows if f["flow"] == name), {"state": "absent"})

    def wait_for_flow(self, name: str, state: str = "running", seconds: float = 180) -> None:
        """Wait until a flow is in this state."""
        eventually(lambda: self.flow(name)["state"] == state, seconds, what=f"{name} {state}")

    def wait_for_subscriptions(self, number: int) -> None:
        """Wait until so many push queries are open."""
        eventually(lambda: self.http.get("/v1/status").json()["subscriptions"] == number)

    def refused(self, code: str, method: str, path: str, **request: Any) -> dict[str, Any]:
        """The problem document of a request that must fail with this code."""
        response = self.http.request(method, path, **request)
        assert response.headers["content-type"] == "application/problem+json", response.text
        problem: dict[str, Any] = response.json()
        assert problem["title"] == code, problem
        assert problem["status"] == response.status_code
        assert problem["detail"] and problem["hint"]
        return problem

    # -- the log

    def produce(self, topic: str, *records: Outgoing) -> None:
        """Write to a topic past the gateway, as any Kafka client may."""
        producer = Producer(self.connection)
        try:
            producer.send(topic, records)
        finally:
            producer.close()

    def records(self, topic: str) -> list[Record]:
        """All that readers of committed records find in a topic."""
        begin, end = self.admin.begin_offsets(topic), self.admin.end_offsets(topic)
        return [r for batch in read_range(self.connection, topic, begin, end) for r in batch]

    def values(self, topic: str) -> list[Any]:
        """The values of a topic's records, read as JSON."""
        return [None if r.value is None else json.loads(r.value) for r in self.records(topic)]

    # -- files

    @contextmanager
    def edited(self, path: str, change: Callable[[str], str]) -> Iterator[None]:
        """The project with a changed file; after the test it is as it was, and applied."""
        file = self.folder / path
        before = file.read_text() if file.exists() else None
        file.write_text(change(before or ""))
        try:
            yield
        finally:
            if before is None:
                file.unlink()
            else:
                file.write_text(before)
            self.cli("apply", "--yes").ok()


@pytest.fixture(scope="package")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    base = tmp_path_factory.mktemp("stack")
    made = run("init", "shop", folder=base).ok()
    assert "mainstem up" in made.err
    folder = base / "shop"
    up = Up(folder, base / "up.txt")
    try:
        up.wait_for(ALL_IS_UP)
        shop = Shop(folder, up)
        yield shop
        shop.close()
        assert up.end() == 0, up.text
        assert not (up.state / "run.json").exists()
    finally:
        up.process.kill()
        up.process.wait()
        remove_data(load_project(folder).state_folder)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project of the test's own, without definitions, not running."""
    run("init", "other", "--no-example", folder=tmp_path).ok()
    yield tmp_path / "other"
    remove_data(tmp_path / "other" / ".mainstem")


@pytest.fixture
def mainstem() -> Callable[..., Ran]:
    """Runs the command anywhere."""
    return run


@pytest.fixture
def launch(project: Path, tmp_path: Path) -> Iterator[Callable[..., Up]]:
    """Starts `mainstem up` in the test's own project; what still runs at the end is killed."""
    launched: list[Up] = []

    def start_up(**environment: str) -> Up:
        up = Up(project, tmp_path / f"up-{len(launched)}.txt", **environment)
        launched.append(up)
        return up

    yield start_up
    for up in launched:
        everybody, ports = up.children(), up.ports()
        up.process.kill()
        up.process.wait()
        up.check_gone(everybody, ports)
