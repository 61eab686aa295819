"""A small program that runs one server and ends it when its parent is gone, however it went.

    python -m mainstem.local.leash --stop INT --grace 15 [--user 65534] [--report FD] -- server ...

The parent holds the write end of the pipe that is this program's standard input. It writes
nothing to it: when the pipe closes, because the parent asked for a stop or because it died
(`kill -9` too), the server gets its stop signal, and after the grace period SIGKILL. If this
program itself is killed, Linux kills the server (PR_SET_PDEATHSIG).

The server runs in a process group of its own. What it leaves behind is ended with it: on Linux
this program adopts orphaned descendants (PR_SET_CHILD_SUBREAPER), so that none escapes.

Only the standard library is imported at the start: there is one leash for each server.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_ON_LINUX = sys.platform == "linux"
_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_DESCENDANTS_GRACE = 3.0
"""Longest; what the server may take is enough for what it leaves behind, too."""
EXIT_NOT_STARTED = 127


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until it ends or the parent lets go; its exit code, as a shell gives it."""
    options = _parse(arguments)
    wake = _wake_on_signals()
    libc = ctypes.CDLL(None) if _ON_LINUX else None
    if libc is not None:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        server = _start(options, libc)
    except OSError as error:
        _report(options.report, f"error {error.strerror}: {error.filename}")
        return EXIT_NOT_STARTED
    _report(options.report, str(server.pid))
    _wait_for_end_or_release(server, wake)
    if server.poll() is None:
        _stop(server, signal.Signals[f"SIG{options.stop}"], options.grace, wake)
    _end_descendants(server.pid, min(options.grace, _DESCENDANTS_GRACE))
    code = server.returncode
    return code if code >= 0 else 128 - code


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="leash")
    parser.add_argument("--stop", default="TERM", help="signal that ends the server in order")
    parser.add_argument("--grace", type=float, default=15.0, help="seconds before SIGKILL")
    parser.add_argument("--user", type=int, help="user and group id to run the server as")
    parser.add_argument("--folder", help="working folder of the server")
    parser.add_argument("--report", type=int, help="descriptor that gets the server's process id")
    parser.add_argument("--keep", type=int, action="append", default=[], help="descriptor to keep")
    parser.add_argument("command", nargs="+")
    return parser.parse_args(arguments)


def _wake_on_signals() -> int:
    """A descriptor that becomes readable when a signal arrives, so that one `select` sees all."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    for number in (signal.SIGCHLD, *_STOPPING):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def _start(options: argparse.Namespace, libc: ctypes.CDLL | None) -> subprocess.Popen[bytes]:
    leash = os.getpid()

    def tie_to_leash() -> None:
        # runs after the change of user, which would clear the death signal
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != leash:
                os._exit(EXIT_NOT_STARTED)

    return subprocess.Popen(
        options.command,
        stdin=subprocess.DEVNULL,
        cwd=options.folder,
        process_group=0,
        pass_fds=options.keep,
        user=options.user,
        group=options.user,
        extra_groups=None if options.user is None else [],
        preexec_fn=tie_to_leash,  # noqa: PLW1509 - this process has one thread
    )


def _report(descriptor: int | None, text: str) -> None:
    if descriptor is not None:
        with contextlib.suppress(OSError):
            os.write(descriptor, text.encode() + b"\n")
        os.close(descriptor)


def _wait_for_end_or_release(server: subprocess.Popen[bytes], wake: int) -> None:
    while server.poll() is None:
        readable, _, _ = select.select([sys.stdin.fileno(), wake], [], [])
        if sys.stdin.fileno() in readable and not os.read(sys.stdin.fileno(), 4096):
            return
        if wake in readable and any(number in _STOPPING for number in os.read(wake, 4096)):
            return


def _stop(server: subprocess.Popen[bytes], stop: signal.Signals, grace: float, wake: int) -> None:
    # only the server: its own children are its to end, and some take a signal for a crash
    with contextlib.suppress(ProcessLookupError):
        server.send_signal(stop)
    deadline = time.monotonic() + grace
    while server.poll() is None and (left := deadline - time.monotonic()) > 0:
        if select.select([wake], [], [], left)[0]:
            os.read(wake, 4096)
    if server.poll() is None:
        server.kill()
        server.wait()


def _end_descendants(group: int, grace: float) -> None:
    """End what the server left behind: a moment to go by itself, then SIGKILL."""
    deadline = time.monotonic() + grace
    while _descendants_live(group):
        if time.monotonic() > deadline:
            _kill_descendants(group)
        time.sleep(0.02)


def _descendants_live(group: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return bool(_children())
    return True


def _kill_descendants(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    for child in _children():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGKILL)


def _children() -> list[int]:
    if not _ON_LINUX:
        return []  # orphans are not adopted there; the group is all that can be seen
    import psutil

    return [child.pid for child in psutil.Process().children(recursive=True)]


if __name__ == "__main__":
    sys.exit(main())
