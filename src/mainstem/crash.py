"""Crash points: named places where a test can make a process die as if by `kill -9`.

A crash is an input of a test, like a record. The environment variable MAINSTEM_CRASH holds
`name:flow:batch`; flow and batch may be `*`. When a process with that variable passes the point of
that name for that flow and batch, it kills itself: no clean-up runs, nothing is flushed. When
MAINSTEM_CRASH_PID names a process, that one is killed first: a Python worker of Spark takes its
driver along.

`@file` in place of `name:flow:batch` names a file with that text. The file is removed just before
the crash, so the point is armed once, also for processes that run already.

Without MAINSTEM_CRASH a crash point does nothing.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

VARIABLE = "MAINSTEM_CRASH"
PROCESS_VARIABLE = "MAINSTEM_CRASH_PID"


def crash_point(name: str, flow: str, batch: int) -> None:
    """Die here if MAINSTEM_CRASH asks for it; else return at once."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    if wanted.startswith("@"):
        armed = Path(wanted[1:])
        try:
            if not _meant(armed.read_text(), name, flow, batch):
                return
            armed.unlink()  # whoever removes the file is the one that crashes
        except FileNotFoundError:
            return
    elif not _meant(wanted, name, flow, batch):
        return
    if PROCESS_VARIABLE in os.environ:
        os.kill(int(os.environ[PROCESS_VARIABLE]), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _meant(wanted: str, name: str, flow: str, batch: int) -> bool:
    wanted_name, wanted_flow, wanted_batch = wanted.strip().split(":")
    return wanted_name == name and wanted_flow in ("*", flow) and wanted_batch in ("*", str(batch))
