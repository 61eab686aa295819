"""CPU seconds and memory of a process and all that it started, for ratios on noisy machines."""

from __future__ import annotations

from contextlib import suppress

import psutil


def family(pid: int) -> list[psutil.Process]:
    """The process and all its descendants that live now."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def cpu_seconds(pid: int) -> float:
    """CPU time of the family, ended children included as far as their parents waited for them."""
    total = 0.0
    for process in family(pid):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def memory_bytes(pid: int) -> dict[str, int]:
    """Proportional memory (shared pages divided among their users) by process name."""
    found: dict[str, int] = {}
    for process in family(pid):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            name = process.name()
            if name == "java":
                name = "java broker" if "kafka.Kafka" in process.cmdline() else "java engine"
            found[name] = found.get(name, 0) + process.memory_full_info().pss
    return found
