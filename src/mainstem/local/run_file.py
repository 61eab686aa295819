"""What a running stack says of itself: locks, and the run file that other commands read.

lock       held by the supervisor: two stacks of one folder refuse each other
children   held by every server, too: after a crash of the supervisor the next one waits here
           until the last of them is gone
run.json   where the stack is to be found (mode 0600)
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from pydantic import BaseModel, ConfigDict, ValidationError

from mainstem.config import Project
from mainstem.errors import MainstemError
from mainstem.local.private_files import write_private

_LEFTOVERS_TIMEOUT = 60.0


class PostgresInfo(BaseModel):
    """How to reach the served views with psql: the password is in `passfile`."""

    model_config = ConfigDict(frozen=True)

    host: str
    port: int
    database: str
    reader: str
    passfile: str


class RunInfo(BaseModel):
    """The run file."""

    model_config = ConfigDict(frozen=True)

    pid: int
    bootstrap_servers: str
    gateway_url: str
    postgres: PostgresInfo | None
    """None where PostgreSQL is not the stack's own."""
    started_at: str
    connect_url: str | None = None
    """Where the stack's own Connect worker is, while a source needs one; None: not its own."""


def running(project: Project) -> RunInfo | None:
    """The project's stack, if it runs now; a file that a crash left behind does not count."""
    try:
        with (project.state_folder / "lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    except OSError:
        return None
    else:
        return None
    try:
        return RunInfo.model_validate_json(run_path(project).read_text("utf-8"))
    except (OSError, ValidationError):
        return None  # it starts or stops at this moment


def run_path(project: Project) -> Path:
    """Where the run file is."""
    return project.state_folder / "run.json"


class RunLock:
    """The two locks of a stack, from `take` until `release`."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._supervisor: IO[str] | None = None
        self._children: IO[str] | None = None

    def take(self, waiting: Callable[[], None]) -> int:
        """Take both locks; the descriptor of the second is for the servers to inherit.

        `waiting` is called when servers of an earlier run are still ending. Raises
        ALREADY_RUNNING when another supervisor is there.
        """
        folder = self._project.state_folder
        supervisor = (folder / "lock").open("a+")
        try:
            fcntl.flock(supervisor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            supervisor.seek(0)
            pid = supervisor.read().strip() or "unknown"
            supervisor.close()
            raise MainstemError(
                "ALREADY_RUNNING", folder=str(self._project.folder), pid=pid
            ) from None
        self._supervisor = supervisor
        supervisor.truncate(0)
        supervisor.write(f"{os.getpid()}\n")
        supervisor.flush()
        self._children = (folder / "children").open("a+")
        self._wait_for_leftovers(self._children, waiting)
        return self._children.fileno()

    def _wait_for_leftovers(self, file: IO[str], waiting: Callable[[], None]) -> None:
        deadline = time.monotonic() + _LEFTOVERS_TIMEOUT
        told = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not told:
                    told = True
                    waiting()
                if time.monotonic() > deadline:
                    raise MainstemError(
                        "PROCESS_FAILED",
                        process="the stack",
                        problem="servers of an earlier run have not ended",
                        log=str(self._project.state_folder / "logs"),
                    ) from None
                time.sleep(0.1)
            else:
                return

    def publish(self, info: RunInfo) -> None:
        """Write the run file."""
        write_private(run_path(self._project), info.model_dump_json(indent=2) + "\n")

    def release(self) -> None:
        """Remove the run file and let both locks go; harmless when nothing was taken."""
        if self._supervisor is None:
            return
        run_path(self._project).unlink(missing_ok=True)
        for file in (self._children, self._supervisor):
            if file is not None:
                file.close()
        self._supervisor = self._children = None
