"""Disasters for a running stack: sudden deaths, at a named step or at any moment.

    with faulty_stack(project) as faults:
        faults.arm("after_commit", "orders_by_day.1")
        death = faults.await_crash("engine")
        faults.await_ready(death)

What a process was doing when it died is read from the log of its batches (`BatchLog`), and when
work went on from the records that came out of it (`Arrivals`).
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from mainstem.config import Project
from mainstem.crash import VARIABLE
from mainstem.local import supervise
from mainstem.local.stack import PartName, Stack
from mainstem.local.supervise import Event
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import Reader
from mainstem.testing.waiting import eventually

_WORKERS = "mainstem.engine.daemon"
_CRASH_SECONDS = 300.0
_READY_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Death:
    """A process of the stack that was killed, and when (seconds since the epoch)."""

    part: PartName
    pid: int | None
    at: float


@contextmanager
def faulty_stack(project: Project) -> Iterator[Faults]:
    """A running stack whose processes can be made to die.

    Restarts come at once: the growing pauses of the supervisor are for a server that dies of
    itself again and again, and would only make tests slow.
    """
    armed = project.folder / "armed"
    pause = supervise.LONGEST_PAUSE
    supervise.LONGEST_PAUSE = supervise.FIRST_PAUSE
    faults = Faults(armed)
    try:
        with (
            _environment({VARIABLE: f"@{armed}"}),
            Stack(project, listener=faults.note) as stack,
        ):
            faults.stack = stack
            yield faults
    finally:
        supervise.LONGEST_PAUSE = pause


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class Faults:
    """Kills processes of a stack and waits until they are back; `faulty_stack` makes one."""

    stack: Stack

    def __init__(self, armed: Path) -> None:
        self._armed = armed
        self._events: list[tuple[float, Event]] = []

    def note(self, event: Event) -> None:
        """Listener of the stack."""
        self._events.append((time.time(), event))

    def arm(self, point: str, flow: str, batch: int | str = "*") -> None:
        """The next process that passes this crash point dies there."""
        fresh = self._armed.with_suffix(".new")
        fresh.write_text(f"{point}:{flow}:{batch}")
        fresh.replace(self._armed)

    def await_crash(self, part: PartName) -> Death:
        """Waits until the armed point was passed."""
        armed = self._armed
        wanted = armed.read_text() if armed.exists() else ""
        alive = time.time()

        def passed() -> bool:
            nonlocal alive
            looked = time.time()
            if armed.exists():
                alive = looked
                return False
            return True

        eventually(passed, _CRASH_SECONDS, every=0.02, what=f"crash {wanted}")
        # by the time that it is noticed here, the supervisor may have begun to start it again
        return Death(part, None, alive)

    def kill(self, part: PartName) -> Death:
        """Kills a part of the stack, now."""
        pid = self.stack.pid(part)
        assert pid is not None, f"{part} does not run"
        os.kill(pid, signal.SIGKILL)
        return Death(part, pid, time.time())

    def workers(self) -> list[int]:
        """Process ids of the Python workers in which the engine's tasks run."""
        engine = self.stack.pid("engine")
        if engine is None:
            return []
        family = psutil.Process(engine).children(recursive=True)
        ours = {p.pid for p in family if _runs_workers(p)}
        return [p.pid for p in family if p.pid in ours and p.ppid() in ours]

    def restarting(self, death: Death) -> float | None:
        """When the supervisor began to start the part again: nothing of the old one lives then."""
        return self._seen(death, "restarting")

    def await_restarting(self, death: Death) -> float:
        """As `restarting`, but waits for it."""
        what = f"restart of {death.part}"
        return eventually(lambda: self.restarting(death), _READY_SECONDS, what=what) or 0.0

    def await_ready(self, death: Death) -> float:
        """Waits until the part is ready again; when that was."""
        what = f"{death.part} is ready again"
        return eventually(lambda: self._seen(death, "ready"), _READY_SECONDS, what=what) or 0.0

    def _seen(self, death: Death, kind: str) -> float | None:
        return next(
            (
                at
                for at, event in list(self._events)
                if at > death.at and (event.part, event.kind) == (death.part, kind)
            ),
            None,
        )


class BatchLog:
    """The batches of a flow, as its checkpoint tells: begun, finished, and how large."""

    def __init__(self, project: Project, flow: str) -> None:
        self._folder = project.state_folder / "checkpoints" / flow

    def begun(self) -> int:
        """The last batch whose range is fixed; -1 when there is none."""
        return _last_number(self._folder / "offsets")

    def finished(self) -> int:
        """The last batch that is done; -1 when there is none."""
        return _last_number(self._folder / "commits")

    def size(self, batch: int) -> int:
        """Input records, counted by offsets, of a batch."""
        before = self._ends(batch - 1) if batch > 0 else {}
        return sum(end - before.get(place, 0) for place, end in self._ends(batch).items())

    def _ends(self, batch: int) -> dict[tuple[str, str], int]:
        # a version, a line for the batch, then a line for each source
        _, _, *sources = (self._folder / "offsets" / str(batch)).read_text().splitlines()
        return {
            (topic, partition): end
            for source in sources
            for topic, ends in json.loads(source).items()
            for partition, end in ends.items()
        }


class Arrivals:
    """Watches a topic, as a reader of committed records does, for signs of life."""

    def __init__(self, connection: Connection, topic: str) -> None:
        admin = Admin(connection)
        ends = admin.end_offsets(topic)
        admin.close()
        self._reader = Reader(connection, {topic: ends}, committed=True)
        self._seen: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="arrivals", daemon=True)
        self._thread.start()

    def first_made_after(self, moment: float) -> float | None:
        """When the first record that was made after `moment` became visible; None: not yet."""
        return next((arrived for made, arrived in list(self._seen) if made >= moment), None)

    def close(self) -> None:
        """Ends the reader."""
        self._stop.set()
        self._thread.join()
        self._reader.close()

    def _follow(self) -> None:
        while not self._stop.is_set():
            records = self._reader.poll(timeout=0.2)
            if records:
                newest = max(record.timestamp for record in records) / 1000
                self._seen.append((newest, time.time()))


def _last_number(folder: Path) -> int:
    try:
        return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=-1)
    except FileNotFoundError:
        return -1


def _runs_workers(process: psutil.Process) -> bool:
    try:
        return _WORKERS in process.cmdline()
    except psutil.Error:
        return False
