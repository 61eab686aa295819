"""A supervised child: a server on a leash, with its log file.

Every server of the stack is started through `mainstem.local.leash`, so that none outlives this
process. It runs in a session of its own: a Ctrl-C in the terminal reaches the supervisor alone,
which then stops the servers in order.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from mainstem.errors import MainstemError

LOG_LIMIT = 10_000_000
"""Size at which a log is put aside (to `.1`) at the next start."""
_KILL_MARGIN = 10.0
_STACK_FRAME = ("at ", "... ")


@dataclass(frozen=True)
class Command:
    """How to run a server."""

    name: str
    argv: Sequence[str]
    log: Path
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to this process's own environment."""
    stop: str = "TERM"
    """Signal for an orderly stop."""
    grace: float = 15.0
    """Seconds that the orderly stop may take."""
    user: int | None = None
    """User and group to run as; only root can change it."""


class Child:
    """One run of a command. Not thread-safe: one supervisor holds it."""

    def __init__(self, command: Command, leash: subprocess.Popen[bytes], pid: int) -> None:
        self.command = command
        self.pid = pid
        """Process id of the server itself."""
        self._leash = leash

    @classmethod
    def start(cls, command: Command, *, keep: Sequence[int] = ()) -> Child:
        """Start the server; `keep` are descriptors that it and its leash inherit.

        Raises PROCESS_FAILED when the program cannot be run at all.
        """
        report, report_write = os.pipe()
        argv = [
            *(sys.executable, "-P", "-m", "mainstem.local.leash"),
            *("--stop", command.stop, "--grace", str(command.grace)),
            *("--folder", str(command.folder), "--report", str(report_write)),
        ]
        if command.user is not None:
            argv += ["--user", str(command.user)]
        for descriptor in keep:
            argv += ["--keep", str(descriptor)]
        with _open_log(command.log) as log:
            leash = subprocess.Popen(
                [*argv, "--", *command.argv],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, **command.environment},
                start_new_session=True,
                pass_fds=[report_write, *keep],
            )
        os.close(report_write)
        with os.fdopen(report, "rb") as reader:
            answer = reader.readline().decode().strip()
        child = cls(command, leash, int(answer) if answer.isdigit() else 0)
        if not child.pid:
            child.stop()
            problem = answer.removeprefix("error ") or "its leash did not run"
            raise MainstemError(
                "PROCESS_FAILED", process=command.name, problem=problem, log=str(command.log)
            )
        return child

    def exit_code(self) -> int | None:
        """None while the server runs; else its exit code (128 + signal when it was killed)."""
        return self._leash.poll()

    @property
    def alive(self) -> bool:
        """Whether the server, or the leash that is still ending it, runs."""
        return self.exit_code() is None

    def wait(self, timeout: float) -> bool:
        """Wait for the end; False when it still runs after `timeout` seconds."""
        try:
            self._leash.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def release(self) -> None:
        """Ask for an orderly stop without waiting for it."""
        if self._leash.stdin is not None:
            self._leash.stdin.close()

    def stop(self) -> None:
        """Stop in order, by force after the grace period, and wait until nothing is left."""
        self.release()
        if not self.wait(self.command.grace + _KILL_MARGIN):
            self._leash.kill()  # Linux then kills the server, too
            self._leash.wait()

    def last_words(self) -> str:
        """The last line of the log, to say why a start failed."""
        return last_line(self.command.log)


def last_line(log: Path, window: int = 4096) -> str:
    """The last line of a log that says something: Java's stack frames do not; empty for none."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - window))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    said = (line.strip() for line in reversed(lines))
    return next((line for line in said if line and not line.startswith(_STACK_FRAME)), "")


def _open_log(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_LIMIT:
        path.replace(path.with_name(path.name + ".1"))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return os.fdopen(descriptor, "ab", buffering=0)


def run_once(
    argv: Sequence[str],
    *,
    name: str,
    log: Path,
    folder: Path,
    stdin: str | None = None,
    user: int | None = None,
    timeout: float = 120.0,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a short program of a server's set-up to its end; its output, or PROCESS_FAILED."""
    started = time.monotonic()
    try:
        done = subprocess.run(
            list(argv),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=folder,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            timeout=timeout,
            env={**os.environ, **(environment or {})},
            check=False,
        )
    except subprocess.TimeoutExpired:
        problem = f"{Path(argv[0]).name} still ran after {time.monotonic() - started:.0f} s"
        raise MainstemError("PROCESS_FAILED", process=name, problem=problem, log=str(log)) from None
    except OSError as error:
        problem = f"{argv[0]}: {error.strerror}"
        raise MainstemError("PROCESS_FAILED", process=name, problem=problem, log=str(log)) from None
    with _open_log(log) as file:
        file.write(done.stdout.encode())
    if done.returncode != 0:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        problem = lines[-1] if lines else f"{Path(argv[0]).name} ended with {done.returncode}"
        raise MainstemError("PROCESS_FAILED", process=name, problem=problem, log=str(log))
    return done.stdout
