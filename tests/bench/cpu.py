"""CPU seconds and memory of a process and all that it started, for ratios on noisy machines."""

from __future__ import annotations

import os
import time
from contextlib import suppress

import psutil


def family(pid: int) -> list[psutil.Process]:
    """The process and all its descendants that live now."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


class Busy:
    """What this process and all that it started have used since, and the rest of the machine."""

    def __init__(self) -> None:
        self._own, self._all = _seconds_of_each(), _machine_seconds()
        self._began = time.monotonic()

    def own(self) -> float:
        """CPU-seconds of the family, of those that are still there.

        The time of Spark's Python workers is lost when they end, which they do after a minute's
        rest: taken out of a sum, it would be given to whoever is measured just then.
        """
        now = _seconds_of_each()
        return sum(used - self._own.get(pid, 0.0) for pid, used in now.items())

    def others(self) -> float:
        """Cores that others have kept busy meanwhile."""
        seconds = _machine_seconds() - self._all - self.own()
        return max(0.0, seconds) / (time.monotonic() - self._began)


def _seconds_of_each() -> dict[int, float]:
    found: dict[int, float] = {}
    for process in family(os.getpid()):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            found[process.pid] = times.user + times.system
    return found


def _machine_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system)


def cpu_by_process(pid: int) -> dict[str, float]:
    """CPU time of the family by process, without the process itself: that is whoever measures."""
    found: dict[str, float] = {}
    for process in family(pid)[1:]:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            times = process.cpu_times()
            name = _name(process)
            found[name] = found.get(name, 0.0) + times.user + times.system
    return found


def memory_bytes(pid: int) -> dict[str, int]:
    """Proportional memory (shared pages divided among their users) by process name."""
    found: dict[str, int] = {}
    for process in family(pid):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            name = _name(process)
            found[name] = found.get(name, 0) + process.memory_full_info().pss
    return found


def _name(process: psutil.Process) -> str:
    words = process.cmdline()
    if process.name() == "java":
        return "java broker" if "kafka.Kafka" in words else "java engine"
    for part in ("mainstem.engine.daemon", "mainstem.engine", "mainstem.gateway"):
        if part in words:
            return f"python {part.removeprefix('mainstem.')}"
    return process.name()
